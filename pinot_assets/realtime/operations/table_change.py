"""What turning pauseless on and off, a rebalance and a restart work with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.lease import OperationsLease
from pinot_assets.realtime.read.api import Reader, Tell


@dataclass(frozen=True, slots=True)
class TableChange:
    """One operation on one table. `X_plan` decides from a state what to do; the class of `X` does it.

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
