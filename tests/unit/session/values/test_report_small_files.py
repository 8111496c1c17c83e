from __future__ import annotations

import pytest

from pinot_assets.session.values.report import notes_on, small, small_files, small_published
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output, Receipt
from pinot_assets.source import Fingerprint

LARGE = 16 << 20


def receipt(ordinal: int, *sizes: int, read: int = LARGE) -> Receipt:
    outputs = tuple(Output(f"s{ordinal}_{k}", 1, 1, "", size, "", "") for k, size in enumerate(sizes))
    return Receipt(f"file:///{ordinal}", ordinal, 0, Fingerprint(read, 1), "", 1, 0, outputs, 0.1, "h/1")


def test_what_many_small_files_cost_is_said_before_they_are_built() -> None:
    said = small_files([512 * 1024] * 100)
    assert said is not None
    assert said.startswith(
        "100 files to build of 512.0 KB on average. A file is a segment or more: 100 or more, where 7 would "
        "be enough; each is an upload"
    )
    assert "Write `layout: {pack: true}`" in said


@pytest.mark.parametrize("sizes", [[1] * 19, [8 << 20] * 100, [0] * 100, []])
def test_few_files_large_ones_and_empty_ones_cost_little(sizes: list[int]) -> None:
    assert small_files(sizes) is None


def test_a_file_a_minute_is_said_once_the_table_has_many() -> None:
    assert small_files([2048], published=998) is None
    said = small_files([2048], published=999)
    assert said is not None
    assert said.startswith(
        "1 file to build of 2.0 KB on average, beside 999 small files that the table has. "
    )
    assert "would be enough" not in said
    assert small_files([], published=5000) is None


def test_small_published_files_are_those_with_rows_below_the_limit() -> None:
    sizes = (0, 1, (8 << 20) - 1, 8 << 20, LARGE)
    files = [
        PublishedFile(f"file:///{n}", Fingerprint(size, 1), "", 1, 0, "cp1", ())
        for n, size in enumerate(sizes)
    ]
    assert small_published(files) == 2
    assert small_published([]) == 0


def test_large_files_that_became_small_segments_are_named_afterwards() -> None:
    (note,) = notes_on([receipt(n, 512 * 1024) for n in range(100)])
    assert note.startswith(
        "100 files become small segments: 100 of 512 KiB on average, where 7 would be enough"
    )
    assert "Write `layout: {pack: true}`" in note


def test_what_was_said_before_the_build_is_not_said_again() -> None:
    assert tuple(notes_on([receipt(n, 1, read=100) for n in range(100)])) == ()


@pytest.mark.parametrize("sizes", [(), (8 << 20,), (1, 1)])
def test_a_file_without_segment_a_large_one_and_one_that_was_cut_are_not_small(
    sizes: tuple[int, ...],
) -> None:
    assert small([receipt(n, *sizes) for n in range(100)]) == []


def test_a_few_are_no_matter() -> None:
    assert tuple(notes_on([receipt(n, 1) for n in range(19)])) == ()
    assert len([*notes_on([receipt(n, 1) for n in range(20)])]) == 1
