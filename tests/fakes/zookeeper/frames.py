"""ZooKeeper's wire in frames: four bytes of length, then as many of a request or a reply."""

from __future__ import annotations

import socket
import struct


def read_frame(side: socket.socket) -> bytes | None:
    """The next frame without its length; None when the other side has closed."""
    head = _read(side, 4)
    return None if head is None else _read(side, struct.unpack(">i", head)[0])


def write_frame(side: socket.socket, frame: bytes) -> None:
    """Send a frame with its length."""
    side.sendall(struct.pack(">i", len(frame)) + frame)


def _read(side: socket.socket, length: int) -> bytes | None:
    data = b""
    while len(data) < length:
        piece = side.recv(length - len(data))
        if not piece:
            return None
        data += piece
    return data
