"""Rules R1–R28 and edge cases E1–E33 each have a test with their number; docs/edge-cases.md says where.

That what cites a number leads to its paragraph is the subject of `test_references`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "edge-cases.md"
NUMBERS = [*(f"E{n}" for n in range(1, 34)), *(f"R{n}" for n in range(1, 29))]


def numbered() -> dict[str, set[str]]:
    """Number → files with a test of that number: `test_r03_r08_…` counts for both."""
    found: dict[str, set[str]] = {}
    for path in TESTS.rglob("test_*.py"):
        for prefix in re.findall(r"^def test_((?:[er]\d{2}_)+)", path.read_text(), re.MULTILINE):
            for kind, number in re.findall(r"([er])(\d{2})_", prefix):
                found.setdefault(f"{kind.upper()}{int(number)}", set()).add(str(path.relative_to(TESTS)))
    return found


def told() -> dict[str, set[str]]:
    """Number → files that the page names in its row."""
    rows = re.findall(r'^\| (?:<a id="\w+"></a>)?([ER]\d+) \|(.*)\|$', PAGE.read_text(), re.MULTILINE)
    assert len(rows) == len({number for number, _ in rows}), "a number has two rows"
    return {number: set(re.findall(r"`([\w/]+\.py)`", row)) for number, row in rows}


def test_every_number_has_its_row_in_order() -> None:
    assert list(told()) == NUMBERS


def test_no_test_has_a_number_that_does_not_exist() -> None:
    assert sorted(numbered().keys() - set(NUMBERS)) == []


@pytest.mark.parametrize("number", NUMBERS)
def test_each_file_that_is_named_has_a_test_of_that_number(number: str) -> None:
    files = told()[number]
    assert files, "no test is named"
    assert sorted(files - numbered().get(number, set())) == []
