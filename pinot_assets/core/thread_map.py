"""Many small calls, some at a time, that Ctrl-C can end.

`concurrent.futures` takes all calls in at once. An interrupt then waits for those that are queued, of which a
table of a million files has a million; and one that comes amid a `submit` can leave a lock taken that every
worker then waits for, and the program never ends.
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
