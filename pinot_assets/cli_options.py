"""What commands have in common: the table's name, where its spec lies, plain JSON, and a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

TableName = Annotated[str, typer.Argument(help="Table name, as in tables/<name>.yaml.", metavar="TABLE")]
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
    return Console(soft_wrap=True, highlight=False)
