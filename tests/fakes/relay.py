"""A relay before a service, which a test can let fall silent: nothing passes, and nothing is refused."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_BYTES = 1 << 16


class Relay:
    """Forwards TCP connections to an address, on a free port of loopback. Use it in a `with`.

    :ivar address: `host:port` for those who come through this relay.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.partition(":")
        self._inner = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._ends: list[socket.socket] = []
        self._passes = threading.Event()
        self._passes.set()

    def __enter__(self) -> Relay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._passes.set()
        for end in (self._listener, *self._ends):
            with suppress(OSError):  # its other side was first
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def fall_silent(self) -> None:
        """Let nothing pass from now on, as a service does that is paused."""
        self._passes.clear()

    def speak(self) -> None:
        """Let everything pass again, what was held up first."""
        self._passes.set()

    def _accept(self) -> None:
        while True:
            try:
                outer, _ = self._listener.accept()
            except OSError:
                return  # closed
            inner = socket.create_connection(self._inner)
            self._ends += [outer, inner]
            for source, target in ((outer, inner), (inner, outer)):
                threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_BYTES):
                self._passes.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
