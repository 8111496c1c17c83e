"""Everything of a session that leaves the process, in one place, so that a test can count, cut and kill."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pinot_assets.core.connections import Waits
from pinot_assets.ingest.contract.build_spec import Builder
from pinot_assets.pinot.api import PinotClient
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.source.object_store import ObjectStore


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class TableClients:
    """The clients of one table.

    :ivar source: the input directory.
    :ivar staging: the table's folder of the staging area.
    :ivar now_ms: the clock, epoch milliseconds.
    :ivar sleep: waits; seconds.
    """

    store: SessionStore
    pinot: PinotClient
    source: ObjectStore
    staging: Staging
    builder: Builder
    now_ms: Callable[[], int] = _now_ms
    sleep: Callable[[float], None] = time.sleep

    @property
    def waits(self) -> Waits:
        """How long to wait, and for what."""
        return self.store.waits
