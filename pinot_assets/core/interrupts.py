"""Ctrl-C and SIGTERM in the program: the first one ends a command in an orderly way, the second at once.

The first one raises `KeyboardInterrupt`, whichever it is, so that both clean up in the same way. Containers
and supervisors end a service with SIGTERM. By default Python would then run no `finally`, and a process with
number 1 would not even notice it. The second one ends the process as `kill -9` would, without a traceback;
no code here needs more.

This module imports only small modules of Python: Ctrl-C may come while the others are being loaded.
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

    A signal that is already ignored, as in a script's background process, stays ignored.
    """
    _received.clear()
    _set(_first)


def received() -> int | None:
    """Return the first signal that came; None before one came."""
    return _received[0] if _received else None


def end_at_once_from_now_on() -> None:
    """Let the next of `SIGNALS` end the process, because nothing is left to clean up."""
    _set(_second)


@contextmanager
def saying(what_holds: str) -> Iterator[None]:
    """Set the program's last line for an interruption of this block.

    :param what_holds: what is true now, and what to do next. The innermost block's text is used.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(*(error.args or (f"{SAID}; {what_holds}",))) from None


@contextmanager
def held_off() -> Iterator[None]:
    """Delay `SIGNALS` until this block has ended. The block must be short.

    A signal that comes meanwhile takes effect when the block has ended.
    """
    if threading.current_thread() is not threading.main_thread():  # signals only interrupt the main thread
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
