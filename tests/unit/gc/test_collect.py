"""Nodes of tables that Pinot does not have any more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fakes.pinot.left_nodes import CLUSTER, CONFIG, TABLE, left_by_a_table, store_of
from fakes.zookeeper.memory import FakeZooKeeper
from kazoo.exceptions import ConnectionLoss

from pinot_assets.core.stored_format import NEWEST
from pinot_assets.errors import LeaseLost, NeedsNewerRelease
from pinot_assets.gc.collect import forget_table, nodes_of_dropped_table
from pinot_assets.session.stores.nodes import tables_with_sessions
from pinot_assets.session.values.state import Owner

HOUR_MS = 3_600_000


@pytest.fixture
def zookeeper() -> FakeZooKeeper:
    return left_by_a_table(FakeZooKeeper())


def test_a_table_that_is_gone(zookeeper: FakeZooKeeper) -> None:
    store = store_of(zookeeper)
    written_ms = store.pointer_written_ms()
    assert written_ms is not None
    orphan = nodes_of_dropped_table(store, written_ms + HOUR_MS)
    assert orphan is not None
    assert (orphan.name, orphan.age_ms) == (TABLE, HOUR_MS)


def test_one_that_is_there_or_that_somebody_works_on_is_not(zookeeper: FakeZooKeeper) -> None:
    lease = store_of(zookeeper).take_lease(Owner("run", "host", 1, 0))
    assert nodes_of_dropped_table(store_of(zookeeper), 0) is None
    assert forget_table(store_of(zookeeper)) is False
    lease.release()
    zookeeper.client().ensure_path(CONFIG)
    assert nodes_of_dropped_table(store_of(zookeeper), 0) is None


def test_all_of_it_goes_at_once_and_nothing_else(zookeeper: FakeZooKeeper) -> None:
    before = len(zookeeper.writes)
    assert forget_table(store_of(zookeeper)) is True
    assert [path for path in zookeeper.nodes if "consistentPush" in path] == []
    assert f"/{CLUSTER}/PROPERTYSTORE/MINION_TASK_METADATA/{TABLE}/FileIngestionTask" in zookeeper.nodes
    assert len(zookeeper.writes) == before + 2  # the lease, and all
    assert nodes_of_dropped_table(store_of(zookeeper), 0) is None


def test_one_that_was_made_again_since_stays(zookeeper: FakeZooKeeper) -> None:
    zookeeper.client().ensure_path(CONFIG)
    before = set(zookeeper.nodes)
    assert forget_table(store_of(zookeeper)) is False
    assert set(zookeeper.nodes) == before


def test_nodes_of_a_newer_format_stay(zookeeper: FakeZooKeeper) -> None:
    client, path = zookeeper.client(), store_of(zookeeper).path
    pointer = json.loads(client.get(path)[0])
    pointer["simpleFields"] |= {"format": str(NEWEST + 1), "needs": "7.5.0"}
    client.set(path, json.dumps(pointer).encode())
    before = set(zookeeper.nodes)
    with pytest.raises(NeedsNewerRelease, match=r"7\.5\.0"):
        forget_table(store_of(zookeeper))
    assert set(zookeeper.nodes) == before


def test_who_lost_the_lease_deletes_nothing(zookeeper: FakeZooKeeper) -> None:
    store = store_of(zookeeper)
    lease = store.take_lease(Owner("gc", "host", 1, 0))
    zookeeper.expire(store.zk)  # type: ignore[arg-type]
    before = set(zookeeper.nodes)
    with pytest.raises(LeaseLost):
        lease.forget()
    assert set(zookeeper.nodes) == before


def test_a_lost_answer_is_looked_at(zookeeper: FakeZooKeeper) -> None:
    store = store_of(zookeeper)
    lease = store.take_lease(Owner("gc", "host", 1, 0))

    @contextmanager
    def lost(what: str) -> Iterator[None]:
        yield
        if "delete" in what:
            raise ConnectionLoss

    store.zk.around = lost
    lease.forget()
    assert [path for path in zookeeper.nodes if "consistentPush" in path] == []


def test_tables_that_zookeeper_knows_of(zookeeper: FakeZooKeeper) -> None:
    client = zookeeper.client()
    client.ensure_path(f"/{CLUSTER}/PROPERTYSTORE/MINION_TASK_METADATA/other_OFFLINE/MergeRollupTask")
    assert tables_with_sessions(client, CLUSTER) == [TABLE]  # type: ignore[arg-type]
    assert tables_with_sessions(client, "elsewhere") == []  # type: ignore[arg-type]
