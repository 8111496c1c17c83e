"""What every `realtime` command begins with: one table by its name, a Pinot that has it, and work on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.options import table_names
from pinot_assets.cli.terminal import new_console
from pinot_assets.core.effects import recording
from pinot_assets.errors import PinotNotFound
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.operations.table_operation import TableOperation
from pinot_assets.realtime.read.reading import open_deep_store
from pinot_assets.settings.environment import load_settings
from pinot_assets.table_spec.yaml.document import did_you_mean

RealtimeTableName = Annotated[
    str,
    typer.Argument(
        help="A REALTIME table, with or without _REALTIME.", metavar="TABLE", autocompletion=table_names
    ),
]
DeepStore = Annotated[
    str | None,
    typer.Option("--deep-store", help="Folder or bucket of the deep store; the controller's data directory."),
]
RUN = "pinot-assets realtime"
"""How the holder of a table's lease begins; the command follows."""
_AGAIN = "the same command looks at the table first and does what is left"


@contextmanager
def open_table(name: str) -> Iterator[tuple[RealtimePinot, str]]:
    """A client of the Pinot of the environment, and the name of a table that it has, with `_REALTIME`.

    :param name: with or without `_REALTIME`.
    :raises PinotNotFound: there is no such table; says which there are.
    :raises PinotUnreachable: no Pinot answers.
    """
    with RealtimePinot(load_settings().pinot) as pinot:
        yield pinot, find_table(pinot, name)


def find_table(pinot: RealtimePinot, name: str) -> str:
    """The table's name with `_REALTIME`.

    :raises PinotNotFound: there is no such table; says which there are.
    """
    raw = name.removesuffix("_REALTIME")
    tables = [table.removesuffix("_REALTIME") for table in pinot.realtime_tables()]
    if raw not in tables:
        offline = raw.removesuffix("_OFFLINE")
        if offline in pinot.offline_tables():
            hint = f"there is an OFFLINE table of that name: `pinot-assets status {offline}`"
        else:
            known = did_you_mean(raw, tables) or f"there are: {', '.join(tables) or 'none'}"
            hint = f"{known}; `pinot-assets tables apply {raw}` makes one of a table spec"
        raise PinotNotFound(f"Pinot has no REALTIME table {raw}", hint=hint)
    return f"{raw}_REALTIME"


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
    new_console(stderr=True).print(escape(line))
