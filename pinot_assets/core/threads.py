"""Calls in threads: many small ones, some at a time, that Ctrl-C can end; and one that may hang.

`concurrent.futures` takes all calls in at once. An interrupt then waits for those that are queued, of which a
table of a million files has a million; and one that comes amid a `submit` can leave a lock taken that every
worker then waits for, and the program never ends. A call that hangs must not hold up the end of a run, or a
tick of a sensor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_threads(call: Callable[[T], R], items: Iterable[T], threads: int, name: str) -> list[R]:
    """What the call returns for each, in their order.

    Once one has raised, or this is interrupted, no other is begun; those under way are waited for.

    :param threads: how many are under way at a time.
    :param name: the threads'.
    :raises Exception: what the call raises; of several the one of the earliest item.
    """
    waiting = list(items)
    places = iter(
        range(len(waiting))
    )  # one step of it is one of Python's own, so no two threads get the same
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
        except Exception as error:
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
