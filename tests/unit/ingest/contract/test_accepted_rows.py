from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pinot_assets.core.file_errors import BadRow, ColumnMissing, TooManyBadRows, TypeMismatch
from pinot_assets.ingest.contract import accepted_rows
from pinot_assets.ingest.contract.accepted_rows import BadRowAllowance, BadRowPolicy, Quarantine


def bad(row: int, record: str = "") -> BadRow:
    return BadRow(row, "i", "'x'", "cannot become INT", TypeMismatch, record or f"x{row}")


def test_nothing_is_forgiven_unless_the_table_says_so() -> None:
    with pytest.raises(TypeMismatch, match=r"^column i, row 3: 'x' cannot become INT$"):
        BadRowPolicy().bad([bad(3), bad(4)])


def test_bad_rows_are_written_down(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    quarantine = Quarantine(path, "file:///a", BadRowAllowance.parse("3"))
    quarantine.bad([bad(3)])
    quarantine.bad([bad(7, "\udcff|\ud83d")])
    quarantine.finish(10)
    assert quarantine.bad_rows == 2
    assert pq.read_table(path).to_pylist() == [
        {
            "file": "file:///a",
            "row": row,
            "column": "i",
            "value": "'x'",
            "reason": "cannot become INT",
            "code": "TYPE_MISMATCH",
            "record": record,
        }
        for row, record in [(3, "x3"), (7, "\\udcff|\\ud83d")]
    ]


def test_a_file_without_bad_rows_has_no_parquet_file(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path / "bad.parquet", "file:///a", BadRowAllowance.parse("0"))
    quarantine.finish(10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("limit", "count", "too_many"), [("2", 2, False), ("2", 3, True), ("0", 1, True)])
def test_a_limit_of_rows(tmp_path: Path, limit: str, count: int, too_many: bool) -> None:
    quarantine = Quarantine(tmp_path / "bad.parquet", "file:///a", BadRowAllowance.parse(limit))
    if too_many:
        with pytest.raises(TooManyBadRows) as caught:
            quarantine.bad([bad(n) for n in range(count)])
        assert f"more than {limit} rows are bad, maxBadRows is {limit}" in str(caught.value)
        assert "the first is column i, row 0: 'x' cannot become INT" in str(caught.value)
    else:
        quarantine.bad([bad(n) for n in range(count)])
        quarantine.finish(0)


@pytest.mark.parametrize(("rows", "too_many"), [(99, False), (98, True)])
def test_a_limit_of_the_file_s_rows(tmp_path: Path, rows: int, too_many: bool) -> None:
    quarantine = Quarantine(tmp_path / "bad.parquet", "file:///a", BadRowAllowance.parse("1%"))
    quarantine.bad([bad(5)])
    if too_many:
        with pytest.raises(TooManyBadRows, match="1 of 99 rows are bad, maxBadRows is 1%"):
            quarantine.finish(rows)
    else:
        quarantine.finish(rows)


def test_rows_that_a_filter_dropped_are_rows_of_the_file(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path / "bad.parquet", "file:///a", BadRowAllowance.parse("1%"))
    quarantine.bad([bad(150)])
    quarantine.finish(0)  # at least 150 rows were read
    counted = Quarantine(tmp_path / "other.parquet", "file:///a", BadRowAllowance.parse("1%"))
    counted.bad([bad(5)])
    counted.rows = 50
    with pytest.raises(TooManyBadRows, match="1 of 50 rows are bad"):
        counted.finish(0)


def test_a_plainly_bad_file_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepted_rows, "_ENOUGH", 20)
    quarantine = Quarantine(tmp_path / "bad.parquet", "file:///a", BadRowAllowance.parse("10%"))
    quarantine.bad([bad(n) for n in range(1, 20)])  # 19 of 19 may still be few
    quarantine.bad([bad(n) for n in range(299, 301)])
    with pytest.raises(TooManyBadRows, match="41 of the first 320 rows are bad, maxBadRows is 10%"):
        quarantine.bad([bad(n) for n in range(301, 321)])


def test_missing_columns_are_kept_or_fail_the_file() -> None:
    kind = BadRowPolicy()
    kind.lacks(("a", "b"))
    assert kind.missing == ("a", "b")
    strict = BadRowPolicy("fail")
    strict.lacks(())
    with pytest.raises(ColumnMissing, match="the file has no column a, b"):
        strict.lacks(("a", "b"))
