"""Row numbers as a portable 32-bit Roaring bitmap, run-optimised as Pinot's writer does (spec section 8)."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

_NO_RUNS = 12346
_RUNS = 12347
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192
_OFFSETS_FROM = 4  # with run containers, offsets are written only from this many containers on


def roaring(rows: npt.NDArray[np.uint32]) -> bytes:
    """Serialise row numbers.

    :param rows: row numbers, strictly ascending, at least one.
    """
    keys, starts = np.unique(rows >> 16, return_index=True)
    parts = np.split((rows & 0xFFFF).astype("<u2"), starts[1:])
    bodies, is_run = zip(*map(_container, parts), strict=True)
    heads = b"".join(struct.pack("<HH", key, len(part) - 1) for key, part in zip(keys, parts, strict=True))
    if any(is_run):
        flags = np.packbits(is_run, bitorder="little").tobytes()
        head = struct.pack("<I", _RUNS | (len(keys) - 1) << 16) + flags + heads
        with_offsets = len(keys) >= _OFFSETS_FROM
    else:
        head = struct.pack("<II", _NO_RUNS, len(keys)) + heads
        with_offsets = True
    if with_offsets:
        sizes = np.array([len(body) for body in bodies])
        first = len(head) + 4 * len(keys)
        head += (first + np.cumsum(sizes) - sizes).astype("<u4").tobytes()
    return head + b"".join(bodies)


def _container(low: npt.NDArray[np.uint16]) -> tuple[bytes, bool]:
    """The bytes of one container, and whether it is a run container."""
    breaks = np.flatnonzero(np.diff(low.astype(np.int32)) != 1)
    plain = 2 * len(low) if len(low) <= _ARRAY_MAX else _BITMAP_BYTES
    if 2 + 4 * (len(breaks) + 1) < plain:
        first = low[np.concatenate(([0], breaks + 1))]
        last = low[np.concatenate((breaks, [len(low) - 1]))]
        runs = np.column_stack((first, last - first)).astype("<u2")
        return struct.pack("<H", len(runs)) + runs.tobytes(), True
    if len(low) <= _ARRAY_MAX:
        return low.tobytes(), False
    bits = np.zeros(1 << 16, dtype=np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes(), False
