from __future__ import annotations

import numpy as np
import pytest

from pinot_assets.errors import BuildError
from pinot_assets.segment.indexes.dictionary import (
    bits_per_value,
    check_size,
    entry_dictionary,
    fixed_bit,
    multi_value,
    sorted_index,
)
from pinot_assets.segment.values.distinct import is_sorted


@pytest.mark.parametrize("bits", range(1, 32))
@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 101, 1999, 2000, 2003])
def test_fixed_bit_packs_most_significant_bit_first(bits: int, count: int) -> None:
    ids = np.random.default_rng(bits).integers(0, 2**bits, count).astype(np.int32)
    text = "".join(f"{value:0{bits}b}" for value in ids)
    text += "0" * (-len(text) % 8)
    assert fixed_bit(ids, bits) == int(text, 2).to_bytes(len(text) // 8, "big")


@pytest.mark.parametrize(
    ("cardinality", "bits"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (256, 8), (257, 9), (65_537, 17)]
)
def test_bits_per_value(cardinality: int, bits: int) -> None:
    assert bits_per_value(cardinality) == bits


def test_sorted_index_holds_first_and_last_row_of_each_id() -> None:
    ids = np.array([0, 0, 1, 2, 2, 2], dtype=np.int32)
    assert is_sorted(ids)
    assert np.frombuffer(sorted_index(ids), ">i4").reshape(-1, 2).tolist() == [[0, 1], [2, 2], [3, 5]]
    assert not is_sorted(np.array([1, 0], dtype=np.int32))


def test_trap10_rows_of_a_chunk_by_the_whole_part_of_the_average() -> None:
    # 3 values in 2 rows: an average of 1, so 2048 rows a chunk.
    lengths = np.array([1, 2] * 2000)
    ids = np.zeros(lengths.sum(), dtype=np.int32)
    offsets = np.frombuffer(multi_value(ids, lengths, 1), ">i4", 2)
    assert offsets.tolist() == [0, 3 * 1024]


def test_multi_value_marks_where_rows_start() -> None:
    payload = multi_value(np.array([1, 0, 1, 1], np.int32), np.array([2, 1, 1]), 1)
    assert payload == b"\0\0\0\0" + bytes([0b10110000]) + bytes([0b10110000])


def test_an_entry_dictionary_holds_each_row_once() -> None:
    payload = entry_dictionary(np.array([2, 1, 0, 2, 1], np.int32), np.array([2, 1, 2]), 2)
    header = bytes.fromhex("ffabcdef 0001 02 01 00000002 00000003 00000019 0000001a")
    ids, offsets, values = 0b01000000, 0b00101100, 0b10010000
    assert payload == header + bytes([ids, offsets, values])


def test_an_index_beyond_2_gib_is_refused_by_name() -> None:
    check_size("c", 10**9, 16)
    for values, bits in ((2**31, 1), (10**9, 17)):
        with pytest.raises(BuildError, match="forward index of column c is too large"):
            check_size("c", values, bits)
