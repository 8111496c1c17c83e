"""Waits that end: polls until a deadline, many calls in threads that Ctrl-C can end, a call that may hang.

A deadline is measured by the clock, because a poll may take much longer than the pause after it.
`concurrent.futures` queues all calls at once. After Ctrl-C it waits for the queued ones, which are a million
for a million files. And an interrupt in the middle of a `submit` can leave a lock taken. Then every worker
waits for it, and the program never ends. A call that hangs must not delay a run's end, or a sensor's tick.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Final, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


TABLES_AT_A_TIME: Final = 4
"""Number of tables that are looked at at the same time: a listing may hold a million files."""


class Clock(Protocol):
    """Returns the time and sleeps."""

    def now_ms(self) -> int:
        """Return the milliseconds since some fixed moment."""

    def sleep(self, seconds: float, /) -> None:
        """Sleep."""


class _MonotonicClock:
    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep(self, seconds: float, /) -> None:
        time.sleep(seconds)


MONOTONIC: Final[Clock] = _MonotonicClock()
"""The clock of waits that no test shortens; it cannot be set back."""


class Deadline:
    """The time that is left for one wait, which begins when this is made.

    If the clock is set back meanwhile, the wait grows at most by the time of the looks: pauses are counted.

    :param seconds: how long the wait may last.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._begun_ms, self._paused = clock.now_ms(), 0.0

    @property
    def waited(self) -> float:
        """Return the seconds waited so far."""
        return max(self._paused, (self._clock.now_ms() - self._begun_ms) / 1000)

    @property
    def left(self) -> float:
        """Return the seconds left, 0 if the wait is over."""
        return max(0.0, self._seconds - self.waited)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed, so that no further look should follow."""
        return self.waited >= self._seconds

    def pause(self, seconds: float) -> None:
        """Sleep before the next look."""
        self._clock.sleep(seconds)
        self._paused += seconds

    def restart(self, seconds: float) -> None:
        """Let the wait last so many seconds from now on."""
        self._seconds = self.waited + seconds


def poll_until(deadline: Deadline, pause: float, look: Callable[[], T], ends: Callable[[T], object]) -> T:
    """Look again and again until the result ends the wait, or the deadline is over.

    :param pause: seconds between two looks.
    :returns: the result of the last look.
    """
    while True:
        found = look()
        if deadline.is_over or ends(found):
            return found
        deadline.pause(pause)


def doubled(first: int, times: int, longest: int) -> int:
    """Return the pause after so many tries: the first one, doubled after each try, up to the longest."""
    return int(min(first * 2 ** min(times - 1, 32), longest))


def in_threads(call: Callable[[T], R], items: Iterable[T], threads: int, name: str) -> list[R]:
    """Return the results of the call for all items, in their order.

    After a call has raised, or after an interrupt, no other call begins; those that run are waited for.

    :param threads: how many calls run at a time.
    :param name: name of the threads.
    :raises Exception: the exception of the call; if several raised, that of the earliest item.
    """
    waiting = list(items)
    # `next` on this iterator is one step of Python, so no two threads get the same place.
    places = iter(range(len(waiting)))
    results: dict[int, R] = {}
    errors: dict[int, BaseException] = {}
    over = threading.Event()
    # Not `join`: a thread whose join is interrupted counts as ended while it still runs (Python 3.11).
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
        while len(left) < len(entered):  # a thread that enters later begins no call
            bell.get()
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(len(waiting))]


def run_with_timeout(act: Callable[[], None], seconds: float, why: Callable[[Exception], str]) -> str:
    """Run it in a thread and wait at most so many seconds, whatever hangs in it.

    :param why: turns an error into words.
    :returns: why it was not done, "" if it was done.
    """
    outcome = [f"it has not answered within {seconds:g} s"]

    def acted() -> None:
        try:
            act()
            outcome[0] = ""
        except Exception as error:  # in words at once: an error kept for another thread keeps its socket open
            outcome[0] = why(error)

    # A daemon thread, because one that hangs beyond every timeout must not keep the process from ending.
    thread = threading.Thread(target=acted, name="at the end", daemon=True)
    thread.start()
    thread.join(seconds)
    return outcome[0]


class Late(Exception):
    """A call did not end in time."""


class Patience:
    """Waits a limited time for each call, whatever hangs in it.

    A call that was given up continues in its own thread. Until it ends no other call begins, because each
    would leave one more thread with its connections.
    """

    def __init__(self) -> None:
        self._given_up: threading.Thread | None = None

    def wait_for(self, call: Callable[[], T], seconds: float) -> T:
        """Return the result of the call.

        :raises Late: it did not end in time, or an earlier call still runs.
        :raises Exception: what the call raises.
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
