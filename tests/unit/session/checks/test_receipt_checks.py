"""What is looked at of what was built: rows of rewritten files, by themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pinot_assets.audit.checks import RowsSeen
from pinot_assets.session.checks.receipt_checks import new_outputs, rows_seen, within
from pinot_assets.session.stores.staging import Switch
from pinot_assets.snapshot.receipt import Fingerprint, Output, Receipt
from pinot_assets.table_spec.blocks.audit import RowChange, TimeRange


def receipt(uri: str, rows: int) -> Receipt:
    return Receipt(uri, 0, 0, Fingerprint(1, 1), "x", rows, 0, (), 0.0, "")


def test_segments_without_times_are_told_of_only_where_a_range_is_asked_for() -> None:
    outputs = [Output("a", 1, 1, "", 1, "", "")]
    assert list(within((), outputs, 0)) == []
    ranges = [TimeRange(check="time_range", to="now"), TimeRange(check="time_range", to="now + 1d")]
    assert [f.blocks for f in within(ranges, outputs, 0)] == [True, True]


def test_a_segment_that_only_takes_another_name_is_not_held_against_a_range() -> None:
    """It would bar a removal for good: there is no file that somebody could repair."""
    outputs = (Output("a", 1, 1, "", 1, "", ""),)
    ranges = [TimeRange(check="time_range", to="now")]
    found = [list(within(ranges, new_outputs(Switch(1, ("z",), outputs, carried=c)), 0)) for c in ("", "b")]
    assert [[f.blocks for f in findings] for findings in found] == [[True], [False]]


def test_each_rewritten_file_is_seen_whatever_others_are_called() -> None:
    one, two, new = (f"s3://b/2024/{month}/part-0.parquet" for month in ("01", "02", "03"))
    ledger = {uri: SimpleNamespace(rows=100) for uri in (one, two)}
    run: Any = SimpleNamespace(current_snapshot=lambda: SimpleNamespace(ledger=ledger))
    built = [receipt(one, 1), receipt(two, 100), receipt(new, 7)]
    seen = rows_seen(run, Switch(1, (), ()), built, RowChange(check="row_change", of="file", min="-20%"))
    assert seen == {one: RowsSeen(100, 1), two: RowsSeen(100, 100)}
