from __future__ import annotations

import pytest

from pinot_assets.session.values.report import notes_on, small
from pinot_assets.snapshot.receipt import Output, Receipt
from pinot_assets.source import Fingerprint


def receipt(ordinal: int, *sizes: int) -> Receipt:
    outputs = tuple(Output(f"s{ordinal}_{k}", 1, 1, "", size, "", "") for k, size in enumerate(sizes))
    return Receipt(f"file:///{ordinal}", ordinal, 0, Fingerprint(1, 1), "", 1, 0, outputs, 0.1, "h/1")


def test_what_small_files_cost_is_told_with_the_advice() -> None:
    (note,) = notes_on([receipt(n, 512 * 1024) for n in range(100)])
    assert note.startswith(
        "100 files are small: they use 100 segments of 512 KiB on average, where 7 would be enough"
    )
    assert "Merge them before they are delivered" in note


@pytest.mark.parametrize("sizes", [(), (8 << 20,), (1, 1)])
def test_a_file_without_segment_a_large_one_and_one_that_was_cut_are_not_small(
    sizes: tuple[int, ...],
) -> None:
    assert small([receipt(n, *sizes) for n in range(100)]) == []


def test_a_few_are_no_matter() -> None:
    assert tuple(notes_on([receipt(n, 1) for n in range(19)])) == ()
    assert len([*notes_on([receipt(n, 1) for n in range(20)])]) == 1
