"""What must not hold up the end of a run, or a tick of a sensor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


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
