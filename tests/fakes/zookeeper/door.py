"""A door before ZooKeeper that can hold one write up while something else happens.

A controller that checks, is slow, and then writes: what becomes of its write when the node has changed in
between is told by the order of a few milliseconds, which no test can hit. Here the order is given.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

from fakes.zookeeper.frames import read_frame, write_frame

# Operations of ZooKeeper's protocol that write a node of a known path: create, setData, and newer creates.
_WRITES = (1, 5, 15, 19, 21)


class ZookeeperDoor:
    """Forwards to a ZooKeeper, on a free port of loopback. Close it, or use it in a `with`.

    :ivar address: `host:port` for those who come through this door.
    """

    def __init__(self, zookeeper: str) -> None:
        host, _, port = zookeeper.partition(":")
        self._inner = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._waiting: dict[str, Callable[[], None]] = {}
        self._pairs: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def before_write(self, path: str, action: Callable[[], None]) -> None:
        """Do this when the next write of that node arrives, then let it pass."""
        self._waiting[path] = action

    def close(self) -> None:
        """Close the door and all that came through it."""
        for end in (self._listener, *self._pairs):
            with suppress(OSError):  # its other side was first
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def __enter__(self) -> ZookeeperDoor:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                outer, _ = self._listener.accept()
            except OSError:
                return  # closed
            inner = socket.create_connection(self._inner)
            self._pairs += [outer, inner]
            for copy, source, target in ((self._requests, outer, inner), (_replies, inner, outer)):
                threading.Thread(target=copy, args=(source, target), daemon=True).start()

    def _requests(self, source: socket.socket, target: socket.socket) -> None:
        """Whole requests, one after the other, so that a path is never torn."""
        try:
            while (request := read_frame(source)) is not None:
                if action := self._waiting.pop(_path_written(request), None):
                    action()
                write_frame(target, request)
        except OSError:
            pass
        _end(target)


def _replies(source: socket.socket, target: socket.socket) -> None:
    try:
        while some := source.recv(65_536):
            target.sendall(some)
    except OSError:
        pass
    _end(target)


def _path_written(request: bytes) -> str:
    """The node that a request writes; empty for any other."""
    if len(request) < 12:
        return ""
    _, operation, length = struct.unpack(">iii", request[:12])
    return request[12 : 12 + length].decode(errors="replace") if operation in _WRITES else ""


def _end(target: socket.socket) -> None:
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
