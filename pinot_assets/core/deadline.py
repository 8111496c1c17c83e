"""A wait of several looks, by the clock: a look may take much longer than the pause before the next one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Tells the time and waits."""

    def now_ms(self) -> int:
        """Milliseconds since some moment."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""


class _MonotonicClock:
    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep(self, seconds: float, /) -> None:
        time.sleep(seconds)


MONOTONIC: Final[Clock] = _MonotonicClock()
"""The clock of waits that no test shortens; nobody sets it back."""


class Deadline:
    """How long one wait still lasts; it begins when this is made.

    A clock that is set back meanwhile prolongs it by no more than the looks take: the pauses count.

    :param seconds: how long it may last.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._begun_ms, self._paused = clock.now_ms(), 0.0

    @property
    def waited(self) -> float:
        """Seconds so far."""
        return max(self._paused, (self._clock.now_ms() - self._begun_ms) / 1000)

    @property
    def left(self) -> float:
        """Seconds, 0 when it is over."""
        return max(0.0, self._seconds - self.waited)

    @property
    def is_over(self) -> bool:
        """Whether the next look is not worth a pause any more."""
        return self.waited >= self._seconds

    def pause(self, seconds: float) -> None:
        """Sleep before the next look."""
        self._clock.sleep(seconds)
        self._paused += seconds

    def restart(self, seconds: float) -> None:
        """From now on it lasts so long."""
        self._seconds = self.waited + seconds


def poll_until(deadline: Deadline, pause: float, look: Callable[[], T], ends: Callable[[T], object]) -> T:
    """Look again and again until what is found ends the wait, or the deadline is over.

    :param pause: seconds between two looks.
    :returns: what the last look found.
    """
    while True:
        found = look()
        if deadline.is_over or ends(found):
            return found
        deadline.pause(pause)


def doubled(first: int, times: int, longest: int) -> int:
    """The pause after so many tries: the first one, twice as long after each, and never above the longest."""
    return int(min(first * 2 ** min(times - 1, 32), longest))
