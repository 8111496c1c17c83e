"""Indexes of bits: null vectors, the inverted index, and bloom filters.

Row numbers are stored in portable 32-bit Roaring bitmaps, run-optimised as by Pinot's writer. Bloom filters
are Guava's.

Source: docs/design/segment-format.md#s8 and #s10, `BitmapInvertedIndexWriter`,
`OnHeapGuavaBloomFilterCreator`.
"""

from __future__ import annotations

import math
import struct
from array import array
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from pinot_assets.errors import BuildError
from pinot_assets.segment.config.segment_spec import BloomFilter
from pinot_assets.segment.values.hashing import as_utf8, murmur3_x64_128

_MAX_BYTES = 2**32 - 1  # offsets are unsigned 32-bit


def roaring(rows: npt.NDArray[np.uint32]) -> bytes:
    """Return row numbers as a serialised Roaring bitmap.

    :param rows: row numbers, at least one.
    """
    bitmap = BitMap(array("I", rows.tobytes()), optimize=True)  # with runs, as Pinot's writer makes them
    return bitmap.serialize()


def inverted_index(
    name: str, ids: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64] | None, cardinality: int
) -> bytes:
    """Return where each id's bitmap begins and the last one ends, then the bitmaps.

    :param name: column name, for errors.
    :param ids: dictionary ids, one per row, or one per element of a multi-value column.
    :param lengths: each row's number of elements; None for a single-value column.
    :raises BuildError: the index would be larger than 4 GiB.
    """
    order = np.argsort(ids, kind="stable")
    row_of = order if lengths is None else np.repeat(np.arange(len(lengths)), lengths)[order]
    rows, starts = row_of.astype(np.uint32), np.searchsorted(ids[order], np.arange(cardinality + 1))
    bitmaps = [roaring(rows[start:end]) for start, end in pairwise(starts)]
    offsets = 4 * (cardinality + 1) + np.concatenate(([0], np.cumsum([*map(len, bitmaps)])))
    if offsets[-1] > _MAX_BYTES:
        raise BuildError(
            f"The inverted index of column {name} is too large",
            why=f"its {cardinality} bitmaps take more than 4 GiB",
            hint="Leave the index to the server, or put fewer rows into a segment.",
        )
    return offsets.astype(">u4").tobytes() + b"".join(bitmaps)


_TYPE, _VERSION = 1, 1
_MURMUR128_MITZ_64 = 1  # Guava's hash strategy


def bloom_filter(column: str, texts: pa.LargeBinaryArray, cardinality: int, how: BloomFilter) -> bytes:
    """Return the bloom filter of a column's values.

    :param texts: the values as Java texts, repeats allowed.
    :param cardinality: number of distinct values.
    :raises BuildError: the filter would have no bit: Guava refuses it, and Pinot does not build the segment.
    """
    fpp = how.fpp
    if how.max_bytes > 0:
        fpp = max(fpp, 2.0 ** -(how.max_bytes * 8 / cardinality * math.log(2)))
    longs = -(-int(-cardinality * math.log(fpp) / (math.log(2) * math.log(2))) // 64)
    if longs == 0:
        raise BuildError(
            f"the bloom filter of column {column} would have no bit",
            why=f"{cardinality} distinct values with a false positive probability (fpp) of {fpp:g}",
            hint="lower its fpp, or remove it: a filter that most values pass saves nothing",
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
