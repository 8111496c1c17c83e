from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from pinot_assets.core.file_errors import Unreadable
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats.binary_formats import first_orc
from pinot_assets.ingest.formats.read import read_batches

WANTED = TargetSchema(pa.schema([("t", pa.timestamp("ms", "UTC"))]))


def read_orc(path: Path, wanted: TargetSchema, verdicts: BadRowPolicy) -> Iterator[pa.Table]:
    return read_batches(path, wanted, "orc", reader={}, verdicts=verdicts)


def test_times_are_utc(tmp_path: Path) -> None:
    moments = [datetime(1960, 1, 1), datetime(2262, 4, 1), None]
    orc.write_table(pa.table({"t": pa.array(moments, pa.timestamp("us"))}), tmp_path / "x")
    [table] = read_orc(tmp_path / "x", WANTED, BadRowPolicy())
    assert table["t"].to_pylist() == [moment and moment.replace(tzinfo=UTC) for moment in moments]


def test_a_time_that_arrow_cannot_hold_is_not_told_as_damage(tmp_path: Path) -> None:
    orc.write_table(pa.table({"t": pa.array([datetime(9999, 12, 31)], pa.timestamp("ms"))}), tmp_path / "x")
    with pytest.raises(Unreadable, match=r"before 1677 or after 2262(.|\n)*engine: spark"):
        list(read_orc(tmp_path / "x", WANTED, BadRowPolicy()))


def test_a_name_with_a_dot_is_no_member_of_a_struct(tmp_path: Path) -> None:
    """ORC's reader gives the member, whose column would be null in all rows without a word."""
    member = pa.array([{"b": 1}], pa.struct([("b", pa.int64())]))
    for name, table in (
        ("after", {"a": member, "a.b": [2]}),
        ("before", {"a.b": [2], "a": member, "c": [3]}),
    ):
        orc.write_table(pa.table(table), tmp_path / name)
        wanted = TargetSchema(pa.schema([("c", pa.int64()), ("a.b", pa.int64())]))
        [read] = read_orc(tmp_path / name, wanted, BadRowPolicy())
        assert read["a.b"].to_pylist() == [2]
        assert first_orc(tmp_path / name, 5).column_names == list(table)
