"""The files of the pack demo, what its last line says, and when it says that all is well."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from demos.pack import DELETED, FILES, PackSummary, Sensors
from demos.steps import LEAST_ANSWERS

GOOD = PackSummary(mixed=0, errors=0, answers=LEAST_ANSWERS, segments=3, files=4931, known=4931)


def test_the_last_line() -> None:
    assert (
        str(GOOD)
        == "mixed answers: 0 of 1,000, segments: 3 of 4,931 files, provenance checked: 4,931 of 4,931"
    )
    assert GOOD.well


@pytest.mark.parametrize(
    "outcome",
    [
        replace(GOOD, mixed=1),
        replace(GOOD, errors=1),
        replace(GOOD, answers=LEAST_ANSWERS - 1),
        replace(GOOD, segments=50),
        replace(GOOD, known=4930),
    ],
)
def test_what_is_missing_makes_it_fail(outcome: PackSummary) -> None:
    assert not outcome.well


def test_files_come_are_rewritten_and_go(tmp_path: Path) -> None:
    sensors = Sensors(tmp_path / "in")
    sensors.arrive(0)
    first = dict(sensors.files)
    sensors.arrive(1)
    assert len(first) == FILES
    assert 2 * FILES - 2 * DELETED - 5 < len(sensors.files) < 2 * FILES
    assert any(sensors.files[name] != rows for name, rows in first.items() if name in sensors.files)
    assert {path.name for path in (tmp_path / "in").iterdir()} == sensors.files.keys()
    for name, (count, total) in sensors.by_file().items():
        lines = (tmp_path / "in" / name).read_text().splitlines()[1:]
        assert (len(lines), sum(int(line.split(",")[1]) for line in lines)) == (count, total)
    assert sum(int(str(count)) for _, count, _ in sensors.answer()) == sum(
        n for n, _ in sensors.by_file().values()
    )
