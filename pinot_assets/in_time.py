"""Something that must not hold up the end of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable


def in_time(act: Callable[[], None], seconds: float, why: Callable[[Exception], str]) -> str:
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
