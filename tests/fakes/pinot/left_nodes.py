"""What a table that Pinot deleted left in ZooKeeper."""

from __future__ import annotations

from fakes.zookeeper.memory import FakeZooKeeper

from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.state import Owner

CLUSTER, TABLE = "pinot", "t_OFFLINE"
CONFIG = f"/{CLUSTER}/PROPERTYSTORE/CONFIGS/TABLE/{TABLE}"


def store_of(zookeeper: FakeZooKeeper) -> SessionStore:
    """The table's nodes, by a client of its own."""
    return SessionStore(zookeeper.client(), CLUSTER, TABLE)


def left_by_a_table(zookeeper: FakeZooKeeper) -> FakeZooKeeper:
    """A pointer and a session, and no table config."""
    zookeeper.client().ensure_path(f"/{CLUSTER}/PROPERTYSTORE")
    store = store_of(zookeeper)
    store.take_lease(Owner("run", "host", 1, 0)).release()
    zookeeper.client().create(f"{store.path}/cp1", b"{}")
    return zookeeper
