"""How many values of a column lost something."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pinot_assets.segment import SegmentSpec, build_segment
from pinot_assets.segment.values.normalize import Cut


def cut_of(values: list[Any], kind: str = "STRING", **field: Any) -> Cut:
    is_multi = any(isinstance(value, list) for value in values)
    column = {"name": "c", "dataType": kind, "singleValueField": not is_multi, **field}
    spec = SegmentSpec.from_pinot(
        {"schemaName": "t", "dimensionFieldSpecs": [column]}, {"tableIndexConfig": {}}
    )
    item = pa.binary() if kind == "BYTES" else pa.string()
    table = pa.table({"c": pa.array(values, pa.list_(item) if is_multi else item)})
    segment = build_segment(table, spec, name="n", table_name="t", creation_time_ms=0, now_ms=0)
    [stats] = segment.columns
    return stats.cut


def test_each_rows_value_counts() -> None:
    values = ["a\0b", "a\0b", "whole", None, "long value", "é\0", "\0"]
    assert cut_of(values, maxLength=5) == Cut(at_nul=4, at_length=1)


def test_what_loses_nothing_does_not_count() -> None:
    assert cut_of(["whole", None, "ééééé"], maxLength=5) == Cut()
    assert cut_of(["a" * 600], "JSON") == Cut()
    assert cut_of(["a" * 600, None], maxLength=600, defaultNullValue="x" * 900) == Cut()


def test_elements_of_several_values_count() -> None:
    assert cut_of([["a\0", "b"], ["a\0", "too long"], []], maxLength=3) == Cut(2, 1)


def test_bytes_and_replaced_values_count() -> None:
    assert cut_of([b"1234", b"12"], "BYTES", maxLength=3, maxLengthExceedStrategy="TRIM_LENGTH") == Cut(0, 1)
    replaced = {"maxLength": 3, "maxLengthExceedStrategy": "SUBSTITUTE_DEFAULT_VALUE"}
    assert cut_of(["1234", "12", "1\0"], **replaced) == Cut(1, 1)
