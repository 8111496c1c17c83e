"""What every `realtime` command begins with: one table by its name, and a Pinot that has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from pinot_assets.cli.completion import table_names
from pinot_assets.errors import PinotNotFound
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.settings.environment import load_settings
from pinot_assets.table_spec.yaml.document import did_you_mean

TableName = Annotated[
    str,
    typer.Argument(
        help="A REALTIME table, with or without _REALTIME.", metavar="TABLE", autocompletion=table_names
    ),
]


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A REALTIME table that Pinot has, and the client.

    :ivar name: with `_REALTIME`.
    """

    pinot: RealtimePinot
    name: str


@contextmanager
def open_table(name: str) -> Iterator[OpenTable]:
    """Open a client of the Pinot of the environment, and find the table.

    :param name: with or without `_REALTIME`.
    :raises PinotNotFound: there is no such table; says which there are.
    :raises PinotUnreachable: no Pinot answers.
    """
    with RealtimePinot(load_settings().pinot) as pinot:
        yield OpenTable(pinot, find_table(pinot, name))


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
