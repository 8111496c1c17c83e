"""Amounts in sentences."""

from __future__ import annotations

import pytest

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
