"""Amounts in sentences."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import cast

import pytest
from fakes.project import ROOT

from pinot_assets.core.text import duration


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "0 s"),
        (30, "30 s"),
        (60, "1 min"),
        (3599, "60 min"),
        (3600, "1.0 h"),
        (4320, "1.2 h"),
        (47.5 * 3600, "47.5 h"),
        (60 * 3600, "2.5 days"),
    ],
)
def test_a_time_is_told_in_the_unit_that_people_take(seconds: float, told: str) -> None:
    assert duration(seconds) == told


COUNTS = frozenset(
    {"found", "expected", "good", "same", "rows", "bad_rows", "servers", "servers_answered", "len"}
)
"""What a count is called in `{found} of {expected}`."""


def _bare_counts(of: ast.JoinedStr) -> Iterator[str]:
    """Yield the counts in `{…} of {…}` that have no thousands separators."""
    for left, word, right in zip(of.values, of.values[1:], of.values[2:], strict=False):
        if not (isinstance(left, ast.FormattedValue) and isinstance(right, ast.FormattedValue)):
            continue
        if not (isinstance(word, ast.Constant) and word.value == " of "):
            continue
        for one in (left, right):
            name = ast.unparse(one.value).partition("(")[0].rpartition(".")[2]
            if one.format_spec is None and name in COUNTS:
                yield ast.unparse(of)


def test_counts_have_thousands_separators() -> None:
    wrong = ast.parse("f'{found} of {expected} rows'", mode="eval").body
    assert len([*_bare_counts(cast(ast.JoinedStr, wrong))]) == 2
    places = [
        f"{path.relative_to(ROOT)}: {text}"
        for folder in ("pinot_assets", "sensors", "resources")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.JoinedStr)
        for text in _bare_counts(node)
    ]
    assert places == []
