from __future__ import annotations

from dataclasses import replace

from pinot_assets.session.values.report import WARNING, TriggerReport, TriggerResult, notes_on
from pinot_assets.snapshot.receipt import Fingerprint, Receipt

WHOLE = Receipt("file:///a", 0, 0, Fingerprint(1, 2), "", 10, 0, (), 0.0, "")
BAD = replace(WHOLE, uri="file:///b", bad_rows=2, bad_rows_uri="file:///s/bad")


def test_what_is_whole_needs_no_note() -> None:
    assert [*notes_on([WHOLE])] == []


def test_bad_rows_and_missing_columns_are_told_with_the_first_file() -> None:
    lacking = replace(BAD, uri="file:///c", missing=("x", "y"))
    aside, warned = notes_on([WHOLE, BAD, lacking])
    assert aside == "4 bad rows of 2 files put aside: 2 of file:///b in file:///s/bad, and 1 more"
    assert warned.startswith(f"{WARNING} x, y: null in every row of file:///c")
    assert "another name" in warned, "it may have been renamed"


def test_the_report_says_how_many() -> None:
    report = TriggerReport(TriggerResult.STAGED, None, listed=3, built=(WHOLE, BAD))
    assert report.bad_rows == 2
    assert ", 2 bad rows put aside; staged, hidden" in report.summary
    assert "put aside" not in TriggerReport(TriggerResult.STAGED, None, listed=3, built=(WHOLE,)).summary
