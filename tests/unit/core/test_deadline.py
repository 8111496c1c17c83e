"""A wait goes by the clock: looks take time, too."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from pinot_assets.core.deadline import Deadline, doubled
from pinot_assets.session.stores.clients import TableClients


class Clock:
    """Moves when somebody sleeps or looks."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.slept = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.now_ms += int(seconds * 1000)

    @property
    def clients(self) -> TableClients:
        return cast(TableClients, SimpleNamespace(now_ms=lambda: self.now_ms, sleep=self.sleep))


def looks(clock: Clock, look: Callable[[], None]) -> int:
    """How many of them there are in a wait of 10 seconds, with half a second between two."""
    deadline, number = Deadline(clock.clients, 10), 0
    while True:
        look()
        number += 1
        if deadline.is_over:
            assert deadline.left == 0
            return number
        deadline.pause(0.5)


@pytest.mark.parametrize(("seconds", "number"), [(0, 21), (2, 5), (60, 1)])
def test_looks_count(seconds: int, number: int) -> None:
    clock = Clock()

    def look() -> None:
        clock.now_ms += seconds * 1000

    assert looks(clock, look) == number


def test_a_clock_that_is_set_back_prolongs_nothing() -> None:
    clock = Clock()

    def look() -> None:
        clock.now_ms -= 3_600_000

    assert looks(clock, look) == 21
    assert clock.slept == 10


def test_a_pause_doubles_up_to_the_longest() -> None:
    assert [doubled(300, times, 900) for times in (1, 2, 3, 4, 10_000)] == [300, 600, 900, 900, 900]
