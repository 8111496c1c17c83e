from __future__ import annotations

import pytest

from pinot_assets.table_spec.blocks.assertion import Side, read_expectation


@pytest.mark.parametrize(
    ("text", "side", "operator", "bound", "of_live"),
    [
        ("= 0", Side.STAGED, "=", 0, False),
        ("0", Side.STAGED, "=", 0, False),
        (">=1e3", Side.STAGED, ">=", 1000, False),
        ("!= -1.5", Side.STAGED, "!=", -1.5, False),
        ("staged < 5", Side.STAGED, "<", 5, False),
        ("after >= 0.9 * live", Side.AFTER, ">=", 0.9, True),
        ("AFTER <= Live", Side.AFTER, "<=", 1, True),
        ("> live", Side.STAGED, ">", 1, True),
    ],
)
def test_what_is_understood(text: str, side: Side, operator: str, bound: float, of_live: bool) -> None:
    found = read_expectation(text)
    assert (found.side, found.operator, found.bound, found.of_live) == (side, operator, bound, of_live)


@pytest.mark.parametrize(
    "text",
    ["", "=", "= x", "=> 3", "between 1 and 2", "live > 3", "before = 1", "= 1 * 2", "0.9 * after", "= 1 %"],
)
def test_what_is_not(text: str) -> None:
    with pytest.raises(ValueError, match="not a comparison"):
        read_expectation(text)


@pytest.mark.parametrize(
    ("text", "value", "live", "holds"),
    [
        ("= 0", 0, None, True),
        ("= 0", 1, None, False),
        ("!= 0", 1, None, True),
        ("< 3", 3, None, False),
        ("<= 3", 3, None, True),
        ("> 3", 3, None, False),
        (">= 3", 3, None, True),
        (">= 0.9 * live", 90, 100, True),
        (">= 0.9 * live", 89, 100, False),
        ("= live", 5, None, False),
        (">= 0.07 * live", 7, 100, True),  # 0.07 * 100 is 7.000000000000001 in floats
        ("= 1.1 * live", 110, 100, True),
        ("= 0.3", 0.3, None, True),
        ("<= 2 * live", 1, float("inf"), True),
        ("< 1e300 * live", 5, 1e300, True),
        ("!= 0", float("nan"), None, False),
        ("!= live", float("nan"), 1, False),
        ("!= live", 1, float("nan"), False),
    ],
)
def test_comparisons(text: str, value: float, live: float | None, holds: bool) -> None:
    assert read_expectation(text).holds(value, live) is holds
