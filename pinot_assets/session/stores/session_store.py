"""One table's nodes in ZooKeeper, and its lease: the right to write, each write as one fenced transaction.

A transaction is `{check lease, check pointer version, set …}`, so a driver that lost its lease can
change nothing here (docs/design/session.md#fenced-writes, rule R24).
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
)

from pinot_assets.core.connections import Waits
from pinot_assets.core.stored_format import plain
from pinot_assets.core.untrusted import reading, whole_number
from pinot_assets.errors import LeaseLost, NodeUnreadable, SessionError, SessionHeld
from pinot_assets.session.stores import nodes
from pinot_assets.session.stores.nodes import first_error, make_own_path
from pinot_assets.session.values.state import (
    Outcome,
    Owner,
    Pointer,
    Session,
    pointer_from_bytes,
    pointer_to_bytes,
    session_from_bytes,
    session_to_bytes,
)
from pinot_assets.zookeeper import answered, require_cluster

T = TypeVar("T")

KEPT_SESSIONS = 2
"""Sessions whose nodes stay readable, the active one included (docs/design/session.md#f14)."""

SENDINGS = 3
"""How often a transaction is sent that provably never arrived."""

UNKNOWN: Final = (ConnectionLoss, SessionExpiredError, OperationTimeoutError)
"""Errors after which a transaction may have happened."""


class SessionStore:
    """One table's consistent-push nodes: what stands there, and who may change it.

    :param client: a started kazoo client.
    :param cluster: the Helix cluster name, first element of every Pinot path.
    :param table: table name with type, `flights_OFFLINE`.
    :ivar waits: how long its owners wait, and for what.
    """

    def __init__(self, client: KazooClient, cluster: str, table: str, waits: Waits | None = None) -> None:
        self.zk = client
        self._cluster = cluster
        self.table = table
        self.waits = waits or Waits()
        self.path = f"/{cluster}/PROPERTYSTORE/MINION_TASK_METADATA/{table}/FileIngestionTask/consistentPush"

    @answered()
    def pointer(self) -> Pointer:
        """The pointer as it stands; a never-set one when the table has none yet."""
        return self.read_pointer()[0]

    @answered()
    def session(self, node: str) -> Session:
        """One session by node name (`cp17`).

        :raises SessionError: no such session, or its node cannot be parsed.
        """
        if (data := self.content(node)) is None:
            raise SessionError(f"{self.table} has no session {node}")
        return self._parse(node, session_from_bytes, data)

    @answered()
    def content(self, node: str = "") -> bytes | None:
        """What stands in a session's node, without a name in the pointer's; None where there is none."""
        try:
            data: bytes = self.zk.retry(self.zk.get, f"{self.path}/{node}" if node else self.path)[0]
        except NoNodeError:
            return None
        return data

    def active_session(self, pointer: Pointer) -> Session | None:
        """The session without an outcome, if there is one.

        Not one that has ended, or whose node was pruned: then the pointer alone was put back to a backup.

        :raises SessionError: its node cannot be parsed.
        """
        if pointer.active_session not in self.session_nodes():
            return None
        session = self.session(pointer.active_session)
        return session if session.outcome is Outcome.OPEN else None

    def sessions(self) -> list[Session]:
        """The kept sessions that can be read, oldest first: what is over stops nobody."""
        return [session for node in self.session_nodes() if (session := self._readable(node)) is not None]

    def newest_session(self) -> Session | None:
        """The newest session; None where there is none, or it cannot be read."""
        names = self.session_nodes()
        return self._readable(names[-1]) if names else None

    def _readable(self, node: str) -> Session | None:
        try:
            return self.session(node)
        except NodeUnreadable:
            return None

    @answered()
    def session_nodes(self) -> list[str]:
        """Names of their nodes, oldest first; one that cannot be read is among them."""
        names = nodes.children(self.zk, self.path)
        numbers = ((whole_number(name[2:]), name) for name in names if name.startswith("cp"))
        return [name for _, name in sorted((number, name) for number, name in numbers if number is not None)]

    @answered()
    def holder(self) -> Owner | None:
        """Who holds the lease now, None when it is free."""
        return nodes.lease_holder(self.zk, self.path)

    @answered()
    def table_made_ms(self) -> int | None:
        """When Pinot made the table, by ZooKeeper's clock; None where its config is not here."""
        stat = self.zk.retry(self.zk.exists, f"/{self._cluster}/PROPERTYSTORE/CONFIGS/TABLE/{self.table}")
        return int(stat.ctime) if stat is not None else None

    @answered()
    def owner(self) -> str:
        """The cluster: its name and the birth of its properties' node in ZooKeeper, which no two share."""
        stat = self.zk.retry(self.zk.exists, f"/{self._cluster}/PROPERTYSTORE")
        born = f"{stat.czxid:x}-{stat.ctime}" if stat is not None else "unborn"
        return f"{self._cluster}-{born}"

    @answered()
    def pointer_written_ms(self) -> int | None:
        """When the pointer was last written, by ZooKeeper's clock; None where there is none."""
        stat = self.zk.retry(self.zk.exists, self.path)
        return int(stat.mtime) if stat is not None else None

    @answered()
    def segment_names(self) -> list[str]:
        """All segments that Pinot has metadata of in this table."""
        return nodes.children(self.zk, f"/{self._cluster}/PROPERTYSTORE/SEGMENTS/{self.table}")

    @answered()
    def take_lease(self, owner: Owner) -> Lease:
        """Become the table's one writer: create the ephemeral lease and grow the epoch, in one transaction.

        :raises SessionHeld: another run holds it; names the run and since when.
        :raises SessionError: no Pinot cluster of that name lives in this ZooKeeper, or none answers.
        """
        # Under a wrong cluster name the session would be stored where nobody looks for it.
        require_cluster(self.zk, self._cluster)
        make_own_path(self.zk, self.path)
        for _ in range(5):
            pointer, version, was_set = self.read_pointer()
            mine = replace(pointer, epoch=pointer.epoch + 1, owner=owner)
            transaction = self.zk.transaction()
            transaction.create(f"{self.path}/lease", json.dumps(plain(owner)).encode(), ephemeral=True)
            transaction.set_data(self.path, pointer_to_bytes(mine), version=version)
            try:
                results = transaction.commit()
            except UNKNOWN:
                if not (self.ask_if_lease_is_ours() and self.pointer() == mine):
                    continue
                results = []
            if (failure := first_error(results)) is None:
                # An owner that released its lease took its name off the pointer, too.
                died = was_set and pointer.owner is not None
                return Lease(self, mine, self.version(), took_over_from=pointer.owner if died else None)
            if isinstance(failure, NodeExistsError):
                if (holder := self.holder()) is None:
                    continue
                raise SessionHeld(
                    f"{self.table} is paused",
                    why=f"held by {holder}",
                    hint="wait for that run; a dead one lets go within "
                    f"{self.waits.lease:.0f} s of its last heartbeat",
                )
            if isinstance(failure, NoAuthError):
                raise failure
            if not isinstance(failure, BadVersionError):
                raise SessionError(f"the lease of {self.table} could not be taken", why=repr(failure))
        raise SessionError(
            f"the lease of {self.table} could not be taken", why="five attempts met another writer"
        )

    def let_go(self) -> None:
        """End the ZooKeeper session: the lease is free at once, and nothing more can be written from here."""
        self.zk.stop()

    # --- for whoever writes -------------------------------------------------------------------------

    def read_pointer(self) -> tuple[Pointer, int, bool]:
        """Pointer, node version, and whether it was ever set."""
        try:
            data, stat = self.zk.retry(self.zk.get, self.path)
        except NoNodeError:
            return Pointer(), -1, False
        if not data:
            return Pointer(), stat.version, False
        return self._parse("pointer", pointer_from_bytes, data), stat.version, True

    def version(self) -> int:
        """The node version of the pointer."""
        return int(self.zk.retry(self.zk.exists, self.path).version)

    def ask_if_lease_is_ours(self) -> bool:
        """Whether the lease was taken by this client's ZooKeeper session."""
        return nodes.ask_if_lease_is_ours(self.zk, self.path)

    def _parse(self, name: str, parse: Callable[[bytes, str], T], data: bytes) -> T:
        what = f"the consistent-push node {name} of {self.table}"
        hint = (
            f"look at {self.path} in Pinot's ZooKeeper browser and restore it from a backup. Without one, "
            "delete the node of a session that is over; for any other, delete that path with all below it: "
            "the next run makes a new one of what is visible"
        )
        with reading(what, NodeUnreadable, hint=hint):
            return parse(data, what)


class Lease:
    """The right to write, as long as the ZooKeeper session lives and nobody took over.

    :ivar pointer: the pointer as this owner last wrote it.
    :ivar session: the session as this owner last wrote it, None as long as it has written none.
    :ivar on_progress: called after every write, and before every one to Pinot.
    :ivar took_over_from: who may still have a Pinot call under way: the owner before, if it never let go
        itself, or did not know what became of its last one; None after a clean release.
    """

    def __init__(
        self, store: SessionStore, pointer: Pointer, version: int, *, took_over_from: Owner | None
    ) -> None:
        self._store = store
        self._zk = store.zk
        self.pointer = pointer
        self.session: Session | None = None
        self._pointer_version = version
        self.took_over_from = took_over_from
        self.on_progress: Callable[[], None] = lambda: None
        self._since = time.monotonic()

    def write(self, *, pointer: Pointer | None = None, session: Session | None = None) -> None:
        """Store pointer, session or both, in one fenced transaction.

        :raises LeaseLost: this owner has been replaced, or its ZooKeeper session ended. Nothing was written.
        """
        if pointer is not None:
            pointer = replace(pointer, epoch=self.pointer.epoch, owner=self.pointer.owner)
        for _ in range(SENDINGS):
            try:
                failure = first_error(self._transaction(pointer, session).commit())
            except KazooException as error:
                failure = None if self._landed(pointer, session) else error
                if isinstance(failure, UNKNOWN) and self._ask_if_held():
                    continue  # it never arrived
            break
        if failure is not None:
            raise self._lost(failure) from failure
        self.on_progress()
        self.session = session or self.session
        if pointer is not None:
            self.pointer = pointer
            self._pointer_version += 1

    def _transaction(self, pointer: Pointer | None, session: Session | None) -> TransactionRequest:
        path = self._store.path
        transaction = self._zk.transaction()
        transaction.check(f"{path}/lease", version=0)
        if pointer is None:
            transaction.check(path, version=self._pointer_version)
        else:
            transaction.set_data(path, pointer_to_bytes(pointer), version=self._pointer_version)
        if session is not None:
            node, data = f"{path}/{session.node}", session_to_bytes(session)
            if self._zk.retry(self._zk.exists, node) is None:
                transaction.create(node, data)
            else:
                transaction.set_data(node, data)
        return transaction

    def assert_held(self) -> None:
        """Look before a write to Pinot (rule R2).

        :raises LeaseLost: somebody else owns the table now.
        """
        if not self._ask_if_held():
            raise self._lost(None)
        self.on_progress()

    def wait_out_former_owner(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Before a write to Pinot: let a call of a dead owner reach its deadline (rule R2)."""
        if self.took_over_from is not None:
            if self._left_to_wait > 0:
                sleep(self._left_to_wait)
            self.took_over_from = None

    def left_unknown(self) -> None:
        """What became of a write to Pinot is not known: whoever writes next, this owner or another one, waits
        for it as for that of a dead owner."""
        self.took_over_from, self._since = self.pointer.owner, time.monotonic()

    @property
    def _left_to_wait(self) -> float:
        return self._store.waits.pinot_write - (time.monotonic() - self._since)

    @answered()
    def prune(self) -> None:
        """Delete the nodes of all but the newest sessions."""
        for node in self._store.session_nodes()[:-KEPT_SESSIONS]:
            if node != self.pointer.active_session:
                self._zk.delete(f"{self._store.path}/{node}")

    def forget(self) -> None:
        """Delete all that stands here of the table, the lease with it, in one transaction: Pinot has no such
        table, and one that is made again under its name begins anew.

        :raises LeaseLost: this owner has been replaced, or its ZooKeeper session ended. Nothing was deleted.
        """
        path = self._store.path
        transaction = self._zk.transaction()
        transaction.check(path, version=self._pointer_version)
        for node in self._store.session_nodes():
            transaction.delete(f"{path}/{node}")
        transaction.delete(f"{path}/lease", version=0)
        transaction.delete(path)
        try:
            failure = first_error(transaction.commit())
        except KazooException as error:
            failure = error if self._store.pointer_written_ms() is not None else None
        if failure is not None:
            raise self._lost(failure)

    def release(self) -> None:
        """Let go: the name leaves the pointer and the lease node goes, in one transaction. Never raises.

        A name stays as long as a call of its bearer may be under way: the next owner waits for that.
        """
        path = self._store.path
        transaction = self._zk.transaction()
        transaction.delete(f"{path}/lease", version=0)
        free = replace(self.pointer, owner=self.took_over_from if self._left_to_wait > 0 else None)
        transaction.set_data(path, pointer_to_bytes(free), version=self._pointer_version)
        # Not ours any more, or unreachable: the ephemeral node goes with the session.
        with contextlib.suppress(KazooException):
            transaction.commit()

    def _ask_if_held(self) -> bool:
        try:
            return self._store.ask_if_lease_is_ours() and self._store.version() == self._pointer_version
        except KazooException:
            return False

    def _landed(self, pointer: Pointer | None, session: Session | None) -> bool:
        """After a lost reply: whether the values now stored are ours (rule R24)."""
        with contextlib.suppress(KazooException, SessionError):
            version = self._pointer_version + (pointer is not None)
            is_ours = self._store.ask_if_lease_is_ours() and self._store.version() == version
            return is_ours and (session is None or self._store.session(session.node) == session)
        return False

    def _lost(self, cause: BaseException | None) -> LeaseLost:
        holder: Owner | None = None
        with contextlib.suppress(SessionError):
            holder = self._store.holder()
        mine = holder is None or holder == self.pointer.owner
        why = (repr(cause) if cause else "its ZooKeeper session ended") if mine else f"it is held by {holder}"
        return LeaseLost(
            f"this run no longer holds the lease of {self._store.table}; nothing more was changed",
            why=why,
            hint="the next trigger goes on from what is stored",
        )
