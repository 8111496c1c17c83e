from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from pinot_assets.errors import BuildError
from pinot_assets.segment.config.segment_spec import BloomFilter
from pinot_assets.segment.indexes.bitmaps import bloom_filter
from pinot_assets.segment.values.hashing import murmur3_x64_128


def texts(numbers: np.ndarray) -> pa.LargeBinaryArray:
    return pa.array(numbers).cast(pa.large_string()).cast(pa.large_binary())


def holds(payload: bytes, numbers: np.ndarray) -> np.ndarray:
    """Which numbers the filter may hold, read as Pinot's reader reads it."""
    kind, version, strategy, hashes, longs = struct.unpack_from(">iibbi", payload)
    assert (kind, version, strategy, len(payload)) == (1, 1, 1, 14 + 8 * longs)
    words = np.frombuffer(payload, dtype=">u8", offset=14).astype(np.uint64)
    first, second = murmur3_x64_128(texts(numbers))
    found = np.ones(len(numbers), dtype=bool)
    for i in range(hashes):
        place = ((first + np.uint64(i) * second) & np.uint64(2**63 - 1)) % np.uint64(64 * longs)
        found &= (words[place // np.uint64(64)] >> place % np.uint64(64) & np.uint64(1)).astype(bool)
    return found


@pytest.mark.parametrize("fpp", [0.05, 0.3, 0.001])
def test_a_filter_knows_its_values_and_few_others(fpp: float) -> None:
    known, others = np.arange(20_000), np.arange(20_000, 60_000)
    payload = bloom_filter("c", texts(known), len(known), BloomFilter(fpp))
    assert holds(payload, known).all()
    assert 0.5 * fpp < holds(payload, others).mean() < 1.5 * fpp


def test_a_largest_size_is_kept_at_the_cost_of_accuracy() -> None:
    known = np.arange(20_000)
    payload = bloom_filter("c", texts(known), len(known), BloomFilter(0.05, max_bytes=1000))
    assert len(payload) <= 14 + 1008
    assert holds(payload, known).all()


def test_repeats_change_nothing() -> None:
    once = bloom_filter("c", texts(np.arange(100)), 100, BloomFilter())
    assert bloom_filter("c", texts(np.arange(100).repeat(3)), 100, BloomFilter()) == once


def test_a_filter_without_a_bit_is_refused_as_guava_does() -> None:
    assert bloom_filter("c", texts(np.arange(1)), 1, BloomFilter(0.61))
    with pytest.raises(BuildError, match="bloom filter of column c would have no bit") as error:
        bloom_filter("c", texts(np.arange(1)), 1, BloomFilter(0.62))
    assert "fpp" in error.value.hint
