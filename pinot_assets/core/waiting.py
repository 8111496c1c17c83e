"""Waits that end: looks until a deadline, many calls in threads that Ctrl-C can end, a call that may hang.

A deadline goes by the clock: a look may take much longer than the pause before the next one.
`concurrent.futures` takes all calls in at once. An interrupt then waits for those that are queued, of which a
table of a million files has a million; and one that comes amid a `submit` can leave a lock taken that every
worker then waits for, and the program never ends. A call that hangs must not hold up the end of a run, or a
tick of a sensor.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Final, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


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


def in_threads(call: Callable[[T], R], items: Iterable[T], threads: int, name: str) -> list[R]:
    """What the call returns for each, in their order.

    Once one has raised, or this is interrupted, no other is begun; those under way are waited for.

    :param threads: how many are under way at a time.
    :param name: the threads'.
    :raises Exception: what the call raises; of several the one of the earliest item.
    """
    waiting = list(items)
    # One step of it is one of Python's own, so no two threads get the same.
    places = iter(range(len(waiting)))
    results: dict[int, R] = {}
    errors: dict[int, BaseException] = {}
    over = threading.Event()
    # Not `join`: a thread whose join is interrupted counts as ended while it goes on (Python 3.11).
    entered: list[None] = []
    left: list[None] = []
    bell: SimpleQueue[None] = SimpleQueue()

    def work() -> None:
        entered.append(None)
        try:
            for place in places:
                if over.is_set():
                    return
                try:
                    results[place] = call(waiting[place])
                except BaseException as error:
                    errors[place] = error
                    over.set()
        finally:
            left.append(None)
            bell.put(None)

    workers = [threading.Thread(target=work, name=f"{name}_{n}") for n in range(min(threads, len(waiting)))]
    try:
        for worker in workers:
            worker.start()
        while len(left) < len(workers):
            bell.get()
    finally:
        over.set()
        while len(left) < len(entered):  # whoever enters from here on begins nothing
            bell.get()
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(len(waiting))]


def run_with_timeout(act: Callable[[], None], seconds: float, why: Callable[[Exception], str]) -> str:
    """Do it, and wait for it for so long, whatever hangs in it.

    :param why: an error in words.
    :returns: why it was not done, "" if it was.
    """
    outcome = [f"it has not answered within {seconds:g} s"]

    def acted() -> None:
        try:
            act()
            outcome[0] = ""
        except Exception as error:  # put into words here: handed to another thread, it keeps its socket open
            outcome[0] = why(error)

    # A daemon: one that hangs beyond every time-out must not keep the process from ending.
    thread = threading.Thread(target=acted, name="at the end", daemon=True)
    thread.start()
    thread.join(seconds)
    return outcome[0]


class Late(Exception):
    """A call has not come to its end in time."""


class Patience:
    """Waits for calls so long and no longer, whatever hangs in them.

    One that was given up goes on in a thread of its own. No other is begun beside it: each would leave one
    more thread and its connections.
    """

    def __init__(self) -> None:
        self._given_up: threading.Thread | None = None

    def wait_for(self, call: Callable[[], T], seconds: float) -> T:
        """What the call returns.

        :raises Late: it has not come to its end in time, or one before it still goes on.
        :raises Exception: what it raises.
        """
        if self._given_up is not None and self._given_up.is_alive():
            raise Late("an earlier call still waits for it")
        results: list[T] = []
        errors: list[BaseException] = []

        def called() -> None:
            try:
                results.append(call())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=called, name="waited for", daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            self._given_up = thread
            raise Late(f"not within {seconds:.0f} s")
        if errors:
            raise errors[0]
        return results[0]
