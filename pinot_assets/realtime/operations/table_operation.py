"""One REALTIME table and what an operation needs to change it, from the command line or from a job."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from pinot_assets.core.waiting import MONOTONIC, Clock
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.lease import OperationsLease, hold_table, open_operations
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.read.reading import Reader, Tell, read_state, upload_deleter
from pinot_assets.realtime.repair.apply import Repair
from pinot_assets.realtime.repair.model import USUAL_LIMITS, RepairLimits
from pinot_assets.settings.environment import Settings
from pinot_assets.source import ObjectStore


@dataclass(frozen=True, slots=True)
class TableChange:
    """One operation on one table. For each operation a pure function decides what to do; a subclass does it.

    :ivar read: reads the table as it is now; Pinot's answer to a call proves nothing.
    :ivar patience_s: how long the operation waits for effects.
    """

    pinot: RealtimePinot
    read: Reader
    lease: OperationsLease
    tell: Tell = lambda _: None
    patience_s: float = 3600.0
    clock: Clock = MONOTONIC


@dataclass(frozen=True, slots=True)
class TableOperation:
    """One table with an open connection to its Pinot.

    :ivar table: with `_REALTIME`.
    :ivar store: the deep store, None where it cannot be opened from here.
    :ivar tell: receives a line about each thing that a repair does.
    """

    settings: Settings
    pinot: RealtimePinot
    table: str
    store: ObjectStore | None
    tell: Tell

    def read(self) -> RealtimeState:
        """Read the state of the table now."""
        return read_state(self.pinot, self.table, deep_store=self.store)

    def recall(self, subject: str) -> str:
        """Return the memory of an operation, without taking the lease."""
        with open_operations(self.settings, self.table) as operations:
            return operations.recall(subject)

    def hold(self, run: str) -> AbstractContextManager[OperationsLease]:
        """Hold the lease of the table, so that only this run changes it.

        :param run: name of the holder that other runs see.
        """
        return hold_table(self.settings, self.table, run)

    def repair(self, lease: OperationsLease, limits: RepairLimits = USUAL_LIMITS) -> Repair:
        """Return a repair of the table."""
        return Repair(self.pinot, self.read, lease, upload_deleter(self.store, self.table), limits, self.tell)
