"""How each `realtime` command begins: find a table by name, connect to its Pinot, and open it for work."""

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
    typer.Option(
        "--deep-store",
        metavar="URI",
        help="Folder or bucket of the deep store (default: the controller's data directory).",
    ),
]
RUN = "pinot-assets realtime"
"""How the name of a lease's holder begins; the command follows."""
_AGAIN = "run the same command again: it looks at the table first and does what is left"


@contextmanager
def open_table(name: str) -> Iterator[tuple[RealtimePinot, str]]:
    """Yield a client of the environment's Pinot, and the name of one of its tables, with `_REALTIME`.

    :param name: the table, with or without `_REALTIME`.
    :raises PinotNotFound: there is no such table; names the tables that exist.
    :raises PinotUnreachable: no Pinot answers.
    """
    with RealtimePinot(load_settings().pinot) as pinot:
        yield pinot, find_table(pinot, name)


def find_table(pinot: RealtimePinot, name: str) -> str:
    """Return the table's name with `_REALTIME`.

    :raises PinotNotFound: there is no such table; names the tables that exist.
    """
    raw = name.removesuffix("_REALTIME")
    tables = [table.removesuffix("_REALTIME") for table in pinot.realtime_tables()]
    if raw not in tables:
        offline = raw.removesuffix("_OFFLINE")
        if offline in pinot.offline_tables():
            hint = f"there is an OFFLINE table of that name: `pinot-assets status {offline}`"
        else:
            known = did_you_mean(raw, tables) or f"Pinot has: {', '.join(tables) or 'none'}"
            hint = f"{known}; `pinot-assets tables apply {raw}` makes one from a table spec"
        raise PinotNotFound(f"Pinot has no REALTIME table {raw}", hint=hint)
    return f"{raw}_REALTIME"


@contextmanager
def open_work(table: str, deep_store: str | None = None) -> Iterator[TableOperation]:
    """Yield what operations on one table need; close it at the end.

    :param table: the table, with or without `_REALTIME`.
    :param deep_store: the command's option.
    :raises PinotNotFound: there is no such table.
    """
    settings = load_settings()
    with RealtimePinot(settings.pinot) as client, recording(client, _AGAIN) as pinot:
        name = find_table(pinot, table)
        yield TableOperation(settings, pinot, name, open_deep_store(pinot, deep_store), tell)


def tell(line: str) -> None:
    """Print a line about progress on standard error, separate from the command's answer."""
    new_console(stderr=True).print(escape(line))
