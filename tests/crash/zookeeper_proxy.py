"""A proxy before ZooKeeper that reads its wire protocol and shows the gate each request that writes.

A frame is four bytes of length and a body. The first of a connection asks for a session; every other body
begins with transaction id and operation code, four bytes each (ZooKeeper's `zookeeper.jute`).
"""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from crash.gate import Gate
from fakes.zookeeper.frames import read_frame, write_frame

CREATE, DELETE, SET_DATA, SET_ACL, CHECK, MULTI, CREATE2, CLOSE = 1, 2, 5, 7, 13, 14, 15, -11
_WRITES = {CREATE: "create", CREATE2: "create", DELETE: "delete", SET_DATA: "set", SET_ACL: "set acl"}
_HELLO = b""  # whatever comes first


def name_of(frame: bytes) -> str | None:
    """What the gate calls a request; None when it writes nothing."""
    _, code = struct.unpack_from(">ii", frame)
    if code == CLOSE:
        return "zk close"
    if code == MULTI:
        return "zk " + ", ".join(_operations(frame[8:]))
    if code in _WRITES:
        return f"zk {_WRITES[code]} {_node(_Reader(frame[8:]).text())}"
    return None


def _operations(body: bytes) -> Iterator[str]:
    """The writes of a transaction; its checks go without saying."""
    reader = _Reader(body)
    while True:
        code, done, _ = reader.int(), reader.bool(), reader.int()
        if done:
            return
        path = reader.text()
        if code in (CREATE, CREATE2):
            reader.text()
            for _ in range(reader.int()):
                reader.int(), reader.text(), reader.text()
            reader.int()
        elif code == SET_DATA:
            reader.text()
            reader.int()
        elif code in (DELETE, CHECK):
            reader.int()
        else:
            raise ValueError(f"operation {code} in a transaction")
        if code != CHECK:
            yield f"{_WRITES[code]} {_node(path)}"


def _node(path: str) -> str:
    last = path.rpartition("/")[2]
    if last == "consistentPush":
        return "pointer"
    return "session" if last.startswith("cp") else last


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def int(self) -> int:
        (value,) = struct.unpack_from(">i", self._data, self._at)
        self._at += 4
        return int(value)

    def bool(self) -> bool:
        self._at += 1
        return bool(self._data[self._at - 1])

    def text(self) -> str:
        length = max(self.int(), 0)
        self._at += length
        return self._data[self._at - length : self._at].decode()


class ZooKeeperProxy:
    """See the module.

    :param target: `host:port`.
    :ivar refusing: while set, nobody comes through: connections are cut and new ones closed.
    """

    def __init__(self, target: str, gate: Gate) -> None:
        host, _, port = target.rpartition(":")
        self._target, self._gate = (host, int(port)), gate
        self._door = socket.create_server(("127.0.0.1", 0))
        self._links: list[_Link] = []
        self.refusing = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self._door.getsockname()[1]}"

    def refuse(self) -> None:
        """Cut everybody off, until `admit`."""
        self.refusing.set()
        for link in self._links:
            link.cut()

    def admit(self) -> None:
        """Let everybody in again."""
        self.refusing.clear()

    def expire_sessions(self) -> None:
        """End the sessions of those whose connection is gone, as their time-out would."""
        for link in self._links:
            if link.session is not None:
                _end_session(self._target, *link.session)
        self._links.clear()

    def close(self) -> None:
        """Stop listening and cut everybody off."""
        self._door.close()
        for link in self._links:
            link.cut()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._door.accept()
                if self.refusing.is_set():
                    client.close()
                    continue
                try:
                    server = socket.create_connection(self._target, timeout=5)
                except OSError:
                    client.close()
                    continue
                server.settimeout(None)
                self._links.append(_Link(client, server, self._gate))


class _Link:
    """One connection.

    No request is sent on before the write ahead of it was answered, so replies stay in order.

    :ivar session: id and password that the server gave.
    """

    def __init__(self, client: socket.socket, server: socket.socket, gate: Gate) -> None:
        self._client, self._server, self._gate = client, server, gate
        self._awaited: bytes | None = None
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._busy = threading.Lock()
        self.session: tuple[int, bytes] | None = None
        for side in (client, server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for pump in (self._requests, self._replies):
            threading.Thread(target=pump, daemon=True).start()

    def cut(self) -> None:
        """End it on both sides."""
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()

    def _requests(self) -> None:
        with contextlib.suppress(OSError):
            hello = True
            while (frame := read_frame(self._client)) is not None:
                name = "zk connect" if hello else name_of(frame)
                if name is None:
                    write_frame(self._server, frame)
                else:
                    mark = _HELLO if hello else frame[:4]
                    with self._busy:
                        reply = self._gate.pass_by(name, partial(self._carry_out, frame, mark))
                        if reply is None:
                            break
                        write_frame(self._client, reply)
                hello = False
        self.cut()

    def _carry_out(self, frame: bytes, mark: bytes) -> bytes | None:
        """Send a request that writes; its reply goes nowhere else.

        :param mark: how the reply begins.
        """
        self._awaited = mark
        write_frame(self._server, frame)
        return self._answers.get()

    def _replies(self) -> None:
        with contextlib.suppress(OSError):
            while (frame := read_frame(self._server)) is not None:
                if self.session is None:
                    self.session = _session_of(frame)
                if self._awaited is not None and frame.startswith(self._awaited):
                    self._awaited = None
                    self._answers.put(frame)
                else:
                    write_frame(self._client, frame)
        self._answers.put(None)
        with self._busy:  # the server hangs up right after its last reply, which is still to be passed on
            self.cut()


def _session_of(reply: bytes) -> tuple[int, bytes]:
    """Of a ConnectResponse: protocol version, time-out, session id, password."""
    _, _, session, length = struct.unpack_from(">iiqi", reply)
    return session, reply[20 : 20 + length]


def _end_session(target: tuple[str, int], session: int, password: bytes) -> None:
    """Come back as that session, and close it. One that is over already does not mind."""
    with contextlib.suppress(OSError), socket.create_connection(target, timeout=5) as server:
        hello = struct.pack(">iqiqi", 0, 0, 4000, session, len(password)) + password + b"\0"
        write_frame(server, hello)
        if read_frame(server) is not None:
            write_frame(server, struct.pack(">ii", 1, CLOSE))
            read_frame(server)


@contextmanager
def zookeeper_proxy(target: str, gate: Gate) -> Iterator[ZooKeeperProxy]:
    """A proxy before `target`, for the length of the block."""
    proxy = ZooKeeperProxy(target, gate)
    try:
        yield proxy
    finally:
        proxy.close()
