"""The defects that `make mutants` plants can be planted, and are spread as they should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mutants.defects import AREAS, RISKS, Defect, Unplantable, defects
from mutants.reach import parts

ROOT = Path(__file__).parents[2]
PLANTED = defects("")


@pytest.mark.parametrize("defect", PLANTED, ids=lambda defect: defect.id)
def test_each_can_be_planted_in_what_is_here(defect: Defect) -> None:
    source = (ROOT / defect.file).read_text()
    assert defect.planted(source) != source


def test_there_are_sixty_spread_over_all_areas() -> None:
    assert len({defect.id for defect in PLANTED}) == len(PLANTED) == 60
    by_area = Counter(defect.area for defect in PLANTED)
    assert by_area.keys() == set(AREAS)
    assert min(by_area.values()) >= 6


def test_ten_or_more_are_about_fences_the_order_of_writes_and_lost_replies() -> None:
    kinds = Counter(defect.kind for defect in PLANTED)
    assert kinds.keys() == {*RISKS, "logic"}
    assert sum(kinds[kind] for kind in RISKS) >= 10


def test_twenty_or_more_were_chosen_before_the_tests_were_looked_at() -> None:
    chosen = Counter(defect.chosen for defect in PLANTED)
    assert chosen.keys() <= {"code", "tests"}
    assert chosen["code"] >= 20


@pytest.mark.parametrize("source", ["", "a = 1\na = 1\n"])
def test_an_anchor_must_match_exactly_once(source: str) -> None:
    with pytest.raises(Unplantable, match="the anchor is"):
        replace(PLANTED[0], anchor="a = 1", replacement="a = 2").planted(source)


def test_a_defect_that_python_cannot_read_is_refused() -> None:
    with pytest.raises(Unplantable, match="not Python any more"):
        replace(PLANTED[0], anchor="a = 1", replacement="a = ").planted("a = 1\n")


def test_the_lines_of_an_anchor_are_counted_from_one() -> None:
    source = "a = 1\nif a:\n    b = 2\nc = 3\n"
    assert replace(PLANTED[0], anchor="if a:\n    b = 2\n").lines(source) == (2, 3)
    assert replace(PLANTED[0], anchor="b = 2").lines(source) == (3, 3)


def test_each_file_of_tests_is_recorded_once() -> None:
    found = Counter(path for part in parts(ROOT / "tests") for path in _tests_of(part))
    assert found == Counter((ROOT / "tests").rglob("test_*.py"))


def _tests_of(part: str) -> Iterator[Path]:
    for path in ROOT.glob(part):
        yield from [path] if path.is_file() else path.rglob("test_*.py")
