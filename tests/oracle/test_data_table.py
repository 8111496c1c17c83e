"""Answers of servers as Pinot 1.5.1 writes them (`DataTableImplV4`)."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from pinot_assets.pinot.client.data_table import read_data_table

Oracle = Any  # conftest.Oracle; the folders of the tests are not packages

COLUMNS = ["carrier", "day", "is_late", "at", "count(*)", "sum(x)", "min(f)", "avg(x)"]
TYPES = ["STRING", "INT", "BOOLEAN", "TIMESTAMP", "LONG", "DOUBLE", "FLOAT", "OBJECT"]
ROWS = [("UA", 1, 1, -5, 2**53 + 1, -0.5, 0.25), ("Ünï", -7, 0, 1_700_000_000_000, 0, float("inf"), -1.0)]
LAYOUT = struct.Struct(">iiiqqdf8x")


@pytest.fixture
def table(oracle: Oracle) -> Any:
    """A DataTable of Pinot's own, with two rows of every type."""
    jvm, gateway = oracle.jvm, oracle._gateway
    kinds = jvm.org.apache.pinot.common.utils.DataSchema.ColumnDataType
    names = gateway.new_array(jvm.java.lang.String, len(COLUMNS))
    types = gateway.new_array(kinds, len(TYPES))
    texts = gateway.new_array(jvm.java.lang.String, len(ROWS))
    for place, (name, kind) in enumerate(zip(COLUMNS, TYPES, strict=True)):
        names[place], types[place] = name, kinds.valueOf(kind)
    for number, row in enumerate(ROWS):
        texts[number] = row[0]
    fixed = b"".join(LAYOUT.pack(number, *row[1:]) for number, row in enumerate(ROWS))
    schema = jvm.org.apache.pinot.common.utils.DataSchema(names, types)
    return jvm.org.apache.pinot.common.datatable.DataTableImplV4(len(ROWS), schema, texts, fixed, b"")


def test_every_type_that_is_read_is_what_pinot_reads(table: Any) -> None:
    read = read_data_table(bytes(table.toBytes()))
    assert read.columns == tuple(zip(COLUMNS, TYPES, strict=True))
    assert read.rows == tuple((*row, None) for row in ROWS)
    for number in range(len(ROWS)):
        assert (
            table.getString(number, 0),
            table.getInt(number, 1),
            table.getInt(number, 2),
            table.getLong(number, 3),
            table.getLong(number, 4),
            table.getDouble(number, 5),
            table.getFloat(number, 6),
        ) == read.rows[number][:-1]


def test_what_a_server_tells_beside_its_rows(table: Any) -> None:
    metadata = table.getMetadata()
    for key, value in {
        "timeUsedMs": "12",
        "workloadName": "audit",
        "numSegmentsQueried": "3",
        "totalDocs": str(2**40),
        "numGroupsLimitReached": "true",
    }.items():
        metadata.put(key, value)
    table.addException(235, "1 segments [nope] missing on server")
    read = read_data_table(bytes(table.toBytes()))
    assert (read.segments_queried, read.total_docs, read.groups_cut) == (3, 2**40, True)
    assert read.exceptions == {235: "1 segments [nope] missing on server"}


def test_a_server_that_tells_nothing(oracle: Oracle) -> None:
    empty = oracle.jvm.org.apache.pinot.common.datatable.DataTableImplV4()
    read = read_data_table(bytes(empty.toBytes()))
    assert (read.columns, read.rows, read.exceptions) == ((), (), {})
    assert (read.segments_queried, read.total_docs, read.groups_cut) == (None, None, False)
