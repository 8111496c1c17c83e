"""Calls of obstore that Ctrl-C can break off.

Python runs what is to happen on a signal in its main thread, and only between two of its own steps. A call of
obstore is one step, however long the store is silent and however often obstore tries again: minutes. So in
the main thread, which waits for nothing but signals meanwhile, another one makes the call. One that is broken
off is left alone; its thread keeps no program from ending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `function(…)`.

    :raises Exception: what it raises.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args, **kwargs)
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(function(*args, **kwargs))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="obstore", daemon=True).start()
    return result.result()


def each(items: Iterable[T]) -> Iterator[T]:
    """The same items, each asked for by `call`."""
    left = iter(items)
    end = object()
    while (item := call(next, left, end)) is not end:
        yield item  # type: ignore[misc]
