"""Two operations never work on one table, and what one began the next one knows."""

from __future__ import annotations

import json

import pytest
from fakes.zookeeper.memory import FakeZooKeeper
from kazoo.exceptions import ConnectionLoss
from kazoo.security import OPEN_ACL_UNSAFE

from pinot_assets.core.connections import ZooKeeperAccess
from pinot_assets.errors import LeaseLost, NeedsNewerRelease, SessionError, SessionHeld
from pinot_assets.realtime.lease import OperationsStore
from pinot_assets.session.values.state import Owner
from pinot_assets.zookeeper import acl_of

ONE = Owner("one", "host", 1, 1_000)
TWO = Owner("two", "host", 2, 2_000)


@pytest.fixture
def zookeeper() -> FakeZooKeeper:
    server = FakeZooKeeper()
    server.client().ensure_path("/pinot/PROPERTYSTORE")
    return server


def store(zookeeper: FakeZooKeeper) -> OperationsStore:
    return OperationsStore(zookeeper.client(), "pinot", "t_REALTIME")  # type: ignore[arg-type]


def test_one_at_a_time(zookeeper: FakeZooKeeper) -> None:
    with store(zookeeper).take(ONE) as lease:
        lease.assert_held()
        with pytest.raises(SessionHeld, match="one on host"):
            store(zookeeper).take(TWO)
    assert store(zookeeper).holder() is None
    with store(zookeeper).take(TWO):
        assert store(zookeeper).holder() == TWO


def test_with_a_user_the_nodes_are_the_users(zookeeper: FakeZooKeeper) -> None:
    """Those of a time without one, too."""
    with store(zookeeper).take(ONE) as lease:
        lease.remember("repair", "tried")
    ours = acl_of(ZooKeeperAccess("ada", "s3cret"))
    client = zookeeper.client(default_acl=ours)
    own = OperationsStore(client, "pinot", "t_REALTIME")  # type: ignore[arg-type]
    with own.take(TWO):
        path = own.path
        assert client.get_acls(path)[0] == client.get_acls(f"{path}/lease")[0] == ours
        assert client.get_acls(path.rpartition("/")[0])[0] == OPEN_ACL_UNSAFE
    assert store(zookeeper).recall("repair") == "tried"


def test_what_is_remembered_outlives_the_run(zookeeper: FakeZooKeeper) -> None:
    with store(zookeeper).take(ONE) as lease:
        lease.remember("repair", "tried")
        lease.remember("drain", "flipped")
        lease.remember("drain", "")
    assert store(zookeeper).recall("repair") == "tried"
    assert store(zookeeper).recall("drain") == ""


def test_a_run_that_lost_its_session_changes_nothing(zookeeper: FakeZooKeeper) -> None:
    client = zookeeper.client()
    lost = OperationsStore(client, "pinot", "t_REALTIME").take(ONE)  # type: ignore[arg-type]
    zookeeper.expire(client)
    with store(zookeeper).take(TWO) as lease:
        lease.remember("repair", "two's")
        with pytest.raises(LeaseLost):
            lost.remember("repair", "one's")
        with pytest.raises(LeaseLost):
            lost.assert_held()
        lost.release()
        lease.assert_held()
        assert lease.recall("repair") == "two's"


@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_reply_is_looked_up(zookeeper: FakeZooKeeper, arrives: bool) -> None:
    client = zookeeper.client()
    lease = OperationsStore(client, "pinot", "t_REALTIME").take(ONE)  # type: ignore[arg-type]
    client.around = _Loses(arrives)  # type: ignore[assignment]
    lease.remember("repair", "tried")
    lease.remember("drain", "flipped")
    assert store(zookeeper).recall("repair") == "tried"
    assert store(zookeeper).recall("drain") == "flipped"


def test_the_lease_whose_reply_was_lost_is_ours(zookeeper: FakeZooKeeper) -> None:
    zookeeper.client().ensure_path("/pinot/PROPERTYSTORE/MINION_TASK_METADATA/t_REALTIME/RealtimeOperations")
    client = zookeeper.client()
    client.around = _Loses(arrives=True)  # type: ignore[assignment]
    lease = OperationsStore(client, "pinot", "t_REALTIME").take(ONE)  # type: ignore[arg-type]
    lease.assert_held()
    assert store(zookeeper).holder() == ONE


def test_a_wrong_cluster_is_told(zookeeper: FakeZooKeeper) -> None:
    with pytest.raises(SessionError, match="no Pinot cluster nowhere"):
        OperationsStore(zookeeper.client(), "nowhere", "t_REALTIME").take(ONE)  # type: ignore[arg-type]


def test_a_spoilt_node_is_told(zookeeper: FakeZooKeeper) -> None:
    there = store(zookeeper)
    client = zookeeper.client()
    client.ensure_path(there.path)
    client.set(there.path, b"[1]")
    with pytest.raises(SessionError, match="cannot be read"):
        there.recall("repair")


def test_what_a_newer_release_remembers_stops_this_one_before_it_does_anything(
    zookeeper: FakeZooKeeper,
) -> None:
    with store(zookeeper).take(ONE) as lease:
        lease.remember("drain", "flipped")
    there, client = store(zookeeper), zookeeper.client()
    record = json.loads(client.get(there.path)[0])
    record["simpleFields"] |= {"format": "9", "needs": "4.5.6"}
    client.set(there.path, json.dumps(record).encode())
    before = client.get(there.path)[0]
    for do in (lambda: there.recall("drain"), lambda: there.take(TWO)):
        with pytest.raises(NeedsNewerRelease, match=r"4\.5\.6"):
            do()
    assert client.get(there.path)[0] == before
    assert there.holder() is None


class _Loses:
    """Loses the first reply, or the first request."""

    def __init__(self, arrives: bool) -> None:
        self.arrives = arrives
        self.done = False

    def __call__(self, what: str) -> _Loses:
        return self

    def __enter__(self) -> None:
        if not self.done and not self.arrives:
            self.done = True
            raise ConnectionLoss

    def __exit__(self, *_: object) -> None:
        if not self.done:
            self.done = True
            raise ConnectionLoss
