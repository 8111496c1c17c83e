"""A lease that is lost says why in words, and not by the name of a class."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from fakes.zookeeper.memory import FakeZooKeeper
from kazoo import exceptions
from kazoo.client import KazooClient

from pinot_assets.errors import LeaseLost
from pinot_assets.realtime.lease import OperationsStore
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.state import Owner
from pinot_assets.zookeeper import zookeeper_words

ME = Owner("me", "host", 1, 1_000)


@pytest.fixture
def client() -> KazooClient:
    client = FakeZooKeeper().client()
    client.ensure_path("/pinot/PROPERTYSTORE")
    return cast(KazooClient, client)


def test_a_lease_node_that_is_gone(client: KazooClient) -> None:
    store = SessionStore(client, "pinot", "t_OFFLINE")
    lease = store.take_lease(ME)
    client.delete(f"{store.path}/lease")
    with pytest.raises(LeaseLost) as lost:
        lease.write(pointer=replace(lease.pointer, next_seq=9))
    assert lost.value.why is not None
    assert lost.value.why.startswith("the node is gone")


def test_a_pointer_that_somebody_else_wrote(client: KazooClient) -> None:
    store = SessionStore(client, "pinot", "t_OFFLINE")
    lease = store.take_lease(ME)
    client.set(store.path, client.get(store.path)[0])
    with pytest.raises(LeaseLost) as lost:
        lease.write(pointer=replace(lease.pointer, next_seq=9))
    assert lost.value.why == "another run has written the node since"


def test_the_lease_of_an_operation(client: KazooClient) -> None:
    lease = OperationsStore(client, "pinot", "t_REALTIME").take(ME)
    client.delete(f"{lease.path}/lease")
    with pytest.raises(LeaseLost) as lost:
        lease.remember("repair", "tried")
    assert lost.value.why is not None
    assert "()" not in lost.value.why


def test_while_zookeeper_is_away_a_release_waits_for_nothing() -> None:
    """Kazoo keeps a request until it has a connection again: a run that had failed hung there for ever."""
    fake = FakeZooKeeper().client()
    fake.ensure_path("/pinot/PROPERTYSTORE")
    client = cast(KazooClient, fake)
    leases = [
        SessionStore(client, "pinot", "t_OFFLINE").take_lease(ME),
        OperationsStore(client, "pinot", "t_REALTIME").take(ME),
    ]
    fake.connected, before = False, len(fake.server.nodes)
    for lease in leases:
        lease.release()
    assert len(fake.server.nodes) == before
    fake.connected = True
    for lease in leases:
        lease.release()
    assert len(fake.server.nodes) == before - len(leases)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (exceptions.ConnectionLoss(), "the connection to ZooKeeper was lost"),
        (exceptions.ConnectionClosedError(), "the connection to ZooKeeper is closed"),
        (exceptions.SessionExpiredError(), "the ZooKeeper session ended"),
        (exceptions.QuotaExceededError(), "ZooKeeper's error is QuotaExceededError"),
        (exceptions.LockTimeout("in 5 s"), "ZooKeeper's error is LockTimeout: in 5 s"),
    ],
)
def test_each_error_has_words(error: Exception, words: str) -> None:
    assert zookeeper_words(error) == words
