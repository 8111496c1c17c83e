from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from pinot_assets.build.orc_file import read_orc
from pinot_assets.build.rejected import Unreadable
from pinot_assets.build.verdicts import Verdicts
from pinot_assets.build.wanted import Wanted

WANTED = Wanted(pa.schema([("t", pa.timestamp("ms", "UTC"))]))


def test_times_are_utc(tmp_path: Path) -> None:
    moments = [datetime(1960, 1, 1), datetime(2262, 4, 1), None]
    orc.write_table(pa.table({"t": pa.array(moments, pa.timestamp("us"))}), tmp_path / "x")
    [table] = read_orc(tmp_path / "x", WANTED, Verdicts())
    assert table["t"].to_pylist() == [moment and moment.replace(tzinfo=UTC) for moment in moments]


def test_a_time_that_arrow_cannot_hold_is_not_told_as_damage(tmp_path: Path) -> None:
    orc.write_table(pa.table({"t": pa.array([datetime(9999, 12, 31)], pa.timestamp("ms"))}), tmp_path / "x")
    with pytest.raises(Unreadable, match=r"before 1677 or after 2262(.|\n)*engine: spark"):
        list(read_orc(tmp_path / "x", WANTED, Verdicts()))
