"""The program as a whole: its commands, the layout of its `--help`, its errors, and its exit codes.

A command is imported when it is used. `--help` shows commands in panels, and the terminal wraps its texts.
The program shows errors as sentences, or as JSON with `--json`; never as a traceback.

An interrupted command says so in one line. Typer would print nothing, or "Aborted" at a question.
"""

from __future__ import annotations

import errno
import gc
import inspect
import io
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import PurePath
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, cast

import typer
from rich.markup import escape
from typer.core import TyperCommand
from typer.main import get_group

from pinot_assets.cli.help import Command, Group
from pinot_assets.cli.terminal import fit_output, new_console, show_json
from pinot_assets.core import interrupts
from pinot_assets.core.exit_codes import ExitCode, code_of
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.this_machine import convert_without_pandas
from pinot_assets.errors import PinotAssetsError, TypedWrong

if TYPE_CHECKING:  # typer keeps its Click private, so no code imports it when it runs
    from typer._click.core import Command as ClickCommand
    from typer._click.core import Context
    from typer._click.formatting import HelpFormatter

JSON = "--json"
_WRONG_TYPING: type[Exception] = typer.BadParameter.__mro__[2]
"""Click's ClickException; newer releases of Typer contain their own copy of it."""

_INTERRUPTED = (ExitCode.INTERRUPTED, ExitCode.TERMINATED)

_HOME = "pinot_assets.cli"


@dataclass(frozen=True, slots=True)
class Entry:
    """A command or a group of commands in the list of them.

    :ivar home: its module below `pinot_assets.cli`, and its name there: a function, or a `typer.Typer`.
    :ivar summary: a command's first paragraph of help, which the list in `--help` shows; all help of a group.
    """

    home: str
    summary: str

    def load(self, name: str, panel: str) -> ClickCommand:
        """Import it; return it as typer runs it."""
        module, _, attribute = self.home.partition(":")
        _leave_out_program_of_httpx()
        loaded = getattr(import_module(f"{_HOME}.{module}"), attribute)
        if "pyarrow" in sys.modules:
            convert_without_pandas()
        _collect_garbage_from_now_on()
        alone = typer.Typer()
        if isinstance(loaded, typer.Typer):
            alone.add_typer(loaded, name=name, help=self.summary, rich_help_panel=panel)
        else:
            alone.command(name, rich_help_panel=panel)(loaded)
        reflow(alone)
        return get_group(alone).commands[name]


def _leave_out_program_of_httpx() -> None:
    """Keep httpx from importing its own command line, which loads Pygments and half of Rich: two hundredths
    of a second that every command would pay. Without those packages, httpx leaves it out by itself."""
    sys.modules.setdefault("httpx._main", cast(ModuleType, None))


def reflow(app: typer.Typer) -> None:
    """Remove single line breaks from the help texts, so that the terminal wraps them by its own width.

    The commands become those of `pinot_assets.cli.help`.
    """
    app.info.cls = app.info.cls if isinstance(app.info.cls, type) else Group
    for command in app.registered_commands:
        command.cls = Command
        text = command.help or inspect.getdoc(command.callback) or ""
        command.help = "\n\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            reflow(group.typer_instance)


def _collect_garbage_from_now_on() -> None:
    """Let Python look for garbage again, except among the objects that importing made, which stay.

    To look through them while more and more are imported, and once more at the end, is a fifth of the CPU
    time of a short command.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


class Program(Group):
    """The group of all commands of the program.

    :cvar panels: each command by its name, in the panels of `--help`.
    """

    panels: ClassVar[Mapping[str, Mapping[str, Entry]]] = {}

    @cached_property
    def _loaded(self) -> dict[str, ClickCommand]:
        return {}

    def list_commands(self, _: Context) -> list[str]:
        """Return the names of all commands; imports none of them."""
        return [name for entries in self.panels.values() for name in entries] or [*self.commands]

    def get_command(self, _: Context, cmd_name: str) -> ClickCommand | None:
        """Return one command, None if there is none of this name."""
        for panel, entries in self.panels.items():
            if cmd_name in entries and cmd_name not in self._loaded:
                self._loaded[cmd_name] = entries[cmd_name].load(cmd_name, panel)
        return self._loaded.get(cmd_name) or self.commands.get(cmd_name)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, ClickCommand | None, list[str]]:
        """Return the command that the first word names.

        :raises typer.BadParameter: as Click's `UsageError`: there is none; names the one that was meant.
        """
        try:
            return super().resolve_command(ctx, args)
        except _WRONG_TYPING as error:
            if meant := self._meant(ctx, args[0]):
                named = " or ".join(repr(name) for name in meant)
                vars(error)["message"] = f"No such command {args[0]!r}. Did you mean {named}?"
            raise

    def _meant(self, ctx: Context, typed: str) -> Sequence[str]:
        """Return what a person has to type instead: a command, a command of a group, or an option."""
        # Imported here, because only a mistake needs it.
        from pinot_assets.table_spec.yaml.document import nearest

        words = {name: [name] for name in self.list_commands(ctx)}
        for name in (*words,):
            for inner in getattr(self.get_command(ctx, name), "commands", ()):
                if inner not in self.list_commands(ctx):
                    words.setdefault(inner, []).append(f"{name} {inner}")
        for option in (option for parameter in self.get_params(ctx) for option in parameter.opts):
            words.setdefault(option.lstrip("-"), [option])
        return words.get(nearest(typed, words) or "", ())

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Show the help with the summaries of the commands; imports none of them."""
        listed = [
            TyperCommand(name, help=entry.summary, rich_help_panel=panel)
            for panel, entries in self.panels.items()
            for name, entry in entries.items()
        ]
        shown = Group(name=self.name, commands=listed, params=self.params, help=self.help, epilog=self.epilog)
        shown.format_help(ctx, formatter)

    def invoke(self, ctx: Context) -> object:
        """Run a command; if it is interrupted, print one line on standard error."""
        try:
            return super().invoke(ctx)
        except typer.Abort:
            if interrupts.received() is None:
                raise
            line = interrupts.SAID
        except KeyboardInterrupt as error:
            line = error.args[0] if error.args else interrupts.SAID
        new_console(stderr=True).print(escape(line))
        by_sigterm = interrupts.received() == signal.SIGTERM
        raise typer.Exit(ExitCode.TERMINATED if by_sigterm else ExitCode.INTERRUPTED)


def run_program(app: typer.Typer) -> None:
    """Run the command that was typed, and exit with its exit code.

    :raises SystemExit: always.
    """
    # Py4J logs an interrupted call, or one whose JVM is gone, with a traceback before it raises, partly in
    # the root logger. Our own error, or the line of the interruption, says it once.
    logging.getLogger().addFilter(is_not_of_py4j)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # Kazoo logs each failed attempt; our own error reports it once, when all have failed.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    fit_output(os.environ)
    words = sys.argv[1:]
    try:
        code = _with_json(app) if JSON in words else _with_text(app)
    except PinotAssetsError as error:
        code = print_error(error, words)
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader closed the pipe
            _close_output()
            code = ExitCode.ERROR
        else:
            code = print_error(of_system(error), words)
    sys.exit(code)


def is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger comes from elsewhere than Py4J."""
    return "py4j" not in PurePath(record.pathname).parts


def print_error(error: PinotAssetsError, words: Sequence[str]) -> ExitCode:
    """Print an error: on standard error, or with `--json` on standard output as well-formed JSON.

    :param words: the words of the command line.
    :returns: the exit code.
    """
    code = code_of(error)
    if JSON in words:
        try:
            show_json(error_values(error))
            return code
        except OSError:  # the error may be that standard output is on a full disk
            _close_output()
    new_console(stderr=True).print(f"[red]error[/]: {escape(str(error))}")
    return code


def _close_output() -> None:
    """Discard buffered output, so that flushing it at exit can neither fail nor wait for a reader."""
    with suppress(io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def error_values(error: PinotAssetsError) -> JsonObject:
    """Return an error as JSON for other programs, in the shape that docs/cli.md describes."""
    return {"error": error.what, "why": error.why, "hint": error.hint, "exit": int(code_of(error))}


def of_system(error: PinotAssetsError | OSError) -> PinotAssetsError:
    """Convert an error of the operating system to one of ours; return ours unchanged."""
    if isinstance(error, PinotAssetsError):
        return error
    name = f"{error.filename} " if error.filename else ""
    return PinotAssetsError(
        f"the operating system refuses {name}".rstrip(),
        why=error.strerror or str(error),
        hint="check the name, the permissions and the disk",
    )


def _with_text(app: typer.Typer) -> int:
    """As `app()`, but an interrupted command does not wait for the reader of its output, who may not read."""
    try:
        app()
    except SystemExit as end:
        if end.code in _INTERRUPTED:
            _close_output()
        raise
    return ExitCode.DONE


def _with_json(app: typer.Typer) -> int:
    """As `app()`, but raise the errors that Typer would print itself, and print an interruption as JSON."""
    try:
        ended = app(standalone_mode=False)
    except _WRONG_TYPING as error:
        message = getattr(error, "format_message")()  # noqa: B009
        raise TypedWrong(message, why="the command was typed wrong", hint="see --help") from None
    except (typer.Abort, KeyboardInterrupt):
        ended = ExitCode.INTERRUPTED
    if ended in _INTERRUPTED:  # standard error already has the line for people
        show_json(
            {"error": interrupts.SAID, "why": None, "hint": "run it again to continue", "exit": int(ended)}
        )
    return ended if isinstance(ended, int) else ExitCode.DONE
