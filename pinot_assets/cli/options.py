"""What commands have in common: the table's name, where its spec lies, plain JSON, and a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pinot_assets.cli.completion import table_names
from pinot_assets.cli.terminal import Terminal
from pinot_assets.errors import PinotAssetsError

TableName = Annotated[
    str,
    typer.Argument(help="Table name, as in tables/<name>.yaml.", metavar="TABLE", autocompletion=table_names),
]
TablesOption = Annotated[
    Path | None,
    typer.Option(
        "--tables", help="Directory of the table specs (default: $PINOT_ASSETS_TABLES, else tables)."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Plain JSON for other programs.")]


def new_console() -> Console:
    """Long lines are the terminal's to wrap: in a pipe or a log they stay whole.

    Made at each use: the output of today's command, not of the one that imported this first.
    """
    return Terminal(soft_wrap=True, highlight=False)


def show_json(values: Any) -> None:
    """The whole answer of a command, for other programs."""
    typer.echo(json.dumps(values, indent=2, default=str))


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """What is told to people meanwhile goes to standard error: standard output is JSON alone."""
    with redirect_stdout(sys.stderr):
        yield


DRY_RUN = "add --yes to do it, or --dry-run to see what it would do"


def refuse_to_ask(is_told: bool, hint: str = DRY_RUN) -> None:
    """Whoever reads JSON answers no question.

    :param is_told: what the question would ask stands in the command.
    :param hint: what to add, of options that the command has.
    :raises PinotAssetsError: it does not.
    """
    if not is_told:
        raise PinotAssetsError("with --json nobody is asked", hint=hint)
