"""An in-memory ZooKeeper with as many clients as wanted, for tests of `session/stores`.

It has the part of kazoo's interface that the store uses, with kazoo's own exceptions, and is held to what the
real thing does by the contract suite (`tests/contract/test_zookeeper.py`). It keeps access lists and enforces
none of them: what they do is told by a real server alone (`tests/integration/session`).
"""

from __future__ import annotations

import itertools
import posixpath
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, OPEN_ACL_UNSAFE

P = ParamSpec("P")
T = TypeVar("T")

Around = Callable[[str], AbstractContextManager[object]]
"""Wraps one request that changes something; what it raises before or after is the trouble."""


@dataclass
class Node:
    data: bytes
    owner: int  # the session that an ephemeral node lives with, 0 for others
    acl: list[ACL]
    version: int = 0
    made_ms: int = 0
    written_ms: int = 0


@dataclass(frozen=True, slots=True)
class Write:
    """One request that changed something: what was done to which path, and the bytes sent with it."""

    paths: tuple[str, ...]
    bytes: int


@dataclass
class FakeZooKeeper:
    """The server.

    :ivar writes: every request that changed something, in order.
    :ivar ahead_ms: by how much its clock is ahead of this machine's.
    """

    nodes: dict[str, Node] = field(default_factory=lambda: {"/": Node(b"", 0, OPEN_ACL_UNSAFE)})
    writes: list[Write] = field(default_factory=list)
    ahead_ms: int = 0
    _sessions: Iterator[int] = field(default_factory=lambda: itertools.count(0x1000))
    _alive: set[int] = field(default_factory=set)

    def client(self, *, default_acl: list[ACL] | None = None) -> FakeClient:
        """A connected client with a session of its own."""
        return FakeClient(self, default_acl)

    def expire(self, client: FakeClient) -> None:
        """The client's session times out: its ephemeral nodes go. It gets another one, as kazoo does."""
        self._alive.discard(client.client_id[0])
        for path, node in tuple(self.nodes.items()):
            if node.owner == client.client_id[0]:
                del self.nodes[path]

    def _new_session(self) -> int:
        session = next(self._sessions)
        self._alive.add(session)
        return session

    # --- requests --------------------------------------------------------------------------------

    def _node(self, path: str) -> Node:
        if path not in self.nodes:
            raise NoNodeError(path)
        return self.nodes[path]

    def _children(self, path: str) -> list[str]:
        return [p.rpartition("/")[2] for p in self.nodes if p != "/" and posixpath.dirname(p) == path]

    def _stat(self, path: str) -> ZnodeStat:
        node = self.nodes[path]
        return ZnodeStat(
            0,
            0,
            node.made_ms,
            node.written_ms,
            node.version,
            0,
            0,
            node.owner,
            len(node.data),
            len(self._children(path)),
            0,
        )

    def _check(self, path: str, version: int) -> None:
        if version not in (-1, self._node(path).version):
            raise BadVersionError(path)

    def _create(self, path: str, data: bytes, owner: int, acl: list[ACL]) -> str:
        if path in self.nodes:
            raise NodeExistsError(path)
        self._node(posixpath.dirname(path))
        self.nodes[path] = Node(data, owner, acl, made_ms=self._now_ms, written_ms=self._now_ms)
        return path

    def _set(self, path: str, data: bytes, version: int) -> ZnodeStat:
        self._check(path, version)
        node = self.nodes[path]
        node.data, node.version, node.written_ms = data, node.version + 1, self._now_ms
        return self._stat(path)

    @property
    def _now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms

    def _delete(self, path: str, version: int) -> bool:
        self._check(path, version)
        if self._children(path):
            raise NotEmptyError(path)
        del self.nodes[path]
        return True


class FakeClient:
    """One client; for the methods see `kazoo.client.KazooClient`.

    :ivar around: wraps every request that changes something (a crash, a lost reply, another driver's turn).
    :ivar on_read: called before every other request.
    :ivar on_write: called when a request has changed something, whether its reply arrives or not.
    :ivar connected: whether a connection stands; kazoo keeps requests for as long as none does.
    """

    def __init__(self, server: FakeZooKeeper, default_acl: list[ACL] | None) -> None:
        self.server = server
        self.default_acl = default_acl
        self.connected = True
        self.around: Around = lambda what: nullcontext()
        self.on_read: Callable[[], None] = lambda: None
        self.on_write: Callable[[Write], None] = lambda write: None
        self._session = server._new_session()

    @property
    def client_id(self) -> tuple[int, bytes]:
        return self._session, b"secret"

    def stop(self) -> None:
        self.server.expire(self)

    def close(self) -> None:
        pass

    def retry(self, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """As kazoo's `KazooRetry`: again where the connection or the session was lost."""
        for _ in range(5):
            try:
                return function(*args, **options)
            except (ConnectionLoss, SessionExpiredError):
                continue
        return function(*args, **options)

    # --- reading ---------------------------------------------------------------------------------

    def get(self, path: str) -> tuple[bytes, ZnodeStat]:
        self._reading()
        return self.server._node(path).data, self.server._stat(path)

    def exists(self, path: str) -> ZnodeStat | None:
        self._reading()
        return self.server._stat(path) if path in self.server.nodes else None

    def get_children(self, path: str) -> list[str]:
        self._reading()
        self.server._node(path)
        return self.server._children(path)

    def get_acls(self, path: str) -> tuple[list[ACL], ZnodeStat]:
        self._reading()
        return self.server._node(path).acl, self.server._stat(path)

    # --- writing ---------------------------------------------------------------------------------

    def ensure_path(self, path: str, acl: list[ACL] | None = None) -> bool:
        parts = path.strip("/").split("/")
        for end in range(1, len(parts) + 1):
            node = "/" + "/".join(parts[:end])
            if node not in self.server.nodes:
                with self._writing((f"create {node}",), 0):
                    self.server._create(node, b"", 0, acl or self._acl)
        return True

    def create(self, path: str, value: bytes = b"", ephemeral: bool = False) -> str:
        with self._writing((f"create {path}",), len(value)):
            return self.server._create(path, value, self._session if ephemeral else 0, self._acl)

    def set(self, path: str, value: bytes, version: int = -1) -> ZnodeStat:
        with self._writing((f"set {path}",), len(value)):
            return self.server._set(path, value, version)

    def delete(self, path: str, version: int = -1, recursive: bool = False) -> bool:
        if recursive:
            for child in self.server._children(path):
                self.delete(f"{path}/{child}", recursive=True)
        with self._writing((f"delete {path}",), 0):
            return self.server._delete(path, version)

    def set_acls(self, path: str, acls: list[ACL]) -> ZnodeStat:
        with self._writing((f"set_acls {path}",), 0):
            self.server._node(path).acl = acls
            return self.server._stat(path)

    def transaction(self) -> FakeTransaction:
        return FakeTransaction(self)

    @property
    def _acl(self) -> list[ACL]:
        return self.default_acl or OPEN_ACL_UNSAFE

    def _reading(self) -> None:
        self.on_read()
        self._reconnect()

    @contextmanager
    def _writing(self, what: tuple[str, ...], size: int) -> Iterator[None]:
        with self.around(", ".join(what)):
            self._reconnect()
            yield
            self._wrote(Write(what, size))

    def _wrote(self, write: Write) -> None:
        self.server.writes.append(write)
        self.on_write(write)

    def _reconnect(self) -> None:
        if self._session not in self.server._alive:
            self._session = self.server._new_session()


class FakeTransaction:
    """All or nothing; see `kazoo.client.TransactionRequest`."""

    def __init__(self, client: FakeClient) -> None:
        self._client = client
        self._what: list[str] = []
        self._steps: list[Callable[[], object]] = []
        self._bytes = 0

    def check(self, path: str, version: int) -> None:
        self._add(f"check {path}", lambda: self._server._check(path, version))

    def create(self, path: str, value: bytes = b"", ephemeral: bool = False) -> None:
        client = self._client

        def step() -> str:
            owner = client.client_id[0] if ephemeral else 0
            return self._server._create(path, value, owner, client._acl)

        self._add(f"create {path}", step, value)

    def set_data(self, path: str, value: bytes, version: int = -1) -> None:
        self._add(f"set {path}", lambda: self._server._set(path, value, version), value)

    def delete(self, path: str, version: int = -1) -> None:
        self._add(f"delete {path}", lambda: self._server._delete(path, version))

    def commit(self) -> list[object]:
        """What each step answers; where one fails, its error among `RolledBackError`s before it and
        `RuntimeInconsistency` after it."""
        with self._client.around(", ".join(self._what)):
            self._client._reconnect()
            results, failed = self._run()
            if not failed:
                self._client._wrote(Write(tuple(self._what), self._bytes))
            return results

    @property
    def _server(self) -> FakeZooKeeper:
        return self._client.server

    def _add(self, what: str, step: Callable[[], object], value: bytes = b"") -> None:
        self._what.append(what)
        self._steps.append(step)
        self._bytes += len(value)

    def _run(self) -> tuple[list[object], bool]:
        before = {path: Node(**vars(node)) for path, node in self._server.nodes.items()}
        results: list[object] = []
        for step in self._steps:
            try:
                answer = step()
                results.append(True if answer is None else answer)
            except KazooException as error:
                self._server.nodes = before
                left = len(self._steps) - len(results) - 1
                gone = [RolledBackError() for _ in results]
                return [*gone, error, *(RuntimeInconsistency() for _ in range(left))], True
        return results, False
