from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest

from pinot_assets.errors import BuildError
from pinot_assets.segment.values.partition import (
    PartitionFunction,
    Partitioning,
    hash_set_order,
    partition_values,
    partitions,
)

SUBJECTS = (("columnValues", "Maths|English||STRASSE"), ("columnValuesDelimiter", "|"))


def texts(values: Iterable[object]) -> pa.LargeBinaryArray:
    return pa.array([str(value).encode() for value in values], pa.large_binary())


# Recorded from java.util.HashSet<Integer>.
HASH_SETS = [
    ([3, 1, 2], [1, 2, 3]),
    ([17, 1, 33], [17, 1, 33]),
    ([*range(0, 192, 16)], [*range(0, 192, 32), *range(16, 192, 32)]),
    ([*range(0, 256, 16)], [0, 32, 64, 96, 128, 160, 192, 224, 16, 48, 80, 112, 144, 176, 208, 240]),
]  # fmt: skip


@pytest.mark.parametrize(("inserted", "order"), HASH_SETS)
def test_trap22_partitions_come_in_the_order_of_a_hash_set(inserted: list[int], order: list[int]) -> None:
    assert hash_set_order(inserted) == order


def test_trap22_the_table_grows_with_the_13th_element() -> None:
    twelve = [16, 0, *range(1, 11)]
    assert hash_set_order(twelve)[:2] == [16, 0]  # one bucket, by insertion
    assert hash_set_order([*twelve, 11])[-1] == 16  # of 32 buckets, 16 has its own


def test_partitions_are_inserted_as_rows_first_show_them() -> None:
    how = Partitioning(PartitionFunction.MODULO, 64)
    codes = np.array([2, 2, 0, 1, 0], dtype=np.int32)
    assert partition_values("c", how, texts([16, 32, 0, 48])[:3], codes) == [0, 16, 32]


def test_modulo_is_never_negative() -> None:
    values = [-7, -8, 7, 0, -(2**63), 2**63 - 1, "+9", "007"]
    found = partitions("c", Partitioning(PartitionFunction.MODULO, 4), texts(values))
    assert found.tolist() == [1, 0, 3, 0, 0, 3, 1, 3]


@pytest.mark.parametrize("value", ["", "1.0", "null", " 1", "++1", "1e3", 2**63, "0x1"])
def test_modulo_of_what_is_no_whole_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(BuildError, match="Column c holds a text that is no whole number"):
        partitions("c", Partitioning(PartitionFunction.MODULO, 4), texts([1, value]))


def test_bounded_values_are_found_whatever_their_case() -> None:
    how = Partitioning(PartitionFunction.BOUNDED_COLUMN_VALUE, 4, SUBJECTS)
    values = ["maths", "ENGLISH", "Chemistry", "", "strasse", "straße", "Maths "]
    assert partitions("c", how, texts(values)).tolist() == [1, 2, 0, 0, 3, 0, 0]


def test_bounded_values_split_at_every_character_of_the_delimiter() -> None:
    config = (("columnValues", ";a,b;;c"), ("columnValuesDelimiter", ",;"))
    assert Partitioning(PartitionFunction.BOUNDED_COLUMN_VALUE, 4, config).bounded_values == ["a", "b", "c"]


def test_the_smallest_hash_code_counts_as_zero() -> None:
    # "polygenelubricants" has the hash code -2^31, which has no opposite.
    found = partitions("c", Partitioning(PartitionFunction.HASH_CODE, 1000), texts(["polygenelubricants"]))
    assert found.tolist() == [0]


@pytest.mark.parametrize(
    "function", [PartitionFunction.MURMUR, PartitionFunction.MURMUR3, PartitionFunction.BYTE_ARRAY]
)
def test_half_a_surrogate_pair_is_hashed_as_a_question_mark(function: PartitionFunction) -> None:
    half = pa.array(["ab\ud83d".encode("utf-8", "surrogatepass")], pa.large_binary())
    how = Partitioning(function, 1_000_003)
    assert partitions("c", how, half).tolist() == partitions("c", how, texts(["ab?"])).tolist()
    how = Partitioning(PartitionFunction.HASH_CODE, 1_000_003)
    assert partitions("c", how, half).tolist() != partitions("c", how, texts(["ab?"])).tolist()
