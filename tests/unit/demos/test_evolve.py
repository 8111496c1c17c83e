"""What the last line of the evolve demo says, and when it says that all is well."""

from __future__ import annotations

from pathlib import Path

import pytest

from demos.evolve import CHANGES, EvolveLine, EvolveSummary, verdict
from demos.load import LoadReport, PhaseReport
from demos.steps import LEAST_ANSWERS, World

LINES = [
    EvolveLine("0", "files", False, 1.0, "run"),
    *(EvolveLine(str(n), "", True, 1.0, "reload") for n in range(CHANGES)),
]


def report(answers: int, mixed: int = 0, errors: int = 0) -> LoadReport:
    phase = PhaseReport("0", ((),), [answers])
    phase.mixed, phase.errors = mixed, errors
    return LoadReport((phase,))


def test_the_last_line_counts_changes_and_answers() -> None:
    outcome = verdict(LINES, report(LEAST_ANSWERS))
    assert str(outcome) == f"changes carried out: 5 of 5, mixed answers: 0 of {LEAST_ANSWERS:,}"
    assert outcome.well


@pytest.mark.parametrize(
    "outcome",
    [
        verdict(LINES[:-1], report(LEAST_ANSWERS)),
        verdict(LINES, report(LEAST_ANSWERS, mixed=1)),
        verdict(LINES, report(LEAST_ANSWERS, errors=1)),
        verdict(LINES, report(LEAST_ANSWERS - 1)),
    ],
)
def test_what_is_missing_makes_it_fail(outcome: EvolveSummary) -> None:
    assert not outcome.well


def test_the_answer_of_a_filter_counts_the_rows_that_it_keeps(tmp_path: Path) -> None:
    world = World(tmp_path, 1)
    world.add(world.day(0))
    whole, far = world.answer(), world.answer(lambda row: float(row["distance"]) >= 500)
    assert sum(int(str(count)) for _, count, _ in far) < sum(int(str(count)) for _, count, _ in whole)
    assert world.answer(lambda _: False) == ()
