"""Columns that have no value in any row of a file."""

from __future__ import annotations

import pyarrow as pa

from pinot_assets.ingest.contract.accepted_rows import EmptyColumns

TABLES = (
    pa.table({"a": [1, None], "b": pa.array([None, None], pa.int64()), "c": [None, [1]]}),
    pa.table({"a": pa.array([None], pa.int64()), "b": pa.array([None], pa.int64()), "c": [[2]]}),
)


def test_a_column_is_missing_when_no_row_of_any_table_has_a_value() -> None:
    values = EmptyColumns("abc")
    assert list(values.watched(iter(TABLES))) == list(TABLES)
    assert values.missing(()) == ("b",)


def test_what_the_file_lacks_is_named_once_and_first() -> None:
    values = EmptyColumns("abc")
    list(values.watched(iter(TABLES)))
    assert values.missing(("input", "b")) == ("input", "b")


def test_of_a_file_without_rows_nothing_more_is_known() -> None:
    values = EmptyColumns("abc")
    assert list(values.watched(iter(()))) == []
    assert values.missing(("b",)) == ("b",)
