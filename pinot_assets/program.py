"""How the program ends: errors as sentences, or as JSON for who asked for that; never a traceback."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from rich.markup import escape

from pinot_assets.errors import PinotAssetsError
from pinot_assets.exit_codes import ExitCode, code_of
from pinot_assets.terminal import Terminal

JSON = "--json"
_WRONG_TYPING: type[Exception] = typer.BadParameter.__mro__[2]
"""Click's ClickException, of which newer releases of Typer have a copy of their own."""


def run_program(app: typer.Typer) -> None:
    """Run the command that was typed, and leave with its exit code.

    :raises SystemExit: always.
    """
    _quiet_libraries()
    words = sys.argv[1:]
    try:
        code = _with_json(app) if JSON in words else app()
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
    """What is still buffered goes nowhere, without another error when the program ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def error_values(error: PinotAssetsError) -> dict[str, Any]:
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


def _with_json(app: typer.Typer) -> int:
    """As `app()`, but for the errors that Typer would show by itself."""
    try:
        ended = app(standalone_mode=False)
    except _WRONG_TYPING as error:
        _tell_json(_message(error), "the command was typed wrong", "see --help", ExitCode.REFUSED)
        return ExitCode.REFUSED
    except (typer.Abort, KeyboardInterrupt):
        ended = ExitCode.INTERRUPTED
    if ended == ExitCode.INTERRUPTED:  # some commands tell people themselves, on standard error
        _tell_json("interrupted", None, "run it again to go on", ExitCode.INTERRUPTED)
    return ended if isinstance(ended, int) else ExitCode.DONE


def _message(error: Exception) -> str:
    told: str = getattr(error, "format_message")()  # noqa: B009
    return told


def _tell_json(what: str, why: str | None, hint: str | None, code: int) -> None:
    typer.echo(json.dumps(_values(what, why, hint, code), indent=2))


def _values(what: str, why: str | None, hint: str | None, code: int) -> dict[str, Any]:
    return {"error": what, "why": why, "hint": hint, "exit": int(code)}


def _quiet_libraries() -> None:
    # Py4J logs Ctrl-C with its own tracebacks before it passes it on.
    logging.getLogger().addFilter(lambda record: "KeyboardInterrupt" not in str(record.msg))
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # Kazoo logs each of its attempts; that none of them came through is our own error's to say.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
