"""Bounds that the table spec sets."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from pinot_assets.audit.built_files import empty_outputs, time_range
from pinot_assets.audit.checks import RowsSeen, row_change, row_words
from pinot_assets.snapshot.receipt import Fingerprint, Output, Receipt
from pinot_assets.table_spec.blocks.audit import EmptyOutputs, RowChange, TimeRange

DAY = 86_400_000


def bound(**fields: Any) -> RowChange:
    return RowChange(check="row_change", **fields)


def receipt(name: str, rows: int) -> Receipt:
    return Receipt(f"s3://b/{name}", 0, 0, Fingerprint(1, 1), "x", rows, 0, (), 0.0, "")


@pytest.mark.parametrize(
    ("now", "after", "passed"),
    [(100, 80, True), (100, 79, False), (100, 150, True), (100, 151, False), (100, 0, False), (0, 9, True)],
)
def test_a_table_may_change_so_far(now: int, after: int, passed: bool) -> None:
    finding = row_change(bound(min="-20%", max="50%"), {"t": RowsSeen(now, after)})
    assert (finding.passed, finding.blocks) == (passed, not passed)
    assert finding.at_fault == ()
    if now:
        assert (finding.expected, finding.found, finding.of_data) == (now, after, True)


@pytest.mark.parametrize(
    ("rows", "percent", "words"),
    [
        (RowsSeen(200, 150), -25, "changes from 200 to 150 rows (-25%)"),
        (RowsSeen(0, 7), math.inf, "changes from 0 to 7 rows"),
        (RowsSeen(0, 0), 0, "changes from 0 to 0 rows"),
    ],
)
def test_a_change_in_percent_and_in_words(rows: RowsSeen, percent: float, words: str) -> None:
    assert (rows.percent, row_words(rows)) == (percent, words)


def test_what_is_told_of_a_change() -> None:
    finding = row_change(bound(min="-20%"), {"t": RowsSeen(10_000, 5_000)})
    assert finding.name == "row_change of table (-20% to any)"
    assert finding.message == "t changes from 10,000 to 5,000 rows (-50%), where -20% to any is allowed"
    assert (
        "changes from 10,000 to 9,999 rows (-0.01%)"
        in row_change(bound(min="-20%"), {"t": RowsSeen(10_000, 9_999)}).message
    )


def test_before_the_first_switch_there_is_no_change() -> None:
    finding = row_change(bound(min="-1%"), {"t": RowsSeen(0, 7)})
    assert (finding.passed, finding.expected, finding.found) == (True, 0, 0)
    assert "nothing is published yet" in finding.message
    assert "no published file is rewritten" in row_change(bound(of="file", min="-1%"), {}).message


def test_of_files_each_is_judged_by_itself() -> None:
    rows = {"a": (100, 50), "b": (100, 150), "c": (0, 3)}
    seen = {f"s3://b/{name}.csv": RowsSeen(*counted) for name, counted in rows.items()}
    finding = row_change(bound(of="file", min="-20%"), seen)
    assert (finding.passed, finding.expected, finding.found) == (False, 200, 200)
    assert finding.message.startswith("a.csv changes from 100 to 50 rows (-50%)")
    assert "b.csv" not in finding.message


def test_files_of_one_name_in_several_folders_are_several_files() -> None:
    seen = {"s3://b/01/part-0.csv": RowsSeen(100, 1), "s3://b/02/part-0.csv": RowsSeen(100, 100)}
    finding = row_change(bound(of="file", min="-20%"), seen)
    assert (finding.passed, finding.expected, finding.found) == (False, 200, 101)
    assert finding.message.startswith("part-0.csv changes from 100 to 1 rows (-99%),")


def test_a_warning_keeps_nothing_back() -> None:
    finding = row_change(bound(min="-1%", severity="warn"), {"t": RowsSeen(100, 50)})
    assert (finding.passed, finding.blocks) == (False, False)


def test_files_without_rows() -> None:
    receipts = [receipt("a", 3), receipt("b", 0), replace(receipt("skipped", 0), sha256="")]
    told = empty_outputs(receipts, None)
    assert (told.passed, told.blocks, told.of_data) == (False, False, False)
    assert (told.expected, told.found) == (2, 1)
    assert "b has none; allowed, because audit: does not list empty_outputs" in told.message
    asked = empty_outputs(receipts, EmptyOutputs(check="empty_outputs"))
    assert (asked.blocks, asked.of_data, "b has none" in asked.message) == (True, True, True)
    warned = empty_outputs(receipts, EmptyOutputs(check="empty_outputs", severity="warn"))
    assert (warned.passed, warned.blocks) == (False, False)
    assert "b has none; allowed, because its severity is warn" in warned.message
    for bound in (None, EmptyOutputs(check="empty_outputs")):
        whole = empty_outputs([receipt("a", 3)], bound)
        assert (whole.passed, whole.message) == (True, "1 of 1 files have rows")


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"from_": "1970-01-02"}, 1),
        ({"to": "1970-01-02T12:00:00Z"}, 1),
        ({"to": "now"}, 1),
        ({"to": "now + 1d"}, 2),
        ({"from_": "now - 2d", "to": "now + 1d"}, 2),
    ],
)
def test_times_lie_within_a_range(fields: dict[str, str], found: int) -> None:
    outputs = [
        Output("a", 1, 1, "", 1, "", "", start_ms=0, end_ms=DAY),
        Output("b", 1, 1, "", 1, "", "", start_ms=DAY, end_ms=3 * DAY),
    ]
    finding = time_range(TimeRange(check="time_range", **fields), outputs, 2 * DAY)
    assert (finding.passed, finding.expected, finding.found) == (found == 2, 2, found)
    assert finding.of_data


def test_rows_without_times_lie_nowhere() -> None:
    outputs = [Output("a", 1, 1, "", 1, "", ""), Output("b", 1, 1, "", 1, "", "", start_ms=0, end_ms=0)]
    finding = time_range(TimeRange(check="time_range", to="2000-01-01"), outputs, 0)
    assert (finding.blocks, finding.expected, finding.found) == (True, 2, 1)
    assert "a has no times" in finding.message


def test_times_beyond_any_calendar_are_told() -> None:
    outputs = [Output("a", 1, 1, "", 1, "", "", start_ms=0, end_ms=10**18)]
    finding = time_range(TimeRange(check="time_range", to="now + 365d"), outputs, 0)
    assert not finding.passed
    assert "a lies from 1970-01-01T00:00:00Z to 1000000000000000000 ms" in finding.message
