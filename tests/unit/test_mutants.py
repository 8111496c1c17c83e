"""The defects that `make mutants` plants can be planted, and are spread as they should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from coverage import CoverageData
from fakes.project import ROOT
from mutants import __main__ as mutants
from mutants.defects import AREAS, RISKS, Defect, Unplantable, defects
from mutants.reach import Reach, parts

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


# --- which tests are run, and what counts as found -----------------------------------------------------

SOURCE = "a = 1\nif a:\n    b = call(\n        2,\n    )\n"
SECONDS = {
    "tests/u.py::slow": 3.0,
    "tests/u.py::quick": 0.1,
    "tests/w.py::of_a_worker": 0.2,
    "tests/w.py::beside_it": 0.5,
}
CHILD = "child:tests/w.py::of_a_worker (call)"
"""What a Spark worker, a driver or a code server runs under, which that test has started."""


def reached(by_line: dict[int, list[str]], tmp_path: Path) -> Reach:
    data = CoverageData(str(tmp_path / "data"))
    for line, contexts in by_line.items():
        for context in contexts:
            data.set_context(context)
            data.add_lines({"x.py": [line]})
    return Reach(data, SECONDS)


def test_those_that_reach_the_line_are_run_the_cheapest_first(tmp_path: Path) -> None:
    """A call of several lines is known by its first one; a module counts by the slowest of its tests."""
    itself = [f"child:|{test}" for test in ("tests/u.py::slow", "tests/u.py::quick", "tests/u.py::failed")]
    known = reached({1: ["child:|tests/u.py::quick"], 3: [*itself, CHILD]}, tmp_path)
    assert known.tests_of(Path("x.py"), SOURCE, 4, 4) == [
        *("tests/w.py::of_a_worker", "tests/w.py::beside_it"),
        *("tests/u.py::quick", "tests/u.py::slow"),
    ]
    assert known.tests_of(Path("x.py"), SOURCE, 1, 1) == ["tests/u.py::quick"]
    assert known.tests_of(Path("x.py"), SOURCE, 2, 2) == []
    assert known.tests_of(Path("other.py"), SOURCE, 1, 1) == []


@pytest.fixture
def planted(tmp_path: Path) -> Defect:
    (tmp_path / "x.py").write_text(SOURCE)
    return replace(PLANTED[0], file=Path("x.py"), anchor="2,", replacement="3,")


@pytest.mark.parametrize(
    ("fails", "found"),
    [
        ([], ""),
        (["tests/u.py::quick", "tests/u.py::quick without it"], ""),  # by itself, whatever is planted
        (["tests/u.py::slow"], "tests/u.py::slow"),
    ],
)
def test_one_is_found_by_a_test_that_fails_with_it_alone(
    tmp_path: Path, planted: Defect, monkeypatch: pytest.MonkeyPatch, fails: list[str], found: str
) -> None:
    def run(scratch: Path, tests: list[str], _: Reach) -> tuple[str, set[str]]:
        is_planted = (scratch / "x.py").read_text() != SOURCE
        failed = [test for test in tests if (test if is_planted else f"{test} without it") in fails]
        return (failed or [""])[0], set(tests) - set(failed)

    monkeypatch.setattr(mutants, "_first_failure", run)
    known = reached({3: [f"child:|{test}" for test in ("tests/u.py::slow", "tests/u.py::quick")]}, tmp_path)
    assert mutants.found_by(planted, tmp_path, known) == found
    assert (tmp_path / "x.py").read_text() == SOURCE


def test_one_that_no_recorded_test_reaches_is_missed(
    tmp_path: Path, planted: Defect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants, "_first_failure", lambda *_: pytest.fail("nothing is there to run"))
    assert mutants.found_by(planted, tmp_path, reached({1: ["child:|tests/u.py::quick"]}, tmp_path)) == ""


@pytest.mark.parametrize(("missed", "code"), [(5, 0), (6, 1), (60, 1)])
def test_fewer_than_55_fail_and_the_missed_ones_are_named(
    missed: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done = {defect.id: "" if n < missed else "a test" for n, defect in enumerate(PLANTED)}
    assert mutants._tell(PLANTED, done) == code
    *named, last = capsys.readouterr().out.splitlines()
    assert last == f"defects found: {60 - missed} of 60 (before: 50)"
    assert [line.split(": ")[1] for line in named] == [defect.id for defect in PLANTED[:missed]]


def test_each_file_of_tests_is_recorded_once() -> None:
    found = Counter(path for part in parts(ROOT / "tests") for path in _tests_of(part))
    assert found == Counter((ROOT / "tests").rglob("test_*.py"))


def _tests_of(part: str) -> Iterator[Path]:
    for path in ROOT.glob(part):
        yield from [path] if path.is_file() else path.rglob("test_*.py")
