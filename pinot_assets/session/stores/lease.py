"""A table's lease: the right to write, and every write as one fenced transaction.

A transaction is `{check lease, check pointer version, set …}`, so a driver that lost its lease can
change nothing here (docs/design/session.md#fenced-writes, rule R24).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from kazoo.client import TransactionRequest
from kazoo.exceptions import ConnectionLoss, KazooException, OperationTimeoutError, SessionExpiredError

from pinot_assets.errors import LeaseLost, SessionError
from pinot_assets.session.stores.nodes import first_error
from pinot_assets.session.stores.session_nodes import SessionNodes
from pinot_assets.session.values.state import Owner, Pointer, Session, session_to_bytes
from pinot_assets.zookeeper import answered

KEPT_SESSIONS = 2
"""Sessions whose nodes stay readable, the active one included (docs/design/session.md#f14)."""

SENDINGS = 3
"""How often a transaction is sent that provably never arrived."""

UNKNOWN: Final = (ConnectionLoss, SessionExpiredError, OperationTimeoutError)
"""Errors after which a transaction may have happened."""


class Lease:
    """The right to write, as long as the ZooKeeper session lives and nobody took over.

    :ivar pointer: the pointer as this owner last wrote it.
    :ivar session: the session as this owner last wrote it, None as long as it has written none.
    :ivar on_progress: called after every write, and before every one to Pinot.
    :ivar took_over_from: who may still have a Pinot call under way: the owner before, if it never let go
        itself, or did not know what became of its last one; None after a clean release.
    """

    def __init__(
        self, store: SessionNodes, pointer: Pointer, version: int, *, took_over_from: Owner | None
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
            pointer = self._fenced(pointer)
        for _ in range(SENDINGS):
            try:
                failure = first_error(self._transaction(pointer, session).commit())
            except KazooException as error:
                failure = None if self._landed(pointer, session) else error
                if isinstance(failure, UNKNOWN) and self._is_held():
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
            transaction.set_data(path, self._store.pointer_bytes(pointer), version=self._pointer_version)
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
        if not self._is_held():
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
        transaction.set_data(path, self._store.pointer_bytes(free), version=self._pointer_version)
        try:
            transaction.commit()
        except KazooException:
            # Not ours any more, or unreachable: the ephemeral node goes with the session.
            return

    def _is_held(self) -> bool:
        try:
            return self._store.lease_is_ours() and self._store.version() == self._pointer_version
        except KazooException:
            return False

    def _fenced(self, pointer: Pointer) -> Pointer:
        return replace(pointer, epoch=self.pointer.epoch, owner=self.pointer.owner)

    def _landed(self, pointer: Pointer | None, session: Session | None) -> bool:
        """After a lost reply: whether the values now stored are ours (rule R24)."""
        try:
            if not self._store.lease_is_ours():
                return False
            version = self._pointer_version + (pointer is not None)
            if self._store.version() != version:
                return False
            return session is None or self._store.session(session.node) == session
        except (KazooException, SessionError):
            return False

    def _lost(self, cause: BaseException | None) -> LeaseLost:
        holder: Any = None
        with contextlib.suppress(SessionError):
            holder = self._store.holder()
        mine = holder is None or holder == self.pointer.owner
        why = (repr(cause) if cause else "its ZooKeeper session ended") if mine else f"it is held by {holder}"
        return LeaseLost(
            f"this run no longer holds the lease of {self._store.table}; nothing more was changed",
            why=why,
            hint="the next trigger goes on from what is stored",
        )
