"""What the commands that change a REALTIME table work with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.realtime.table import find_table
from pinot_assets.cli.terminal import Terminal
from pinot_assets.core.effects import recording
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.operations.table_operation import TableOperation
from pinot_assets.realtime.read.reading import open_deep_store
from pinot_assets.settings.environment import load_settings

DeepStore = Annotated[
    str | None,
    typer.Option("--deep-store", help="Folder or bucket of the deep store; the controller's data directory."),
]
RUN = "pinot-assets realtime"
"""How the holder of a table's lease begins; the command follows."""
_AGAIN = "the same command looks at the table first and does what is left"
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


@contextmanager
def open_work(table: str, deep_store: str | None = None) -> Iterator[TableOperation]:
    """Everything for one table; closed at the end.

    :param table: with or without `_REALTIME`.
    :param deep_store: as given to the command.
    :raises PinotNotFound: there is no such table.
    """
    settings = load_settings()
    with RealtimePinot(settings.pinot) as client, recording(client, _AGAIN) as pinot:
        name = find_table(pinot, table)
        yield TableOperation(settings, pinot, name, open_deep_store(pinot, deep_store), tell)


def tell(line: str) -> None:
    """One line about what is done, beside what the command answers."""
    Terminal(stderr=True, soft_wrap=True, highlight=False).print(escape(line))
