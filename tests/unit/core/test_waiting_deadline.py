"""A wait goes by the clock: looks take time, too."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import cast

import pytest

from pinot_assets.core.waiting import MONOTONIC, Deadline, doubled, poll_until
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
    deadline, numbers = Deadline(clock.clients, 10), count(1)

    def counted() -> int:
        look()
        return next(numbers)

    number = poll_until(deadline, 0.5, counted, lambda _: False)
    assert deadline.left == 0
    return number


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


def test_what_ends_the_wait_is_returned_without_a_pause() -> None:
    clock, found = Clock(), iter([3, 2, 1])
    assert poll_until(Deadline(clock.clients, 10), 0.5, lambda: next(found), lambda n: n == 2) == 2
    assert clock.slept == 0.5


def test_a_deadline_of_nothing_leaves_one_look() -> None:
    assert poll_until(Deadline(MONOTONIC, 0), 60, lambda: "seen", lambda _: False) == "seen"


def test_a_deadline_that_is_restarted_lasts_from_then_on() -> None:
    clock = Clock()
    deadline = Deadline(clock.clients, 1)
    deadline.pause(0.5)
    deadline.restart(2)
    assert deadline.left == 2
    deadline.pause(2)
    assert deadline.is_over
