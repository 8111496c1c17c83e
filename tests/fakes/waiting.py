"""Waits for what a server does in its own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(holds: Callable[[], T], seconds: float = 60.0) -> T:
    """Ask again and again; what it holds at last."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.1)
    return found
