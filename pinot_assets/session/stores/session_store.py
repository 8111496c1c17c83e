"""One table's nodes in ZooKeeper, and its lease: the right to write. Each write is one fenced transaction.

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
from pinot_assets.zookeeper import answered, require_cluster, zookeeper_words

T = TypeVar("T")

KEPT_SESSIONS = 2
"""Number of sessions whose nodes are kept, including the open one (docs/design/session.md#f14)."""

SENDINGS = 3
"""How often a transaction is sent at most, while it provably never arrived."""

UNKNOWN: Final = (ConnectionLoss, SessionExpiredError, OperationTimeoutError)
"""Errors that do not show whether the transaction happened."""


class SessionStore:
    """Reads one table's consistent-push nodes, and gives the lease to whoever may change them.

    :param client: a started kazoo client.
    :param cluster: the Helix cluster name, first element of every Pinot path.
    :param table: table name with type, `flights_OFFLINE`.
    :ivar waits: the times for which owners of the lease wait.
    """

    def __init__(self, client: KazooClient, cluster: str, table: str, waits: Waits | None = None) -> None:
        self.zk = client
        self._cluster = cluster
        self.table = table
        self.waits = waits or Waits()
        self.path = f"/{cluster}/PROPERTYSTORE/MINION_TASK_METADATA/{table}/FileIngestionTask/consistentPush"

    @answered()
    def pointer(self) -> Pointer:
        """Read the pointer; return an empty one if the table has none yet."""
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
        """Return the bytes of a session's node, or of the pointer's for ""; None if there is no such node."""
        try:
            data: bytes = self.zk.retry(self.zk.get, f"{self.path}/{node}" if node else self.path)[0]
        except NoNodeError:
            return None
        return data

    def active_session(self, pointer: Pointer) -> Session | None:
        """Return the pointer's open session, if there is one.

        None also if that session has ended or its node was pruned: then only the pointer was restored.

        :raises SessionError: its node cannot be parsed.
        """
        if pointer.active_session not in self.session_nodes():
            return None
        session = self.session(pointer.active_session)
        return session if session.outcome is Outcome.OPEN else None

    def sessions(self) -> list[Session]:
        """Return the readable kept sessions, oldest first; an unreadable node is no error here."""
        return [session for node in self.session_nodes() if (session := self._readable(node)) is not None]

    def newest_session(self) -> Session | None:
        """Return the newest session; None if there is none or it cannot be read."""
        names = self.session_nodes()
        return self._readable(names[-1]) if names else None

    def _readable(self, node: str) -> Session | None:
        try:
            return self.session(node)
        except NodeUnreadable:
            return None

    @answered()
    def session_nodes(self) -> list[str]:
        """Return the names of the session nodes, oldest first, including nodes that cannot be read."""
        names = nodes.children(self.zk, self.path)
        numbers = ((whole_number(name[2:]), name) for name in names if name.startswith("cp"))
        return [name for _, name in sorted((number, name) for number, name in numbers if number is not None)]

    @answered()
    def holder(self) -> Owner | None:
        """Who holds the lease now, None when it is free."""
        return nodes.lease_holder(self.zk, self.path)

    @answered()
    def table_made_ms(self) -> int | None:
        """When Pinot made the table, epoch ms by ZooKeeper's clock; None if ZooKeeper has no table config."""
        stat = self.zk.retry(self.zk.exists, f"/{self._cluster}/PROPERTYSTORE/CONFIGS/TABLE/{self.table}")
        return int(stat.ctime) if stat is not None else None

    @answered()
    def owner(self) -> str:
        """Return a unique id of the cluster: its name and the creation of its PROPERTYSTORE node."""
        stat = self.zk.retry(self.zk.exists, f"/{self._cluster}/PROPERTYSTORE")
        born = f"{stat.czxid:x}-{stat.ctime}" if stat is not None else "unborn"
        return f"{self._cluster}-{born}"

    @answered()
    def pointer_written_ms(self) -> int | None:
        """When the pointer was last written, epoch ms by ZooKeeper's clock; None if there is no pointer."""
        stat = self.zk.retry(self.zk.exists, self.path)
        return int(stat.mtime) if stat is not None else None

    @answered()
    def segment_names(self) -> list[str]:
        """Return all segments of this table that Pinot has metadata for."""
        return nodes.children(self.zk, f"/{self._cluster}/PROPERTYSTORE/SEGMENTS/{self.table}")

    @answered()
    def take_lease(self, owner: Owner) -> Lease:
        """Become the table's only writer: create the ephemeral lease and grow the epoch, in one transaction.

        :raises SessionHeld: another run holds it; the error names the run and since when.
        :raises SessionError: no Pinot cluster of that name lives in this ZooKeeper, or none answers.
        """
        # With a wrong cluster name, the session would be stored where no reader finds it.
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
                # `release` takes the owner off the pointer, so an owner there means that it died.
                died = was_set and pointer.owner is not None
                return Lease(self, mine, self.version(), took_over_from=pointer.owner if died else None)
            if isinstance(failure, NodeExistsError):
                if (holder := self.holder()) is None:
                    continue
                raise SessionHeld(
                    f"{self.table} is paused",
                    why=f"held by {holder}",
                    hint=f"wait for that run; a dead run loses the lease within {self.waits.lease:.0f} "
                    "s of its last heartbeat",
                )
            if isinstance(failure, NoAuthError):
                raise failure
            if not isinstance(failure, BadVersionError):
                raise SessionError(
                    f"the lease of {self.table} could not be taken", why=zookeeper_words(failure)
                )
        raise SessionError(
            f"the lease of {self.table} could not be taken", why="in five attempts another writer took it"
        )

    def let_go(self) -> None:
        """End the ZooKeeper session: the lease is free at once, and this client can write nothing more."""
        self.zk.stop()

    # --- for the writer -------------------------------------------------------------------------------

    def read_pointer(self) -> tuple[Pointer, int, bool]:
        """Return the pointer, its node version (-1 without node), and whether it was ever set."""
        try:
            data, stat = self.zk.retry(self.zk.get, self.path)
        except NoNodeError:
            return Pointer(), -1, False
        if not data:
            return Pointer(), stat.version, False
        return self._parse("pointer", pointer_from_bytes, data), stat.version, True

    def version(self) -> int:
        """Return the version of the pointer's node."""
        return int(self.zk.retry(self.zk.exists, self.path).version)

    def ask_if_lease_is_ours(self) -> bool:
        """Whether this client's ZooKeeper session took the lease."""
        return nodes.ask_if_lease_is_ours(self.zk, self.path)

    def _parse(self, name: str, parse: Callable[[bytes, str], T], data: bytes) -> T:
        what = f"the consistent-push node {name} of {self.table}"
        hint = (
            f"read {self.path} in Pinot's ZooKeeper browser and restore it from a backup. Without "
            "a backup, delete the node if its session has ended; otherwise delete that path with "
            "all below it: the next run makes a new one from what is visible"
        )
        with reading(what, NodeUnreadable, hint=hint):
            return parse(data, what)


class Lease:
    """The right to write, as long as the ZooKeeper session lives and no other owner took over.

    :ivar pointer: the pointer as this owner last wrote it.
    :ivar session: the session as this owner last wrote it, None before its first write of one.
    :ivar on_progress: called after every write here, and before every write to Pinot.
    :ivar took_over_from: the owner whose call to Pinot may still be under way: the one before, if it did not
        release the lease or did not know the result of its last call; None after a clean release.
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
                    continue  # the write never arrived
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
        """Check, before a write to Pinot, that this owner still holds the lease (rule R2).

        :raises LeaseLost: another owner has the table now, or ZooKeeper does not answer.
        """
        if not self._ask_if_held():
            raise self._lost(None)
        self.on_progress()

    def wait_out_former_owner(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait, before a write to Pinot, until the deadline of a dead owner's last call is over (rule R2)."""
        if self.took_over_from is not None:
            if self._left_to_wait > 0:
                sleep(self._left_to_wait)
            self.took_over_from = None

    def left_unknown(self) -> None:
        """Record that the result of a write to Pinot is unknown. The next writer, this owner or another one,
        waits for it as for a call of a dead owner."""
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
        """Delete all nodes of the table and the lease, in one transaction. Pinot has no such table any more;
        a table that is created again under its name starts without sessions.

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
        """Take the owner off the pointer and delete the lease, in one transaction. Never raises.

        While a call of an owner may be under way, its name stays, so that the next owner waits for the call.
        """
        if not self._zk.connected:
            return  # kazoo would wait for ZooKeeper, for ever; the ephemeral node ends with the session
        path = self._store.path
        transaction = self._zk.transaction()
        transaction.delete(f"{path}/lease", version=0)
        free = replace(self.pointer, owner=self.took_over_from if self._left_to_wait > 0 else None)
        transaction.set_data(path, pointer_to_bytes(free), version=self._pointer_version)
        # If the lease is not ours or ZooKeeper goes away now: the ephemeral node ends with the session.
        with contextlib.suppress(KazooException):
            transaction.commit()

    def _ask_if_held(self) -> bool:
        try:
            return self._store.ask_if_lease_is_ours() and self._store.version() == self._pointer_version
        except KazooException:
            return False

    def _landed(self, pointer: Pointer | None, session: Session | None) -> bool:
        """After a lost reply: whether ZooKeeper now has the values that we wrote (rule R24)."""
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
        why = (
            (zookeeper_words(cause) if cause else "its ZooKeeper session ended")
            if mine
            else f"it is held by {holder}"
        )
        return LeaseLost(
            f"this run no longer holds the lease of {self._store.table}; nothing more was changed",
            why=why,
            hint="the next trigger continues from what is stored",
        )
