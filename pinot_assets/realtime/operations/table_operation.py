"""One REALTIME table, and all that is needed to change it: for the command line and for jobs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.lease import OperationsLease
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.read.api import Tell
from pinot_assets.realtime.read.deep_store import sweeper
from pinot_assets.realtime.read.opening import hold_table, open_operations
from pinot_assets.realtime.read.reading import read_state
from pinot_assets.realtime.repair.apply import Repair
from pinot_assets.realtime.repair.model import USUAL_LIMITS, RepairLimits
from pinot_assets.settings.environment import Settings
from pinot_assets.source import ObjectStore


@dataclass(frozen=True, slots=True)
class TableOperation:
    """One table, open.

    :ivar table: with `_REALTIME`.
    :ivar store: the deep store, None where it cannot be opened from here.
    :ivar tell: hears what a repair does.
    """

    settings: Settings
    pinot: RealtimePinot
    table: str
    store: ObjectStore | None
    tell: Tell

    def read(self) -> RealtimeState:
        """The table as it stands."""
        return read_state(self.pinot, self.table, deep_store=self.store)

    def recall(self, subject: str) -> str:
        """What an operation remembers, without taking the table."""
        with open_operations(self.settings, self.table) as operations:
            return operations.recall(subject)

    def hold(self, run: str) -> AbstractContextManager[OperationsLease]:
        """Be the one that changes the table.

        :param run: who holds it, as others are told.
        """
        return hold_table(self.settings, self.table, run)

    def repair(self, lease: OperationsLease, limits: RepairLimits = USUAL_LIMITS) -> Repair:
        """A repair of it."""
        return Repair(self.pinot, self.read, lease, sweeper(self.store, self.table), limits, self.tell)
