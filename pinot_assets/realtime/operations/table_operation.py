"""One REALTIME table, and all that is needed to change it: for the command line, for jobs, and for what
turning pauseless on and off, a rebalance and a restart work with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.lease import OperationsLease, hold_table, open_operations
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.read.reading import Reader, Tell, read_state, sweeper
from pinot_assets.realtime.repair.apply import Repair
from pinot_assets.realtime.repair.model import USUAL_LIMITS, RepairLimits
from pinot_assets.settings.environment import Settings
from pinot_assets.source import ObjectStore


@dataclass(frozen=True, slots=True)
class TableChange:
    """One operation on one table. A function decides from a state what to do, this does it.

    :ivar read: the table as it is now; what Pinot answers to a call proves nothing.
    :ivar patience_s: how long effects are waited for.
    """

    pinot: RealtimePinot
    read: Reader
    lease: OperationsLease
    tell: Tell = lambda _: None
    patience_s: float = 3600.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


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
