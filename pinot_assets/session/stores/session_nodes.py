"""One table's nodes in ZooKeeper, read: pointer, sessions, who holds the lease."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from pinot_assets.core.connections import Waits
from pinot_assets.core.untrusted import reading, whole_number
from pinot_assets.errors import NodeUnreadable, SessionError
from pinot_assets.session.stores import nodes
from pinot_assets.session.values.state import (
    Outcome,
    Owner,
    Pointer,
    Session,
    pointer_from_bytes,
    pointer_to_bytes,
    session_from_bytes,
)
from pinot_assets.zookeeper.client import answered

T = TypeVar("T")


class SessionNodes:
    """One table's consistent-push nodes, as they stand.

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
        try:
            data, _ = self.zk.retry(self.zk.get, f"{self.path}/{node}")
        except NoNodeError as error:
            raise SessionError(f"{self.table} has no session {node}") from error
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
        return [found for node in self.session_nodes() if (found := self._readable(node)) is not None]

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
        try:
            found = self.zk.retry(self.zk.get_children, self.path)
        except NoNodeError:
            return []
        numbers = ((whole_number(name[2:]), name) for name in found if name.startswith("cp"))
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
        path = f"/{self._cluster}/PROPERTYSTORE/SEGMENTS/{self.table}"
        try:
            names: list[str] = self.zk.retry(self.zk.get_children, path)
        except NoNodeError:
            return []
        return names

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

    def pointer_bytes(self, pointer: Pointer) -> bytes:
        """What is written for a pointer."""
        return pointer_to_bytes(pointer, "consistentPush")

    def lease_is_ours(self) -> bool:
        """Whether the lease was taken by this client's ZooKeeper session."""
        return nodes.lease_is_ours(self.zk, self.path)

    def _parse(self, name: str, parse: Callable[[bytes, str], T], data: bytes) -> T:
        what = f"the consistent-push node {name} of {self.table}"
        hint = (
            f"look at {self.path} in Pinot's ZooKeeper browser and restore it from a backup. Without one, "
            "delete the node of a session that is over; for any other, delete that path with all below it: "
            "the next run makes a new one of what is visible"
        )
        with reading(what, NodeUnreadable, hint=hint):
            return parse(data, what)
