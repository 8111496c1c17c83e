"""The program as a whole: the layout of its `--help`, its errors, and its exit codes.

`--help` shows commands in groups, in the order in which users need them, and the terminal wraps its texts.
The program shows errors as sentences, or as JSON with `--json`; never as a traceback.

An interrupted command says so in one line. Typer would print nothing, or "Aborted" at a question.
"""

from __future__ import annotations

import errno
import inspect
import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import typer
from rich.markup import escape
from typer.core import TyperGroup

from pinot_assets.cli.terminal import new_console, show_json
from pinot_assets.core import interrupts
from pinot_assets.core.exit_codes import ExitCode, code_of
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotAssetsError, TypedWrong

if TYPE_CHECKING:  # typer keeps its Click private, so no code imports it when it runs
    from typer._click.core import Context

JSON = "--json"
_WRONG_TYPING: type[Exception] = typer.BadParameter.__mro__[2]
"""Click's ClickException; newer releases of Typer contain their own copy of it."""

_INTERRUPTED = (ExitCode.INTERRUPTED, ExitCode.TERMINATED)

PANELS = {
    "Set up": ("doctor", "local", "init", "tables"),
    "Publish files": ("plan", "run", "watch", "status", "session"),
    "Ask what was published": ("snapshots", "history", "diff", "why", "where"),
    "Go back, clear up": ("rollback", "resume", "gc", "state"),
    "REALTIME tables": ("realtime", "simulate"),
    "Dagster and monitoring": ("dev", "down", "partitions", "metrics"),
}
"""Every command and group of the program."""


def arrange(app: typer.Typer) -> None:
    """Assign the commands of a program to `PANELS`, and sort them in that order.

    :raises KeyError: a command is not in `PANELS`.
    """
    places = {name: panel for panel, names in PANELS.items() for name in names}
    order = [*places]
    for command in app.registered_commands:
        command.rich_help_panel = places[_name(command)]
    for group in app.registered_groups:
        group.rich_help_panel = places[str(group.name)]
    app.registered_commands.sort(key=lambda command: order.index(_name(command)))


def reflow(app: typer.Typer) -> None:
    """Remove single line breaks from the help texts, so that the terminal wraps them by its own width."""
    for command in app.registered_commands:
        text = command.help or inspect.getdoc(command.callback) or ""
        command.help = "\n\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            reflow(group.typer_instance)


def _name(command: typer.models.CommandInfo) -> str:
    return command.name or (command.callback.__name__ if command.callback else "")


class Program(TyperGroup):
    """The group of all commands of the program."""

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
    # Py4J logs Ctrl-C with a traceback before it raises it.
    logging.getLogger().addFilter(lambda record: "KeyboardInterrupt" not in str(record.msg))
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # Kazoo logs each failed attempt; our own error reports it once, when all have failed.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
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
        f"the system refuses {name}".rstrip(),
        why=error.strerror or str(error),
        hint="check the name, the rights and the disk",
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
            {"error": interrupts.SAID, "why": None, "hint": "run it again to go on", "exit": int(ended)}
        )
    return ended if isinstance(ended, int) else ExitCode.DONE
