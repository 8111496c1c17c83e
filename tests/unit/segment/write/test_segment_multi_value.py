from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pinot_assets.errors import BuildError
from pinot_assets.segment import Segment, SegmentSpec, build_segment
from pinot_assets.segment.values.distinct import filled_rows

ROWS = [["b", "a", None], None, [], [None], ["c"], ["a", "a"]]


def build(values: Any, *, single: bool = False) -> Segment:
    field = {"name": "c", "dataType": "STRING", "singleValueField": single}
    spec = SegmentSpec.from_pinot(
        {"dimensionFieldSpecs": [field]}, {"tableIndexConfig": {"nullHandlingEnabled": True}}
    )
    table = pa.table({"c": values})
    return build_segment(table, spec, name="t", table_name="t", creation_time_ms=0, now_ms=0)


def test_trap09_rows_without_elements_hold_the_default() -> None:
    codes, lengths, is_null = filled_rows(
        np.array([4, -1, 5, -1, 6], np.int32), np.array([3, 0, 1, 0, 1]), fill=9
    )
    assert codes.tolist() == [4, 5, 9, 9, 9, 6]
    assert lengths.tolist() == [2, 1, 1, 1, 1]
    assert is_null.tolist() == [False, True, True, True, False]


PLAIN = pa.array(ROWS, pa.list_(pa.string()))


@pytest.mark.parametrize(
    "values",
    [
        pa.array(ROWS, pa.large_list(pa.large_string())),
        pa.chunked_array([PLAIN[:1], PLAIN[1:1], PLAIN[1:4], PLAIN[4:]]),
        pa.concat_arrays([PLAIN, PLAIN])[len(ROWS) :],
        pa.ListArray.from_arrays(PLAIN.offsets, PLAIN.values.dictionary_encode(), mask=PLAIN.is_null()),
    ],
    ids=["large", "chunks", "slice", "dictionary"],
)
def test_trap33_layouts_of_lists_do_not_matter(values: Any) -> None:
    assert build(values).files == build(PLAIN).files


def test_trap34_unused_entries_of_elements_stay_out() -> None:
    entries = pa.array(["unused", "a", None, "b", "a"])
    elements = pa.DictionaryArray.from_arrays(pa.array([3, 4, 2, 1]), entries)
    segment = build(pa.ListArray.from_arrays(pa.array([0, 2, 3, 4]), elements))
    assert segment.files == build(pa.array([["b", "a"], [None], ["a"]])).files
    assert (segment.columns[0].cardinality, segment.columns[0].nulls) == (3, 1)


def test_trap33_fixed_size_lists() -> None:
    rows = [["a", None], None, ["b", "b"]]
    fixed = pa.array(rows, pa.list_(pa.string(), 2))
    assert build(fixed).files == build(pa.array(rows, pa.list_(pa.string()))).files
    assert build(fixed[1:]).files == build(pa.array(rows[1:], pa.list_(pa.string()))).files


def test_trap09_scalars_are_rows_of_one() -> None:
    assert build(pa.array(["b", None, "a"])).files == build(pa.array([["b"], None, ["a"]])).files


def test_trap09_a_single_value_column_takes_lists_of_one() -> None:
    listed = build(pa.array([["b"], None, [None, "a"], []]), single=True)
    assert listed.files == build(pa.array(["b", None, "a", None]), single=True).files
    with pytest.raises(BuildError, match="Column c is single-value"):
        build(pa.array([["b"], ["a", "b"]]), single=True)


@pytest.mark.parametrize(
    "values", [pa.nulls(3), pa.array([[], [], []]), pa.array([[], [], []], pa.list_(pa.string()))]
)
def test_columns_without_any_element(values: Any) -> None:
    assert build(values).files == build(pa.array([None] * 3, pa.list_(pa.string()))).files


def test_lists_of_lists_are_refused_by_name() -> None:
    with pytest.raises(BuildError, match="Column c cannot be built"):
        build(pa.array([[["a"]]]))
