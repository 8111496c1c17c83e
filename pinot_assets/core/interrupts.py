"""Ctrl-C and SIGTERM in the program: the first ends a command in its own way, the second at once.

Both raise `KeyboardInterrupt`, so that what is left behind by one is left behind by neither: a container or a
supervisor ends a service with SIGTERM, which otherwise would run no `finally`, and which a process with the
number 1 would not even notice. The second does what `kill -9` would do, without a traceback; nothing here
needs more than that.

Only small modules of Python's own are imported: Ctrl-C may come while the rest is being loaded.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SAID = "interrupted"

_received: list[int] = []


def take_signals() -> None:
    """Let the first of `SIGNALS` raise `KeyboardInterrupt`, and the second end the process.

    A signal that this process was told to ignore, as in the background of a script, stays ignored.
    """
    _received.clear()
    _set(_first)


def received() -> int | None:
    """The signal that ends the program; None before one came."""
    return _received[0] if _received else None


def end_at_once_from_now_on() -> None:
    """Let the next of `SIGNALS` end the process: nothing is left to do but to leave."""
    _set(_second)


@contextmanager
def saying(what_holds: str) -> Iterator[None]:
    """Give the line that the program ends with where this block is interrupted.

    :param what_holds: what is true now, and what to do next. The innermost block decides.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(*(error.args or (f"{SAID}; {what_holds}",))) from None


@contextmanager
def held_off() -> Iterator[None]:
    """Let neither of `SIGNALS` end this block, which has to come to its end and is short.

    One that comes meanwhile counts when the block has ended.
    """
    if threading.current_thread() is not threading.main_thread():  # others are not interrupted
        yield
        return
    late: list[int] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}
    _set(lambda number, _: late.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if late:
        signal.raise_signal(late[0])


def _set(handler: Callable[[int, FrameType | None], object]) -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _first(number: int, _: FrameType | None) -> None:
    _received.append(number)
    _set(_second)
    raise KeyboardInterrupt


def _second(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)
