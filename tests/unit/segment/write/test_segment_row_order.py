from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pinot_assets.segment import SegmentSpec, build_segment
from pinot_assets.segment.values.normalize import Normalized
from pinot_assets.segment.write.segment import reordered, row_order

SCHEMA = {
    "dimensionFieldSpecs": [
        {"name": "s", "dataType": "STRING"},
        {"name": "i", "dataType": "INT"},
        {"name": "m", "dataType": "INT", "singleValueField": False},
    ]
}
TABLE = pa.table(
    {
        "s": ["b", "\U0001f600", None, "a", "\ue000", "b"],
        "i": pa.array([5, 4, 3, 2, 1, 0], pa.int32()),
        "m": pa.array([[1, 2], None, [3], [], [4, 4, 4], [5]], pa.list_(pa.int32())),
    }
)


def ids(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def test_rows_go_by_the_first_key_then_by_the_next_then_stay() -> None:
    order = row_order([ids(1, 0, 1, 0, 1), ids(2, 2, 1, 1, 2)])
    assert order is not None
    assert order.tolist() == [3, 1, 2, 0, 4]


@pytest.mark.parametrize("keys", [[], [ids(0, 0, 1)], [ids(0, 0, 1), ids(1, 1, 0)], [ids(7)]])
def test_rows_in_order_need_none(keys: list[np.ndarray]) -> None:
    assert row_order(keys) is None


def test_rows_of_several_values_move_as_a_whole() -> None:
    cleaned = Normalized(
        values=np.arange(9),
        codes=ids(0, 1, 2, 3, 4, 5),
        lengths=np.array([2, 1, 3]),
        is_null=np.array([False, True, False]),
    )
    moved = reordered(cleaned, np.array([2, 0, 1]))
    assert moved.lengths is not None
    assert (moved.codes.tolist(), moved.lengths.tolist()) == ([3, 4, 5, 0, 1, 2], [3, 2, 1])
    assert moved.is_null.tolist() == [False, False, True]


def build(table: pa.Table, *order: str) -> Any:
    config = {"tableIndexConfig": {"nullHandlingEnabled": True, "sortedColumn": [*order]}}
    spec = SegmentSpec.from_pinot(SCHEMA, config)
    return build_segment(table, spec, name="t", table_name="t", creation_time_ms=0, now_ms=0)


@pytest.mark.parametrize("order", [["s"], ["s", "i"], ["i"], ["absent"]], ids=" ".join)
def test_a_sorted_table_is_the_table_of_sorted_rows(order: list[str]) -> None:
    if order == ["absent"]:
        table, order, rows = TABLE.drop_columns("i"), ["i"], [*range(6)]
    else:
        table = TABLE
        # U+1F600 comes before U+E000, null is the text null.
        rows = {"s": [3, 0, 5, 2, 1, 4], "s i": [3, 5, 0, 2, 1, 4], "i": [5, 4, 3, 2, 1, 0]}[" ".join(order)]
    sorted_segment = build(table, *order)
    assert sorted_segment.files == build(table.take(rows)).files
    assert {column.name: column.is_sorted for column in sorted_segment.columns}[order[0]]


def test_trap33_arrow_layout_does_not_matter_for_the_order() -> None:
    encoded = TABLE.set_column(0, "s", TABLE.column("s").dictionary_encode())
    chunks = pa.concat_tables([encoded[4:], encoded[:4], encoded[:4]])[:6]
    assert build(chunks, "s").files == build(pa.concat_tables([TABLE[4:], TABLE[:4]]), "s").files
