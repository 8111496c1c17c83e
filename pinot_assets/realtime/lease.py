"""The lease of a REALTIME table in ZooKeeper, for one operation at a time, and the operations' memory.

The node is in the place where the project keeps what it knows of any table, and is deleted with the table.
Every write is one transaction that checks the node's version. The next owner changes the version when it
takes the lease, so a run that lost the lease can write nothing. Before a run begins something in Pinot, it
writes it here. So the next owner knows which calls may still be under way.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from kazoo import exceptions
from kazoo.client import KazooClient

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.stored_format import Marks, plain
from pinot_assets.core.untrusted import reading
from pinot_assets.errors import LeaseLost, NodeUnreadable, SessionError, SessionHeld
from pinot_assets.session.stores.nodes import ask_if_lease_is_ours, first_error, lease_holder, make_own_path
from pinot_assets.session.values.state import Owner
from pinot_assets.session.values.znrecord import fields_of
from pinot_assets.settings.environment import Settings
from pinot_assets.zookeeper import answered, cluster_client, require_cluster, zookeeper_words

TASK: Final = "RealtimeOperations"

_UNKNOWN = (exceptions.ConnectionLoss, exceptions.SessionExpiredError, exceptions.OperationTimeoutError)
_ATTEMPTS: Final = 5


class OperationsStore:
    """The node of a REALTIME table.

    :param client: a started kazoo client.
    :param cluster: the Helix cluster name.
    :param table: with `_REALTIME`.
    """

    def __init__(self, client: KazooClient, cluster: str, table: str) -> None:
        self._zk = client
        self._cluster = cluster
        self.table = table
        self.path = f"/{cluster}/PROPERTYSTORE/MINION_TASK_METADATA/{table}/{TASK}"

    @answered()
    def recall(self, subject: str) -> str:
        """Return the text last remembered for a subject (`repair`, `drain`), empty for none.

        :raises SessionError: the node cannot be read.
        """
        return self._read()[0].get(subject, "")

    @answered()
    def holder(self) -> Owner | None:
        """Return who works on the table now, None for no one."""
        return lease_holder(self._zk, self.path)

    @answered()
    def take(self, owner: Owner) -> OperationsLease:
        """Take the lease of the table, until it is released or the client's ZooKeeper session ends.

        :raises SessionHeld: another owner holds it; the message names that one.
        :raises NeedsNewerRelease: a newer release has worked on the table; nothing was changed.
        :raises SessionError: this ZooKeeper has no Pinot cluster of that name, or does not answer.
        """
        require_cluster(self._zk, self._cluster)
        make_own_path(self._zk, self.path)
        for _ in range(_ATTEMPTS):
            remembered, version = self._read()
            transaction = self._zk.transaction()
            transaction.create(f"{self.path}/lease", json.dumps(plain(owner)).encode(), ephemeral=True)
            # Writes the same content: it is the new version that fences the former owner.
            transaction.set_data(self.path, _record(remembered), version=version)
            try:
                failure = first_error(transaction.commit())
            except _UNKNOWN:
                if self.holder() != owner or not ask_if_lease_is_ours(self._zk, self.path):
                    continue
                failure = None
            if failure is None:
                return OperationsLease(self, self._read()[1])
            if isinstance(failure, exceptions.NodeExistsError):
                if (holder := self.holder()) is None:
                    continue
                raise SessionHeld(
                    f"another run works on {self.table}",
                    why=f"by {holder}",
                    hint="wait for that run; a dead run loses the lease within half a minute",
                )
            if not isinstance(failure, exceptions.BadVersionError):
                raise failure
        raise SessionError(
            f"the lease of {self.table} could not be taken", why="in five attempts another run took it"
        )

    def _read(self) -> tuple[dict[str, str], int]:
        """Return what is remembered, and the node's version (-1 if there is no node)."""
        try:
            data, stat = self._zk.retry(self._zk.get, self.path)
        except exceptions.NoNodeError:
            return {}, -1
        if not data:
            return {}, stat.version
        hint = (
            f"look at {self.path} in Pinot's ZooKeeper browser; if you delete it, the next operation "
            "makes it again"
        )
        with reading(f"what operations on {self.table} remember", NodeUnreadable, hint=hint):
            fields = fields_of(data)
            Marks.of(fields).require_known(f"what operations on {self.table} remember")
            return fields, stat.version


class OperationsLease(OperationsStore):
    """The right to change the table: its node while this run holds the lease."""

    def __init__(self, store: OperationsStore, version: int) -> None:
        super().__init__(store._zk, store._cluster, store.table)
        self._version = version

    @answered()
    def taken_ms(self) -> int:
        """Return when the lease was taken, by ZooKeeper's clock, in epoch milliseconds.

        :raises LeaseLost: this run no longer holds it.
        """
        if (stat := self._zk.retry(self._zk.exists, f"{self.path}/lease")) is None:
            raise self._lost(None)
        return int(stat.ctime)

    def assert_held(self) -> None:
        """Check before a write to Pinot that this run holds the lease.

        :raises LeaseLost: it does not.
        """
        if self._own()[1] != self._version:
            raise self._lost(None)

    def remember(self, subject: str, text: str) -> None:
        """Store the text of a subject, for this run and the next ones; an empty text deletes it.

        :raises LeaseLost: this run no longer holds the lease. Nothing was written.
        """
        for _ in range(_ATTEMPTS):
            transaction = self._zk.transaction()
            transaction.check(f"{self.path}/lease", version=0)
            transaction.set_data(self.path, self._with(subject, text), version=self._version)
            try:
                failure: Exception | None = first_error(transaction.commit())
            except _UNKNOWN as error:
                remembered, version = self._own()
                if version == self._version:
                    continue  # it never arrived
                landed = version == self._version + 1 and remembered.get(subject, "") == text
                failure = None if landed else error
            if failure is not None:
                raise self._lost(failure) from failure
            self._version += 1
            return
        raise self._lost(None)

    def release(self) -> None:
        """Release the lease. Never raises: a node that cannot be deleted ends with the ZooKeeper session."""
        if not self._zk.connected:
            return  # kazoo would wait for ZooKeeper, for ever
        transaction = self._zk.transaction()
        transaction.check(self.path, version=self._version)
        transaction.delete(f"{self.path}/lease", version=0)
        with suppress(exceptions.KazooException):
            transaction.commit()

    def __enter__(self) -> OperationsLease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @answered()
    def _with(self, subject: str, text: str) -> bytes:
        remembered = {**self._read()[0], subject: text}
        return _record({key: value for key, value in remembered.items() if value})

    def _own(self) -> tuple[Mapping[str, str], int | None]:
        """Return what is remembered, and the node's version; None if the lease is lost or cannot be read."""
        try:
            remembered = self._read()
            return remembered if ask_if_lease_is_ours(self._zk, self.path) else ({}, None)
        except (exceptions.KazooException, SessionError):
            return {}, None

    def _lost(self, cause: BaseException | None) -> LeaseLost:
        return LeaseLost(
            f"this run no longer holds the lease of {self.table}; nothing more was changed",
            why=zookeeper_words(cause)
            if cause
            else "its ZooKeeper session ended, or another run took the lease",
            hint="run it again: it continues from the state that the table then has",
        )


def _record(remembered: Mapping[str, str]) -> bytes:
    """Return a record in Helix's format, so that Pinot's ZooKeeper browser shows it."""
    record: JsonObject = {"id": TASK, "simpleFields": dict(remembered), "mapFields": {}, "listFields": {}}
    return json.dumps(record, indent=2).encode()


MOST_APART_S: Final = 60.0
"""Maximum difference of this machine's clock and ZooKeeper's: a fifth of Pinot's 300 s for a commit."""


@contextmanager
def open_operations(settings: Settings, table: str) -> Iterator[OperationsStore]:
    """Open what is remembered of a table's operations, and close it at the end.

    :param table: with `_REALTIME`.
    :raises SessionError: ZooKeeper does not answer, or has no such cluster.
    """
    access, lease = settings.zookeeper_access, settings.waits.lease
    with cluster_client(settings.zookeeper, settings.cluster, access, session_s=lease) as client:
        yield OperationsStore(client, settings.cluster, table)


@contextmanager
def hold_table(settings: Settings, table: str, run: str) -> Iterator[OperationsLease]:
    """Hold the lease of the table until the end.

    :param table: with `_REALTIME`.
    :param run: name of the holder that other runs see.
    :raises SessionHeld: another run holds the lease; the message names that one.
    :raises SessionError: this machine's clock is wrong, by which the age of a commit is judged.
    """
    owner = Owner(run, socket.gethostname(), os.getpid(), time.time_ns() // 1_000_000)
    with open_operations(settings, table) as store, store.take(owner) as lease:
        ahead_s = (time.time_ns() // 1_000_000 - lease.taken_ms()) / 1000  # the lease was taken just now
        if abs(ahead_s) > MOST_APART_S:
            where = "ahead of" if ahead_s > 0 else "behind"
            raise SessionError(
                f"nothing of {lease.table} is changed from this machine",
                why=f"its clock is {abs(ahead_s):.0f} s {where} ZooKeeper's",
                hint="set the clock: the age of a segment's node shows whether its commit may still "
                "be in progress",
            )
        yield lease
