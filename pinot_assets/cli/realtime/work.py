"""What the commands that change a REALTIME table work with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.realtime.table import find_table
from pinot_assets.cli.terminal import Terminal
from pinot_assets.core.effects import recording
from pinot_assets.pinot.realtime.clients import RealtimePinot
from pinot_assets.realtime.lease import OperationsLease
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.read.deep_store import open_deep_store, sweeper
from pinot_assets.realtime.read.opening import hold_table, open_operations
from pinot_assets.realtime.read.reading import read_state
from pinot_assets.realtime.repair.apply import Repair
from pinot_assets.realtime.repair.model import USUAL_LIMITS, RepairLimits
from pinot_assets.settings.environment import Settings, load_settings
from pinot_assets.source import ObjectStore

DeepStore = Annotated[
    str | None,
    typer.Option("--deep-store", help="Folder or bucket of the deep store; the controller's data directory."),
]
_AGAIN = "the same command looks at the table first and does what is left"
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


@dataclass(frozen=True, slots=True)
class TableOperation:
    """One table, and all that is needed to change it.

    :ivar table: with `_REALTIME`.
    :ivar store: the deep store, None where it cannot be opened from here.
    """

    settings: Settings
    pinot: RealtimePinot
    table: str
    store: ObjectStore | None

    def read(self) -> RealtimeState:
        """The table as it stands."""
        return read_state(self.pinot, self.table, deep_store=self.store)

    def recall(self, subject: str) -> str:
        """What an operation remembers, without taking the table."""
        with open_operations(self.settings, self.table) as operations:
            return operations.recall(subject)

    def hold(self, command: str) -> AbstractContextManager[OperationsLease]:
        """Be the one that changes the table."""
        return hold_table(self.settings, self.table, f"pinot-assets realtime {command}")

    def repair(self, lease: OperationsLease, limits: RepairLimits = USUAL_LIMITS) -> Repair:
        """A repair of it, which tells what it does on the terminal."""
        return Repair(self.pinot, self.read, lease, sweeper(self.store, self.table), limits, tell)


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
        yield TableOperation(settings, pinot, name, open_deep_store(pinot, deep_store))


def tell(line: str) -> None:
    """One line about what is done, beside what the command answers."""
    Terminal(stderr=True, soft_wrap=True, highlight=False).print(escape(line))
