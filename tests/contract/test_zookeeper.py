"""What the session store needs of ZooKeeper and kazoo, held against a real server and the fake."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fakes.waiting import until
from fakes.zookeeper.memory import FakeClient, FakeZooKeeper
from fakes.zookeeper.server import zookeeper_server
from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.security import OPEN_ACL_UNSAFE, make_acl

from pinot_assets.zookeeper import close_client, connect

ROOTS = (f"/contract{n}" for n in itertools.count())
READ_ONLY = [make_acl("world", "anyone", read=True, admin=True)]

Client = Any
"""A `KazooClient` or a `FakeClient`."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.integration)])
def join(request: pytest.FixtureRequest) -> Iterator[Callable[..., Client]]:
    """Makes another client of the same ZooKeeper."""
    clients: list[Client] = []
    address = request.getfixturevalue("server") if request.param == "real" else ""
    fake = FakeZooKeeper()

    def make() -> Client:
        clients.append(connect(address) if address else fake.client())
        return clients[-1]

    yield make
    for client in clients:
        close_client(client)


@pytest.fixture
def zk(join: Callable[..., Client]) -> Client:
    return join()


@pytest.fixture
def root(zk: Client) -> str:
    path = next(ROOTS)
    zk.ensure_path(path)
    return path


def expire(client: Client) -> None:
    """End the client's session from elsewhere, as a time-out does, and wait until it has another one."""
    if isinstance(client, FakeClient):
        client.server.expire(client)
        return
    before = client.client_id
    twin = KazooClient(hosts=",".join(f"{h}:{p}" for h, p in client.hosts), client_id=before)
    twin.start()
    close_client(twin)
    until(lambda: client.connected and client.client_id not in (None, before), 30)


# --- nodes ---------------------------------------------------------------------------------------


def test_a_path_is_made_with_what_lies_above_and_again_without_harm(zk: Client, root: str) -> None:
    zk.ensure_path(f"{root}/a/b")
    zk.ensure_path(f"{root}/a/b")
    data, stat = zk.get(f"{root}/a/b")
    assert (data, stat.version, stat.ephemeralOwner) == (b"", 0, 0)
    assert zk.get_children(f"{root}/a") == ["b"]
    assert zk.exists(f"{root}/a").numChildren == 1


def test_children_are_those_directly_below(zk: Client, root: str) -> None:
    for path in ("a", "a/b", "ab", "c/d"):
        zk.ensure_path(f"{root}/{path}")
    assert sorted(zk.get_children(root)) == ["a", "ab", "c"]


def test_what_is_missing_is_told(zk: Client, root: str) -> None:
    assert zk.exists(f"{root}/no") is None
    for ask in (zk.get, zk.get_children, zk.delete, zk.get_acls):
        with pytest.raises(NoNodeError):
            ask(f"{root}/no")
    with pytest.raises(NoNodeError):
        zk.set(f"{root}/no", b"x")


def test_a_node_below_nothing_cannot_be_made(zk: Client, root: str) -> None:
    with pytest.raises(NoNodeError):
        zk.create(f"{root}/no/child", b"x")


def test_a_node_is_made_once(zk: Client, root: str) -> None:
    zk.create(f"{root}/a", b"one")
    with pytest.raises(NodeExistsError):
        zk.create(f"{root}/a", b"two")
    assert zk.get(f"{root}/a")[0] == b"one"


def test_the_version_grows_with_each_write_and_guards_the_next(zk: Client, root: str) -> None:
    zk.create(f"{root}/a", b"zero")
    assert zk.set(f"{root}/a", b"one", version=0).version == 1
    with pytest.raises(BadVersionError):
        zk.set(f"{root}/a", b"two", version=0)
    zk.set(f"{root}/a", b"any")
    data, stat = zk.get(f"{root}/a")
    assert (data, stat.version) == (b"any", 2)
    with pytest.raises(BadVersionError):
        zk.delete(f"{root}/a", version=1)
    zk.delete(f"{root}/a", version=2)
    assert zk.exists(f"{root}/a") is None


def test_a_node_with_children_stays(zk: Client, root: str) -> None:
    zk.ensure_path(f"{root}/a/b")
    with pytest.raises(NotEmptyError):
        zk.delete(f"{root}/a")


def test_a_node_is_deleted_with_what_lies_below_only_where_that_is_said(zk: Client, root: str) -> None:
    zk.ensure_path(f"{root}/a/b/c")
    with pytest.raises(NotEmptyError):
        zk.delete(f"{root}/a")
    zk.delete(f"{root}/a", recursive=True)
    assert zk.get_children(root) == []


def test_what_one_client_writes_another_reads(join: Callable[..., Client], zk: Client, root: str) -> None:
    zk.create(f"{root}/a", b"x")
    assert join().retry(join().get, f"{root}/a")[0] == b"x"


# --- ephemeral nodes and sessions ----------------------------------------------------------------


def test_an_ephemeral_node_lives_with_its_session(join: Callable[..., Client], zk: Client, root: str) -> None:
    other = join()
    transaction = other.transaction()
    transaction.create(f"{root}/lease", b"me", ephemeral=True)
    assert transaction.commit() == [f"{root}/lease"]
    assert zk.exists(f"{root}/lease").ephemeralOwner == other.client_id[0]
    assert zk.exists(f"{root}/lease").ephemeralOwner != zk.client_id[0]
    expire(other)
    assert zk.exists(f"{root}/lease") is None


def test_a_client_that_stops_lets_its_ephemeral_nodes_go(
    join: Callable[..., Client], zk: Client, root: str
) -> None:
    other = join()
    other.create(f"{root}/lease", b"me", ephemeral=True)
    other.stop()
    assert zk.exists(f"{root}/lease") is None


def test_after_its_session_expired_a_client_goes_on_with_another(zk: Client, root: str) -> None:
    before = zk.client_id
    zk.create(f"{root}/lease", b"me", ephemeral=True)
    expire(zk)
    assert zk.get_children(root) == []
    assert zk.client_id[0] != before[0]
    zk.create(f"{root}/lease", b"me again", ephemeral=True)
    assert zk.exists(f"{root}/lease").ephemeralOwner == zk.client_id[0]


# --- transactions --------------------------------------------------------------------------------


def test_a_transaction_answers_step_by_step(zk: Client, root: str) -> None:
    zk.create(f"{root}/a", b"")
    zk.create(f"{root}/gone", b"")
    transaction = zk.transaction()
    transaction.check(f"{root}/a", version=0)
    transaction.set_data(f"{root}/a", b"x", version=0)
    transaction.create(f"{root}/b", b"y")
    transaction.delete(f"{root}/gone", version=0)
    checked, stat, path, deleted = transaction.commit()
    assert (checked, stat.version, path, deleted) == (True, 1, f"{root}/b", True)
    assert zk.get(f"{root}/a")[0] == b"x"
    assert sorted(zk.get_children(root)) == ["a", "b"]


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda t, root: t.check(f"{root}/a", version=7), BadVersionError),
        (lambda t, root: t.check(f"{root}/no", version=0), NoNodeError),
        (lambda t, root: t.set_data(f"{root}/a", b"x", version=7), BadVersionError),
        (lambda t, root: t.set_data(f"{root}/no", b"x"), NoNodeError),
        (lambda t, root: t.create(f"{root}/a", b"x"), NodeExistsError),
        (lambda t, root: t.create(f"{root}/no/b", b"x"), NoNodeError),
        (lambda t, root: t.delete(f"{root}/a", version=7), BadVersionError),
        (lambda t, root: t.delete(f"{root}/no"), NoNodeError),
    ],
)
def test_a_transaction_is_all_or_nothing(
    zk: Client, root: str, spoil: Callable[[Any, str], None], error: type[Exception]
) -> None:
    zk.create(f"{root}/a", b"old")
    transaction = zk.transaction()
    transaction.set_data(f"{root}/a", b"new")  # the version that a later step wants is that of before
    transaction.set_data(f"{root}/a", b"newer")
    spoil(transaction, root)
    transaction.create(f"{root}/b", b"")
    results = transaction.commit()
    assert [type(r) for r in results] == [RolledBackError, RolledBackError, error, RuntimeInconsistency]
    data, stat = zk.get(f"{root}/a")
    assert (data, stat.version) == (b"old", 0)
    assert zk.get_children(root) == ["a"]


def test_steps_see_what_the_steps_before_did(zk: Client, root: str) -> None:
    transaction = zk.transaction()
    transaction.create(f"{root}/a", b"")
    transaction.set_data(f"{root}/a", b"x", version=0)
    transaction.check(f"{root}/a", version=1)
    transaction.create(f"{root}/a/b", b"y")
    assert not [r for r in transaction.commit() if isinstance(r, Exception)]
    assert zk.get(f"{root}/a/b")[0] == b"y"


# --- access lists --------------------------------------------------------------------------------


def test_a_node_has_the_access_list_that_it_was_given(zk: Client, root: str) -> None:
    zk.ensure_path(f"{root}/open", acl=OPEN_ACL_UNSAFE)
    assert zk.get_acls(f"{root}/open")[0] == OPEN_ACL_UNSAFE
    zk.default_acl = OPEN_ACL_UNSAFE
    zk.ensure_path(f"{root}/ours")
    assert zk.get_acls(f"{root}/ours")[0] == OPEN_ACL_UNSAFE
    zk.set_acls(f"{root}/ours", READ_ONLY)
    assert zk.get_acls(f"{root}/ours")[0] == READ_ONLY
    assert zk.get(f"{root}/ours")[1].version == 0


# --- trouble, which only the fake can make at will -----------------------------------------------


@contextmanager
def _lost_before(what: str) -> Iterator[None]:
    raise ConnectionLoss
    yield


@contextmanager
def _lost_after(what: str) -> Iterator[None]:
    yield
    raise ConnectionLoss


def test_a_lost_request_has_no_effect_and_a_lost_reply_has() -> None:
    client = FakeZooKeeper().client()
    client.around = _lost_before
    with pytest.raises(ConnectionLoss):
        client.create("/a", b"")
    client.around = _lost_after
    with pytest.raises(ConnectionLoss):
        client.create("/b", b"")
    transaction = client.transaction()
    transaction.create("/c", b"")
    with pytest.raises(ConnectionLoss):
        transaction.commit()
    assert sorted(client.get_children("/")) == ["b", "c"]


def test_what_is_retried_is_asked_again() -> None:
    client, losses = FakeZooKeeper().client(), [ConnectionLoss(), SessionExpiredError()]

    def ask() -> str:
        if losses:
            raise losses.pop()
        return "answer"

    assert client.retry(ask) == "answer"


def test_writes_are_counted_with_their_bytes() -> None:
    zookeeper = FakeZooKeeper()
    client = zookeeper.client()
    client.create("/a", b"four")
    transaction = client.transaction()
    transaction.set_data("/a", b"12345")
    transaction.create("/b", b"123")
    transaction.commit()
    client.get("/a")
    refused = client.transaction()
    refused.check("/a", version=9)
    refused.commit()
    assert [(w.paths, w.bytes) for w in zookeeper.writes] == [
        (("create /a",), 4),
        (("set /a", "create /b"), 8),
    ]


def test_a_node_says_when_it_was_last_written(zk: Client, root: str) -> None:
    zk.create(f"{root}/w", b"old")
    _, made = zk.get(f"{root}/w")
    until(lambda: zk.set(f"{root}/w", b"new").mtime > made.mtime)
    _, written = zk.get(f"{root}/w")
    assert (written.ctime, written.mtime > made.mtime) == (made.ctime, True)


def test_a_transaction_deletes_a_node_with_its_children(zk: Client, root: str) -> None:
    zk.ensure_path(f"{root}/p/a")
    zk.create(f"{root}/p/lease", b"", ephemeral=True)
    transaction = zk.transaction()
    for path in ("p/a", "p/lease", "p"):
        transaction.delete(f"{root}/{path}")
    assert transaction.commit() == [True, True, True]
    assert zk.exists(f"{root}/p") is None
