"""Free ports for processes that start a little later."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

import psutil

from pinot_assets.errors import LocalStackError

# Below the range that Linux hands out for outgoing connections, so that none of those takes one of these.
_RANGE = range(20_000, 32_000)
# Not the module's own generator, which a test may have seeded alike in several processes.
_RANDOM = random.SystemRandom()


def pick(taken: Collection[int]) -> int:
    """A port that is free now and not in `taken`.

    :raises LocalStackError: none was found.
    """
    for _ in range(200):
        port = _RANDOM.choice(_RANGE)
        if port not in taken and is_free(port):
            return port
    raise LocalStackError(
        f"no free port was found between {_RANGE.start} and {_RANGE.stop}",
        why="200 of them could not be bound",
        hint="end some of the servers on this machine",
    )


def is_free(port: int) -> bool:
    """Whether a server could listen on `port`, on loopback and on all interfaces (some of Pinot's can only
    do the latter).
    """
    for host in ("127.0.0.1", "0.0.0.0"):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java's servers do
            try:
                probe.bind((host, port))
            except OSError:
                return False
    return True


def holder(port: int) -> str:
    """Who listens on `port`, as far as this user may see it."""
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr.port == port and connection.pid:
                return f"process {connection.pid} ({psutil.Process(connection.pid).name()})"
    except psutil.Error:
        pass
    return "another process"
