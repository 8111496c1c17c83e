"""Lease and store on a real ZooKeeper: one owner, fenced writes, lost replies (rules R2, R24)."""

from __future__ import annotations

import itertools
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from fakes.zookeeper.frames import read_frame, write_frame
from kazoo.client import KazooClient, TransactionRequest

from pinot_assets.core.connections import Timeouts, Waits
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import LeaseLost, SessionError, SessionHeld
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.state import Mode, ObjectRef, Owner, Session, State
from pinot_assets.zookeeper import close_client, connect

pytestmark = pytest.mark.integration

TABLES = (f"lease{n}_OFFLINE" for n in itertools.count())
ME, YOU = (Owner(run, "host", 7, 1_700_000_000_000) for run in ("run-me", "run-you"))


@pytest.fixture
def table() -> str:
    return next(TABLES)


@contextmanager
def open_client(hosts: str) -> Iterator[KazooClient]:
    client = connect(hosts)
    try:
        yield client
    finally:
        close_client(client)


@contextmanager
def open_store(hosts: str, table: str) -> Iterator[SessionStore]:
    with open_client(hosts) as client:
        yield SessionStore(client, "pinot", table)


def a_session(seq: int = 1, **changes: Any) -> Session:
    session = Session(f"cp{seq}-00000f", seq, Mode.SYNC, "fp", 5, ObjectRef("sessions/plan", "ab"))
    return replace(session, **changes)


def expire(hosts: str, client: KazooClient) -> None:
    """End the client's ZooKeeper session from elsewhere, as a time-out does."""
    twin = KazooClient(hosts=hosts, client_id=client.client_id)
    twin.start()
    close_client(twin)


# --- the lease -----------------------------------------------------------------------------------


def test_a_lease_is_taken_and_released(zookeeper: str, table: str) -> None:
    with open_store(zookeeper, table) as store:
        assert store.pointer().epoch == 0
        assert store.holder() is None
        lease = store.take_lease(ME)
        assert store.holder() == ME
        assert store.pointer().owner == ME
        lease.assert_held()
        lease.release()
        assert store.holder() is None
        assert store.pointer().owner is None
        with pytest.raises(LeaseLost):
            lease.assert_held()
        with pytest.raises(LeaseLost):
            lease.write(pointer=replace(lease.pointer, next_seq=99))
        assert store.pointer().next_seq == 1


def test_a_held_lease_names_its_holder_and_since_when(zookeeper: str, table: str) -> None:
    with open_store(zookeeper, table) as mine, open_store(zookeeper, table) as yours:
        lease = mine.take_lease(ME)
        with pytest.raises(SessionHeld, match=r"run-me on host \(pid 7\) since 2023-11-14 22:13:20 UTC"):
            yours.take_lease(YOU)
        lease.assert_held()
        assert mine.pointer() == lease.pointer


def test_the_epoch_grows_with_each_owner(zookeeper: str, table: str) -> None:
    with open_store(zookeeper, table) as store:
        for epoch in (1, 2, 3):
            lease = store.take_lease(ME)
            assert lease.pointer.epoch == epoch
            assert lease.took_over_from is None
            lease.release()


def test_a_killed_holder_loses_the_lease_by_time_out(zookeeper: str, table: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, zookeeper, table], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == "held\n"
        with open_store(zookeeper, table) as store:
            with pytest.raises(SessionHeld, match="run-child"):
                store.take_lease(ME)
            child.send_signal(signal.SIGKILL)
            child.wait()
            lease = _take_soon(store)
            assert lease.pointer.epoch == 2
            assert lease.took_over_from is not None
            assert lease.took_over_from.run == "run-child"
            slept: list[float] = []
            lease.wait_out_former_owner(slept.append)
            lease.wait_out_former_owner(slept.append)
            assert len(slept) == 1
            assert 0 < slept[0] <= store.waits.pinot_write


def test_r02_after_a_write_of_unknown_end_whoever_writes_next_waits(zookeeper: str, table: str) -> None:
    """It may still be on its way to Pinot, as one of a dead owner."""
    with open_store(zookeeper, table) as store:
        lease = store.take_lease(ME)
        lease.left_unknown()
        lease.release()
        assert store.holder() is None
        slept: list[float] = []
        lease = store.take_lease(YOU)
        lease.release()  # it wrote nothing, and did not wait
        lease = store.take_lease(YOU)
        lease.wait_out_former_owner(slept.append)
        lease.release()
        assert len(slept) == 1
        assert slept[0] > store.waits.pinot_write - 5
        assert store.pointer().owner is None
        lease = store.take_lease(ME)
        lease.wait_out_former_owner(slept.append)
        assert len(slept) == 1
        lease.left_unknown()
        lease.wait_out_former_owner(slept.append)  # itself, too
        assert len(slept) == 2


def test_r02_what_was_waited_for_long_enough_is_not_waited_for_again(zookeeper: str, table: str) -> None:
    with open_store(zookeeper, table) as store:
        store.waits = Waits(pinot_write=0.01)
        lease = store.take_lease(ME)
        lease.left_unknown()
        time.sleep(0.02)
        lease.release()
        assert store.pointer().owner is None


_HOLDER = """
import sys, time
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.state import Owner
from pinot_assets.zookeeper import connect
store = SessionStore(connect(sys.argv[1], session_s=2), "pinot", sys.argv[2])
store.take_lease(Owner("run-child", "host", 1, 0))
print("held", flush=True)
time.sleep(600)
"""


def _take_soon(store: SessionStore) -> Any:
    end = threading.Event()
    timer = threading.Timer(30, end.set)
    timer.start()
    try:
        while True:
            try:
                return store.take_lease(ME)
            except SessionHeld:
                assert not end.wait(0.1), "the dead holder's lease did not go"
    finally:
        timer.cancel()


def test_of_racing_processes_one_wins(zookeeper: str, table: str) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACER, zookeeper, table, str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = [racer.stdout.readline() for racer in racers if racer.stdout]
    with open_store(zookeeper, table) as store:
        holder = store.holder()
        pointer = store.pointer()
    for racer in racers:
        racer.communicate("end\n", timeout=30)
    assert sorted(said) == ["held\n", "won\n"]
    assert holder is not None
    assert holder.run == f"run-{said.index('won' + chr(10))}"
    assert pointer.epoch == 1
    assert pointer.owner == holder


_RACER = """
import sys
from pinot_assets.errors import SessionHeld
from pinot_assets.session.values.state import Owner
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.zookeeper import connect
store = SessionStore(connect(sys.argv[1]), "pinot", sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
try:
    store.take_lease(Owner("run-" + sys.argv[3], "host", 1, 0))
    print("won", flush=True)
except SessionHeld:
    print("held", flush=True)
sys.stdin.readline()
"""


# --- fencing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("writes", ["pointer", "session", "both"])
def test_an_owner_whose_session_ended_writes_nothing(zookeeper: str, table: str, writes: str) -> None:
    with open_client(zookeeper) as client, open_store(zookeeper, table) as witness:
        store = SessionStore(client, "pinot", table)
        lease = store.take_lease(ME)
        before = witness.pointer()
        expire(zookeeper, client)
        with pytest.raises(LeaseLost, match="nothing more was changed"):
            lease.write(**_changes(lease.pointer, writes))
        assert witness.pointer() == before
        assert witness.sessions() == []
        # A new owner comes in, and the old one still has nothing to say.
        new = witness.take_lease(YOU)
        with pytest.raises(LeaseLost, match="run-you"):
            lease.write(**_changes(lease.pointer, writes))
        with pytest.raises(LeaseLost, match="run-you"):
            lease.assert_held()
        lease.release()
        new.assert_held()
        assert witness.holder() == YOU
        assert witness.pointer() == new.pointer


def _changes(pointer: Any, writes: str) -> JsonObject:
    both = {"pointer": replace(pointer, next_seq=99), "session": a_session(98)}
    return {name: value for name, value in both.items() if writes in (name, "both")}


def test_nobody_but_the_owner_decides_epoch_and_owner(zookeeper: str, table: str) -> None:
    with open_store(zookeeper, table) as store:
        lease = store.take_lease(ME)
        lease.write(pointer=replace(lease.pointer, next_seq=4, epoch=70, owner=YOU))
        assert (lease.pointer.next_seq, lease.pointer.epoch, lease.pointer.owner) == (4, 1, ME)
        assert store.pointer() == lease.pointer


def test_pointer_and_session_are_written_together_or_not_at_all(zookeeper: str, table: str) -> None:
    with open_store(zookeeper, table) as store:
        lease = store.take_lease(ME)
        session = a_session(3)
        lease.write(pointer=replace(lease.pointer, active_session="cp3"), session=session)
        assert store.active_session(store.pointer()) == session
        stale = replace(session, state=State.SWITCH)
        lease._pointer_version -= 1  # as if somebody else had written the pointer
        with pytest.raises(LeaseLost):
            lease.write(pointer=lease.pointer, session=stale)
        with pytest.raises(LeaseLost):
            lease.write(session=stale)
        assert store.session("cp3") == session


# --- what stands in ZooKeeper --------------------------------------------------------------------


def test_the_session_stands_where_seed_000_wants_it(zookeeper: str, table: str) -> None:
    path = f"/pinot/PROPERTYSTORE/MINION_TASK_METADATA/{table}/FileIngestionTask/consistentPush"
    with open_client(zookeeper) as client:
        lease = SessionStore(client, "pinot", table).take_lease(ME)
        session = a_session(17, state=State.SWITCH, retry_count=2)
        lease.write(pointer=replace(lease.pointer, active_session="cp17"), session=session)
        node = json.loads(client.get(f"{path}/cp17")[0])
        assert set(node) == {"id", "simpleFields", "mapFields", "listFields"}
        assert node["id"] == "cp17"
        assert (node["simpleFields"]["state"], node["simpleFields"]["retryCount"]) == ("SWITCH", "2")
        pointer = json.loads(client.get(path)[0])
        assert pointer["simpleFields"]["activeSession"] == "cp17"
        assert all(isinstance(v, str) for n in (node, pointer) for v in n["simpleFields"].values())
        assert client.exists(f"{path}/lease").ephemeralOwner == client.client_id[0]


def test_the_two_newest_sessions_are_kept(zookeeper: str, table: str) -> None:
    with open_store(zookeeper, table) as store:
        lease = store.take_lease(ME)
        for seq in (8, 9, 10, 11):  # cp10 sorts before cp9 as text
            node = f"cp{seq}"
            lease.write(pointer=replace(lease.pointer, active_session=node), session=a_session(seq))
            lease.prune()
        assert [s.seq for s in store.sessions()] == [10, 11]


def test_the_active_session_is_never_pruned(zookeeper: str, table: str) -> None:
    with open_store(zookeeper, table) as store:
        lease = store.take_lease(ME)
        lease.write(pointer=replace(lease.pointer, active_session="cp1"), session=a_session(1))
        for seq in (2, 3, 4):
            lease.write(session=a_session(seq))
        lease.prune()
        assert [s.seq for s in store.sessions()] == [1, 3, 4]


def test_a_node_that_is_no_session_is_reported_with_its_place(zookeeper: str, table: str) -> None:
    with open_client(zookeeper) as client:
        store = SessionStore(client, "pinot", table)
        lease = store.take_lease(ME)
        client.create(f"{store.path}/cp5", b"{}")
        lease.write(pointer=replace(lease.pointer, active_session="cp5"))
        with pytest.raises(SessionError, match="cp5"):
            store.active_session(store.pointer())
        with pytest.raises(SessionError, match="no session cp6"):
            store.session("cp6")


def test_a_server_that_does_not_answer_is_named() -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{door.getsockname()[1]}"
        with pytest.raises(SessionError, match=f"{where} does not answer"):
            connect(where, timeout_s=0.3)


def test_every_change_of_pinot_is_over_before_the_lease_can_pass_on() -> None:
    assert Timeouts().longest_write <= Waits().pinot_write < Waits().lease


def test_writes_are_few_and_small_whatever_the_number_of_files(
    make_addressed_world: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_addressed_world("sync")
    sizes: list[int] = []
    commit = TransactionRequest.commit

    def counting(transaction: TransactionRequest) -> Any:
        sizes.append(sum(len(getattr(op, "data", b"") or b"") for op in transaction.operations))
        return commit(transaction)

    monkeypatch.setattr(TransactionRequest, "commit", counting)
    world.write("P1")
    world.run()
    of_one = len(sizes)
    sizes.clear()
    world.write(*(f"F{n}" for n in range(20)))
    world.run()
    assert len(sizes) <= of_one
    assert max(sizes) < 6_000


# --- lost replies (R24) --------------------------------------------------------------------------

MULTI = 14
"""Operation code of a ZooKeeper transaction."""


class Proxy:
    """Passes ZooKeeper's packets on, and loses the next transaction or the reply to it when told to."""

    def __init__(self, server: str) -> None:
        host, port = server.split(":")
        self._server = host, int(port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._door.getsockname()[1]}"
        self.lose: str | None = None
        self.lost = 0
        self._sockets: list[socket.socket] = [self._door]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def close(self) -> None:
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join(10)

    def _start(self, work: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self._sockets += [client, server]
            cut = threading.Event()
            self._start(self._requests, client, server, cut)
            self._start(self._replies, client, server, cut)

    def _requests(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while (request := read_frame(client)) is not None:
                if self.lose is not None and _is_transaction(request):
                    how, self.lose = self.lose, None
                    self.lost += 1
                    cut.set()
                    if how == "request":
                        break
                write_frame(server, request)
        _hang_up(client if cut.is_set() and self.lose is None else server)

    def _replies(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while (reply := read_frame(server)) is not None:
                if cut.is_set():
                    break
                write_frame(client, reply)
        _hang_up(client)
        _hang_up(server)


def _is_transaction(request: bytes) -> bool:
    return len(request) >= 8 and struct.unpack(">i", request[4:8])[0] == MULTI


def _hang_up(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(zookeeper: str) -> Iterator[Proxy]:
    proxy = Proxy(zookeeper)
    yield proxy
    proxy.close()


@pytest.mark.parametrize("lose", ["request", "reply"])
def test_a_lost_lease_transaction_is_looked_up(zookeeper: str, proxy: Proxy, table: str, lose: str) -> None:
    with open_store(proxy.address, table) as store, open_store(zookeeper, table) as witness:
        proxy.lose = lose
        lease = store.take_lease(ME)
        assert proxy.lost == 1
        assert lease.pointer.epoch == witness.pointer().epoch == 1
        lease.write(pointer=replace(lease.pointer, next_seq=5))
        assert witness.pointer().next_seq == 5


@pytest.mark.parametrize("lose", ["request", "reply"])
@pytest.mark.parametrize("writes", ["pointer", "session", "both"])
def test_a_lost_write_is_looked_up(zookeeper: str, proxy: Proxy, table: str, lose: str, writes: str) -> None:
    with open_store(proxy.address, table) as store, open_store(zookeeper, table) as witness:
        lease = store.take_lease(ME)
        proxy.lose = lose
        lease.write(**_changes(lease.pointer, writes))
        assert proxy.lost == 1
        assert witness.pointer().next_seq == (1 if writes == "session" else 99)
        assert [s.seq for s in witness.sessions()] == ([] if writes == "pointer" else [98])
        # The lease goes on from there.
        lease.write(pointer=replace(lease.pointer, next_seq=100), session=a_session(99))
        assert witness.pointer().next_seq == 100


def test_a_wrong_cluster_name_stores_nothing(zookeeper: str) -> None:
    client = connect(zookeeper)
    try:
        with pytest.raises(SessionError, match=r"no Pinot cluster nosuch in this ZooKeeper: it has .*pinot"):
            SessionStore(client, "nosuch", "t_OFFLINE").take_lease(ME)
        assert client.exists("/nosuch") is None
    finally:
        close_client(client)


def test_a_zookeeper_that_is_gone_is_a_sentence(zookeeper: str) -> None:
    client = connect(zookeeper)
    store = SessionStore(client, "pinot", "t_OFFLINE")
    close_client(client)
    with pytest.raises(SessionError, match="does not answer"):
        store.pointer()
