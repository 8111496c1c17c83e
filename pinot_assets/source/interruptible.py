"""Makes calls of obstore that Ctrl-C can interrupt.

Python handles a signal only in its main thread, and only between two of its own steps. A call of obstore is
one step, and may take minutes if the store is silent and obstore tries again. So the main thread lets another
thread make the call, and waits for it, where a signal can interrupt it. After Ctrl-C that thread is left
alone; as a daemon it does not keep the program from ending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return `function(…)`; in the main thread, let another thread call it.

    :raises Exception: what the function raises.
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
    """Yield the same items; each is fetched with `in_thread`."""
    left = iter(items)
    end = object()
    while (item := in_thread(next, left, end)) is not end:
        yield item  # type: ignore[misc]
