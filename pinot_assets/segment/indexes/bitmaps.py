"""What is written as bits: null vectors, the inverted index, and bloom filters.

Row numbers stand in portable 32-bit Roaring bitmaps, run-optimised as Pinot's writer does. Many are made at
once, as an inverted index has one for every dictionary id: what is common to them (counting, headers, arrays,
runs) is done for all together, and only full 8 KiB bitmaps one by one. Bloom filters are Guava's.

Source: docs/design/segment-format.md#s8 and #s10, `BitmapInvertedIndexWriter`,
`OnHeapGuavaBloomFilterCreator`.
"""

from __future__ import annotations

import math
import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pinot_assets.errors import BuildError
from pinot_assets.segment.config.segment_spec import BloomFilter
from pinot_assets.segment.values.hashing import as_utf8, murmur3_x64_128

_NO_RUNS = 12346
_RUNS = 12347
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192
_OFFSETS_FROM = 4  # with run containers, offsets are written only from this many containers on

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]


def roaring(rows: npt.NDArray[np.uint32]) -> bytes:
    """Serialise row numbers.

    :param rows: row numbers, strictly ascending, at least one.
    """
    return roarings(rows, np.zeros(1, dtype=np.int64))[0].tobytes()


def roarings(rows: npt.NDArray[np.uint32], starts: Ints) -> tuple[Bytes, Ints]:
    """Serialise many sets of row numbers.

    :param rows: the sets one after the other, each strictly ascending and with at least one row.
    :param starts: where in `rows` each set begins.
    :returns: the bitmaps one after the other, and the size of each in bytes.
    """
    found = _Containers(rows, starts)
    has_run = np.logical_or.reduceat(found.is_run, found.first)
    with_offsets = ~has_run | (found.count >= _OFFSETS_FROM)
    fixed = np.where(has_run, 4 + (found.count + 7) // 8, 8)
    heads = fixed + 4 * found.count * (1 + with_offsets)
    sizes = heads + np.add.reduceat(found.size, found.first)
    bitmap_at = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), dtype=np.uint8)

    _put(out, bitmap_at, np.where(has_run, _RUNS | (found.count - 1) << 16, _NO_RUNS), 4)
    _put(out, bitmap_at[~has_run] + 4, found.count[~has_run], 4)
    nth = _counted(found.count)
    flagged = np.flatnonzero(found.is_run)
    flag_at = bitmap_at[found.bitmap[flagged]] + 4 + nth[flagged] // 8
    np.bitwise_or.at(out, flag_at, (1 << nth[flagged] % 8).astype(np.uint8))
    head_at = (bitmap_at + fixed)[found.bitmap] + 4 * nth
    _put(out, head_at, found.key, 2)
    _put(out, head_at + 2, found.rows - 1, 2)
    before = np.cumsum(found.size) - found.size
    body_at = bitmap_at[found.bitmap] + heads[found.bitmap] + before - before[found.first][found.bitmap]
    located = with_offsets[found.bitmap]
    offset_at = head_at + 4 * found.count[found.bitmap]
    _put(out, offset_at[located], (body_at - bitmap_at[found.bitmap])[located], 4)
    _put_bodies(out, rows, found, body_at)
    return out, sizes


class _Containers:
    """Every container of every bitmap.

    :ivar start: its first row's place.
    :ivar rows: how many rows it holds.
    :ivar key: the upper 16 bits of its rows.
    :ivar bitmap: the bitmap it belongs to.
    :ivar run_starts: places of rows that begin a run; a run ends with its container.
    :ivar runs: how many runs it has.
    :ivar is_run: whether it is written as runs.
    :ivar size: its bytes.
    :ivar first: each bitmap's first container.
    :ivar count: each bitmap's number of containers.
    """

    def __init__(self, rows: npt.NDArray[np.uint32], starts: Ints) -> None:
        begins = np.zeros(len(rows), dtype=bool)
        begins[starts] = True
        keys = rows >> np.uint32(16)
        begins[1:] |= keys[1:] != keys[:-1]
        breaks = begins.copy()
        breaks[1:] |= rows[1:] != rows[:-1] + np.uint32(1)
        self.start = np.flatnonzero(begins)
        self.run_starts = np.flatnonzero(breaks)
        self.rows = np.diff(self.start, append=len(rows))
        self.key = keys[self.start]
        self.runs = np.diff(np.searchsorted(self.run_starts, self.start), append=len(self.run_starts))
        plain = np.where(self.rows <= _ARRAY_MAX, 2 * self.rows, _BITMAP_BYTES)
        self.is_run = 2 + 4 * self.runs < plain
        self.size = np.where(self.is_run, 2 + 4 * self.runs, plain)
        self.first = np.searchsorted(self.start, starts)
        self.count = np.diff(self.first, append=len(self.start))
        self.bitmap = np.repeat(np.arange(len(starts)), self.count)


def _put_bodies(out: Bytes, rows: npt.NDArray[np.uint32], found: _Containers, body_at: Ints) -> None:
    low = (rows & np.uint32(0xFFFF)).astype(np.uint16)

    is_array = ~found.is_run & (found.rows <= _ARRAY_MAX)
    held = found.rows[is_array]
    nth = _counted(held)
    _put(
        out,
        np.repeat(body_at[is_array], held) + 2 * nth,
        low[np.repeat(found.start[is_array], held) + nth],
        2,
    )

    _put(out, body_at[found.is_run], found.runs[found.is_run], 2)
    chosen = np.repeat(found.is_run, found.runs)
    begin = low[found.run_starts[chosen]]
    end = low[np.append(found.run_starts[1:], len(rows))[chosen] - 1]
    held = found.runs[found.is_run]
    at = np.repeat(body_at[found.is_run], held) + 2 + 4 * _counted(held)
    _put(out, at, begin, 2)
    _put(out, at + 2, end - begin, 2)

    for i in np.flatnonzero(~found.is_run & ~is_array):
        bits = np.zeros(1 << 16, dtype=np.uint8)
        bits[low[found.start[i] : found.start[i] + found.rows[i]]] = 1
        out[body_at[i] : body_at[i] + _BITMAP_BYTES] = np.packbits(bits, bitorder="little")


def _counted(counts: Ints) -> Ints:
    """0, 1, … for each count."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _put(out: Bytes, at: Ints, values: npt.NDArray[np.integer], width: int) -> None:
    """Write little-endian integers of `width` bytes at the given places."""
    for byte in range(width):
        out[at + byte] = (values >> values.dtype.type(8 * byte)).astype(np.uint8)


_MAX_BYTES = 2**32 - 1  # offsets are unsigned 32-bit


def inverted_index(
    name: str, ids: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64] | None, cardinality: int
) -> bytes:
    """Where each id's bitmap begins and the last one ends, then the bitmaps.

    :param name: column name, for errors.
    :param ids: dictionary ids, one per row, or one per element of a multi-value column.
    :param lengths: each row's number of elements; None for a single-value column.
    :raises BuildError: the index would be larger than 4 GiB.
    """
    order = np.argsort(ids, kind="stable")
    rows = order if lengths is None else np.repeat(np.arange(len(lengths)), lengths)[order]
    grouped = ids[order]
    if lengths is not None:  # a row that holds a value twice counts once
        first = np.ones(len(rows), dtype=bool)
        first[1:] = (rows[1:] != rows[:-1]) | (grouped[1:] != grouped[:-1])
        rows, grouped = rows[first], grouped[first]
    starts = np.searchsorted(grouped, np.arange(cardinality))
    bitmaps, sizes = roarings(rows.astype(np.uint32), starts)
    offsets = 4 * (cardinality + 1) + np.concatenate(([0], np.cumsum(sizes)))
    if offsets[-1] > _MAX_BYTES:
        raise BuildError(
            f"The inverted index of column {name} is too large",
            why=f"its {cardinality} bitmaps take more than 4 GiB",
            hint="Leave the index to the server, or put fewer rows into a segment.",
        )
    return offsets.astype(">u4").tobytes() + bitmaps.tobytes()


_TYPE, _VERSION = 1, 1
_MURMUR128_MITZ_64 = 1  # Guava's hash strategy


def bloom_filter(column: str, texts: pa.LargeBinaryArray, cardinality: int, how: BloomFilter) -> bytes:
    """The filter of a column's values.

    :param texts: the values as Java texts, repeats allowed.
    :param cardinality: number of distinct values.
    :raises BuildError: it would have no bit; Guava refuses to make it, and Pinot to build the segment.
    """
    fpp = how.fpp
    if how.max_bytes > 0:
        fpp = max(fpp, 2.0 ** -(how.max_bytes * 8 / cardinality * math.log(2)))
    longs = -(-int(-cardinality * math.log(fpp) / (math.log(2) * math.log(2))) // 64)
    if longs == 0:
        raise BuildError(
            f"the bloom filter of column {column} would have no bit",
            why=f"{cardinality} distinct values with a false positive probability (fpp) of {fpp:g}",
            hint="lower its fpp, or leave it out: a filter that lets most values through saves nothing",
        )
    hashes = max(1, math.floor(-math.log(fpp) / math.log(2) + 0.5))
    bits = np.zeros(64 * longs, dtype=np.uint8)
    place, step = murmur3_x64_128(as_utf8(texts))
    for _ in range(hashes):
        bits[(place & np.uint64(2**63 - 1)) % np.uint64(len(bits))] = 1
        place = place + step
    words = np.packbits(bits, bitorder="little").view("<u8").astype(">u8")
    head = struct.pack(">iibbi", _TYPE, _VERSION, _MURMUR128_MITZ_64, hashes, longs)
    return head + words.tobytes()
