"""Guava's bloom filter over a column's values.

Source: docs/design/segment-format.md#s10, `OnHeapGuavaBloomFilterCreator`.
"""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa

from pinot_assets.errors import BuildError
from pinot_assets.segment.config.indexes import BloomFilter
from pinot_assets.segment.values.hashing import murmur3_x64_128
from pinot_assets.segment.values.java_text import as_utf8

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
