"""How the program ends: errors as sentences, or as JSON for who asked for that; never a traceback.

One that is interrupted says so in one line. Typer would say nothing, or "Aborted" where it asked a question.
"""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from pinot_assets.cli.terminal import Terminal
from pinot_assets.core import interrupts
from pinot_assets.core.exit_codes import ExitCode, code_of
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotAssetsError

JSON = "--json"
_WRONG_TYPING: type[Exception] = typer.BadParameter.__mro__[2]
"""Click's ClickException, of which newer releases of Typer have a copy of their own."""


_INTERRUPTED = (ExitCode.INTERRUPTED, ExitCode.TERMINATED)


class Program(TyperGroup):
    """The program's own group of commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; one that is interrupted ends with one line on standard error."""
        try:
            return super().invoke(ctx)
        except typer.Abort:
            if interrupts.received() is None:
                raise
            line = interrupts.SAID
        except KeyboardInterrupt as error:
            line = error.args[0] if error.args else interrupts.SAID
        Terminal(stderr=True, soft_wrap=True, highlight=False).print(escape(line))
        by_sigterm = interrupts.received() == signal.SIGTERM
        raise typer.Exit(ExitCode.TERMINATED if by_sigterm else ExitCode.INTERRUPTED)


def run_program(app: typer.Typer) -> None:
    """Run the command that was typed, and leave with its exit code.

    :raises SystemExit: always.
    """
    _quiet_libraries()
    words = sys.argv[1:]
    try:
        code = _with_json(app) if JSON in words else _with_text(app)
    except PinotAssetsError as error:
        code = tell(error, words)
    except OSError as error:
        if error.errno == errno.EPIPE:  # who read our output has enough of it
            _close_output()
            code = ExitCode.ERROR
        else:
            code = tell(of_system(error), words)
    sys.exit(code)


def tell(error: PinotAssetsError, words: Sequence[str]) -> ExitCode:
    """Say what is wrong: on standard error, and with `--json` on standard output as well-formed JSON.

    :param words: what was typed.
    :returns: the exit code.
    """
    code = code_of(error)
    if JSON not in words or not _echoed(json.dumps(error_values(error), indent=2)):
        Terminal(stderr=True, soft_wrap=True, highlight=False).print(f"[red]error[/]: {escape(str(error))}")
    return code


def _echoed(text: str) -> bool:
    """Whether standard output takes it: what is wrong may be that it does not, on a full disk."""
    try:
        typer.echo(text)
    except OSError:
        _close_output()
        return False
    return True


def _close_output() -> None:
    """What is still buffered goes nowhere, and holds up the end of the program with no error and no wait."""
    with suppress(io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def error_values(error: PinotAssetsError) -> JsonObject:
    """An error for other programs: the one shape that docs/cli.md has."""
    return _values(error.what, error.why, error.hint, code_of(error))


def of_system(error: OSError) -> PinotAssetsError:
    """What the system refuses, as an error of ours."""
    name = f"{error.filename} " if error.filename else ""
    return PinotAssetsError(
        f"the system refuses {name}".rstrip(),
        why=error.strerror or str(error),
        hint="check the name, the rights and the disk",
    )


def _with_text(app: typer.Typer) -> int:
    """As `app()`; whoever reads the output of an interrupted command is not waited for; they may not read."""
    try:
        app()
    except SystemExit as end:
        if end.code in _INTERRUPTED:
            _close_output()
        raise
    return ExitCode.DONE


def _with_json(app: typer.Typer) -> int:
    """As `app()`, but for the errors that Typer would show by itself."""
    try:
        ended = app(standalone_mode=False)
    except _WRONG_TYPING as error:
        _tell_json(_message(error), "the command was typed wrong", "see --help", ExitCode.REFUSED)
        return ExitCode.REFUSED
    except (typer.Abort, KeyboardInterrupt):
        ended = ExitCode.INTERRUPTED
    if ended in _INTERRUPTED:  # people are told on standard error
        _tell_json(interrupts.SAID, None, "run it again to go on", ended)
    return ended if isinstance(ended, int) else ExitCode.DONE


def _message(error: Exception) -> str:
    told: str = getattr(error, "format_message")()  # noqa: B009
    return told


def _tell_json(what: str, why: str | None, hint: str | None, code: int) -> None:
    typer.echo(json.dumps(_values(what, why, hint, code), indent=2))


def _values(what: str, why: str | None, hint: str | None, code: int) -> JsonObject:
    return {"error": what, "why": why, "hint": hint, "exit": int(code)}


def _quiet_libraries() -> None:
    # Py4J logs Ctrl-C with its own tracebacks before it passes it on.
    logging.getLogger().addFilter(lambda record: "KeyboardInterrupt" not in str(record.msg))
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # Kazoo logs each of its attempts; that none of them came through is our own error's to say.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
