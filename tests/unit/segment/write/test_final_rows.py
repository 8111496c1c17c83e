"""A segment of final rows is the segment of the rows themselves, byte for byte."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import BuildError
from pinot_assets.segment.config.segment_spec import SegmentSpec
from pinot_assets.segment.write.final_rows import final_rows
from pinot_assets.segment.write.segment import Segment, build_and_release

NOW = 1_700_000_000_000
SCHEMA: JsonObject = {
    "schemaName": "t",
    "dimensionFieldSpecs": [
        {"name": "short", "dataType": "STRING", "maxLength": 3},
        {"name": "tags", "dataType": "STRING", "singleValueField": False, "maxLength": 2},
        {"name": "numbers", "dataType": "INT", "singleValueField": False},
        {"name": "doc", "dataType": "JSON"},
        {"name": "raw", "dataType": "BYTES", "maxLength": 2},
        {"name": "flag", "dataType": "BOOLEAN"},
        {"name": "dec", "dataType": "BIG_DECIMAL"},
    ],
    "metricFieldSpecs": [{"name": "value", "dataType": "DOUBLE"}],
    "dateTimeFieldSpecs": [
        {"name": "at", "dataType": "TIMESTAMP", "format": "TIMESTAMP", "granularity": "1:MILLISECONDS"},
        {"name": "seen", "dataType": "TIMESTAMP", "format": "TIMESTAMP", "granularity": "1:MILLISECONDS"},
    ],
}


def spec_of(**ingestion: object) -> SegmentSpec:
    table = {
        "tableName": "t_OFFLINE",
        "tableType": "OFFLINE",
        "segmentsConfig": {"timeColumnName": "at"},
        "tableIndexConfig": {"nullHandlingEnabled": True, "sortedColumn": ["short"]},
        "ingestionConfig": ingestion,
    }
    return SegmentSpec.from_pinot(SCHEMA, table)


def rows() -> pa.Table:
    values: dict[str, list[object]] = {
        "short": ["abcdef", None, "b\0c", "z"],
        "tags": [["abc", "a"], None, [], ["x\0y"]],
        "numbers": [[1, 2], None, [3], []],
        "doc": ['{"b": 1,  "a": 2}', None, "[1]", '"x"'],
        "raw": [b"\x01\x02\x03", None, b"", b"\xff"],
        "flag": [True, None, False, True],
        "dec": ["1.50", None, "2", "-0"],
        "value": [math.nan, None, -0.0, 1.5],
        "at": [NOW, None, NOW - 5, NOW - 9],
        "seen": [None, 1, 2, 3],
    }
    schema = spec_of().arrow_schema()
    columns = []
    for field in schema:
        kind = field.type
        if pa.types.is_timestamp(kind):
            columns.append(pa.array(values[field.name], pa.int64()).cast(pa.timestamp("ms")).cast(kind))
        else:
            columns.append(pa.array(values[field.name], kind))
    return pa.table(columns, schema=schema)


def segment(table: pa.Table, spec: SegmentSpec, **more: object) -> Segment:
    columns = dict(zip(table.column_names, table.columns, strict=True))
    return build_and_release(
        columns, table.num_rows, spec, name="s", table_name="t", creation_time_ms=NOW, now_ms=NOW, **more
    )


def test_a_segment_of_final_rows_is_that_of_the_rows() -> None:
    spec = spec_of()
    final = final_rows(rows(), spec, NOW)
    assert segment(final.table, spec, null_times=final.null_times).files == segment(rows(), spec).files
    assert {name: tuple(cut) for name, cut in final.cut.items()} == {"short": (1, 1, 0), "tags": (1, 1, 0)}


def test_final_rows_stay_what_they_are() -> None:
    spec = spec_of()
    once = final_rows(rows(), spec, NOW)
    again = final_rows(once.table, spec, NOW + 1)
    assert str(again.table.to_pydict()) == str(once.table.to_pydict())  # NaN equals nothing
    assert not again.cut
    assert once.table.column("at").null_count == 0


def test_times_that_are_none_become_null_once() -> None:
    spec = spec_of(rowTimeValueCheck=True, continueOnError=True)
    table = rows()
    at = pa.array([NOW, 5, None, NOW], pa.int64()).cast(pa.timestamp("ms"))
    kind = table.schema.field("at").type
    table = table.set_column(table.schema.get_field_index("at"), "at", at.cast(kind))
    final = final_rows(table, spec, NOW)
    assert final.null_times is not None
    assert final.null_times.tolist() == [False, True, True, False]
    assert final.cut["at"].out_of_time == 1
    assert segment(final.table, spec, null_times=final.null_times).files == segment(table, spec).files


def test_a_time_that_no_segment_can_have_is_refused_at_once() -> None:
    spec, table = spec_of(), rows()
    at = pa.array([NOW, 5, 6, 7], pa.int64()).cast(pa.timestamp("ms"))
    table = table.set_column(table.schema.get_field_index("at"), "at", at.cast(table.schema.field("at").type))
    with pytest.raises(BuildError, match="Invalid segment start/end time"):
        final_rows(table, spec, NOW)
