"""Rewritten files that lost rows or a column keep the gate shut, unless the table spec allows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pinot_assets.audit.checks import (
    Finding,
    Rewritten,
    RowsSeen,
    emptied_files,
    shrunk_files,
    shrunk_table,
    vanished_columns,
)
from pinot_assets.snapshot.receipt import ColumnFacts, Fingerprint, Receipt, SegmentFacts
from pinot_assets.table_spec.blocks.audit import Loss, LossName

COLUMNS = ("a", "b")


def receipt(
    name: str, rows: int, missing: tuple[str, ...] = (), columns: tuple[str, ...] = COLUMNS
) -> Receipt:
    """Values from 1 to 2; of a column that is missing, 0 alone."""
    bounds = {column: ("0", "0") if column in missing else ("1", "2") for column in columns}
    facts = SegmentFacts(rows, tuple(ColumnFacts(column, "LONG", *bounds[column]) for column in columns))
    plain = Receipt(f"s3://b/{name}", 0, 0, Fingerprint(1, 1), "x", rows, 0, (), 0.0, "")
    return replace(plain, missing=missing, facts=(facts,) if rows else ())


def rewritten(before: int, after: int, name: str = "f") -> Rewritten:
    return Rewritten(receipt(name, after), before)


def warn(name: LossName) -> Loss:
    return Loss(check=name, severity="warn")


def test_a_file_that_has_no_rows_any_more() -> None:
    files = [rewritten(1500, 0, "a"), rewritten(10, 9, "b"), rewritten(0, 0, "never had one")]
    finding = emptied_files(files, None)
    assert (finding.blocks, finding.of_data, finding.blames) == (True, True, False)
    assert (finding.name, finding.expected, finding.found) == ("emptied_files", 2, 1)
    assert finding.message == (
        "1 of 2 rewritten files that had rows still have some: a changes from 1,500 to 0 rows (-100%); "
        "correct it at the source, or allow it with "
        "- {check: emptied_files, severity: warn} in audit: of the table spec"
    )
    assert emptied_files(files[1:], None).passed


@pytest.mark.parametrize(
    ("before", "after", "passed"),
    [(100, 10, True), (100, 9, False), (11, 1, False), (10, 1, True), (1, 5, True), (0, 5, True)],
)
def test_a_file_that_loses_more_than_nine_tenths(before: int, after: int, passed: bool) -> None:
    finding = shrunk_files([rewritten(before, after)], None)
    assert (finding.passed, finding.blocks) == (passed, not passed)
    if not passed:
        assert f"f changes from {before} to {after} rows" in finding.message


def test_the_first_files_are_named_and_the_others_counted() -> None:
    finding = shrunk_files([rewritten(100, 1, f"f{n}") for n in range(7)], None)
    assert "0 of 7 rewritten files" in finding.message
    assert "f2 changes from 100 to 1 rows (-99%) and 4 more" in finding.message


def test_a_file_without_rows_is_told_once() -> None:
    assert shrunk_files([rewritten(100, 0)], None).passed
    assert vanished_columns([Rewritten(receipt("f", 0, missing=("a",)), 100)], None).passed


def test_a_column_that_had_values_is_all_null() -> None:
    new, former = receipt("f", 5, missing=("b",)), receipt("f", 5)
    finding = vanished_columns([Rewritten(new, 5, former)], None)
    assert (finding.blocks, finding.of_data, finding.expected, finding.found) == (True, True, 1, 0)
    assert (
        "0 of 1 rewritten files have values in the columns that had some: f has no value in b;"
        in finding.message
    )


@pytest.mark.parametrize(
    "former",
    [
        receipt("f", 5, missing=("b",)),  # it had none before
        receipt("f", 5, columns=("a",)),  # the schema has it since
    ],
)
def test_a_column_that_never_had_values_has_not_vanished(former: Receipt) -> None:
    assert vanished_columns([Rewritten(receipt("f", 5, missing=("b",)), 5, former)], None).passed


def test_receipts_of_an_earlier_release_do_not_name_columns_that_are_null_throughout() -> None:
    new = receipt("f", 5, missing=("b",))
    null = replace(new, missing=())
    assert vanished_columns([Rewritten(new, 5, null)], None).passed
    [facts] = null.facts
    some = replace(null, facts=(facts, *receipt("f", 5).facts))  # in another segment of the file
    assert vanished_columns([Rewritten(new, 5, some)], None).blocks


def test_where_a_segment_does_not_say_its_bounds_the_receipts_alone_count() -> None:
    without = SegmentFacts(5, (ColumnFacts("b", "JSON", None, None),))
    new = replace(receipt("f", 5, missing=("b",)), facts=(without,))
    assert vanished_columns([Rewritten(new, 5, replace(new, missing=()))], None).blocks
    assert vanished_columns([Rewritten(new, 5, new)], None).passed


def test_where_nothing_is_kept_of_the_published_version_what_the_file_lacks_counts() -> None:
    new = receipt("f", 5, missing=("b", "an input of an expression"))
    finding = vanished_columns([Rewritten(new, 5)], None)
    assert finding.blocks
    assert "f has no value in b (the row count of its published version is not known)" in finding.message
    before_facts = replace(receipt("f", 5), facts=())
    assert "f has no value in b;" in vanished_columns([Rewritten(new, 5, before_facts)], None).message


def test_a_swap_that_loses_more_than_nine_tenths_of_the_table() -> None:
    assert shrunk_table("t", RowsSeen(100, 10), None).passed
    finding = shrunk_table("t", RowsSeen(1000, 99), None)
    assert (finding.blocks, finding.expected, finding.found) == (True, 1000, 99)
    assert "t changes from 1,000 to 99 rows" in finding.message


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("emptied_files", lambda bound: emptied_files([rewritten(5, 0)], bound)),
        ("shrunk_files", lambda bound: shrunk_files([rewritten(50, 1)], bound)),
        (
            "vanished_columns",
            lambda bound: vanished_columns(
                [Rewritten(receipt("f", 5, missing=("b",)), 5, receipt("f", 5))], bound
            ),
        ),
        ("shrunk_table", lambda bound: shrunk_table("t", RowsSeen(50, 1), bound)),
    ],
)
def test_one_word_allows_it_and_it_is_still_told(
    name: LossName, check: Callable[[Loss | None], Finding]
) -> None:
    barred = check(None)
    assert (barred.blocks, f"- {{check: {name}, severity: warn}}" in barred.message) == (True, True)
    assert check(Loss(check=name)).blocks
    allowed = check(warn(name))
    assert (allowed.passed, allowed.blocks) == (False, False)
    assert f"allowed by {{check: {name}, severity: warn}}" in allowed.message
