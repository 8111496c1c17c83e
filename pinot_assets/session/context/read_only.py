"""A run that only reads: the machine's own looks and decisions, and no lease to write by."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn

from pinot_assets.errors import LeaseLost
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.session_store import Lease, SessionStore
from pinot_assets.session.values.report import Progress
from pinot_assets.session.values.state import Pointer, Session
from pinot_assets.table_spec import TableSpec


class ReadOnlyLease(Lease):
    """In the place of a lease that nobody took: says how the pointer stood, and refuses every write, to
    ZooKeeper as to Pinot, whose writes all ask first whether the lease is held (rule R2)."""

    def __init__(self, store: SessionStore, pointer: Pointer) -> None:
        super().__init__(store, pointer, -1, took_over_from=None)

    def write(self, *, pointer: Pointer | None = None, session: Session | None = None) -> NoReturn:  # noqa: ARG002
        """Refused."""
        raise self._refusal()

    def assert_held(self) -> NoReturn:
        """Refused."""
        raise self._refusal()

    def wait_out_former_owner(self, sleep: Callable[[float], None] = time.sleep) -> NoReturn:  # noqa: ARG002
        """Refused: it comes before a write."""
        raise self._refusal()

    def prune(self) -> NoReturn:
        """Refused."""
        raise self._refusal()

    def release(self) -> None:
        """There is nothing to let go of."""

    def _refusal(self) -> LeaseLost:
        return LeaseLost(
            f"a look at {self._store.table} may not change anything",
            why="it came to a write, without a lease",
            hint="this is a defect of pinot-assets: please tell us how you came here",
        )


def read_only_context(spec: TableSpec, clients: TableClients, progress: Progress) -> TriggerContext:
    """A run that cannot write, as the table stands now."""
    return TriggerContext(spec, clients, ReadOnlyLease(clients.store, clients.store.pointer()), progress)
