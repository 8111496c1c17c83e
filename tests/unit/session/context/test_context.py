"""A run that only reads can write nothing, whatever is asked of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakes.zookeeper.memory import FakeZooKeeper

from pinot_assets.errors import LeaseLost
from pinot_assets.session.context.context import ReadOnlyLease
from pinot_assets.session.stores.session_store import Lease, SessionStore
from pinot_assets.session.values.state import Pointer


@pytest.mark.parametrize(
    "write",
    [
        lambda lease: lease.write(pointer=Pointer()),
        lambda lease: lease.assert_held(),
        lambda lease: lease.wait_out_former_owner(),
        lambda lease: lease.prune(),
    ],
)
def test_every_write_is_refused(write: Callable[[Lease], None]) -> None:
    zookeeper = FakeZooKeeper()
    store = SessionStore(zookeeper.client(), "pinot", "t_OFFLINE")  # type: ignore[arg-type]
    lease = ReadOnlyLease(store, Pointer(), -1, took_over_from=None)
    with pytest.raises(LeaseLost, match="cannot change anything"):
        write(lease)
    lease.release()
    assert zookeeper.writes == []
