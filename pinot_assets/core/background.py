"""Calls that run beside the caller: a slow one is collected later, and the others continue meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Call(Generic[T]):
    began_s: float
    outcome: list[T | Exception] = field(default_factory=list)
    given_up: bool = False


class BackgroundCalls(Generic[T]):
    """Calls by name, each in a thread of its own; of one name only one at a time.

    A call that hangs cannot be ended. It keeps its name until it ends, so it leaves one thread and no more.

    :param most: how many calls may run at a time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: dict[str, _Call[T]] = {}
        self._ended = threading.Condition()

    def start(self, name: str, call: Callable[[], T], wait_s: float) -> bool:
        """Start the call and wait a moment for it, so that quick calls run one after the other.

        :returns: False if it was not started: an earlier call of that name runs, or too many others do.
        """
        with self._ended:
            running = [other for other in self._calls.values() if not other.outcome]
            if name in self._calls or len(running) >= self._most:
                return False
            made = self._calls[name] = _Call[T](time.monotonic())
        threading.Thread(target=self._run, args=(made, call), name=f"look at {name}", daemon=True).start()
        with self._ended:
            self._ended.wait_for(lambda: made.outcome, wait_s)
        return True

    def _run(self, made: _Call[T], call: Callable[[], T]) -> None:
        outcome: T | Exception
        try:
            outcome = call()
        except Exception as error:
            outcome = error
        with self._ended:
            made.outcome.append(outcome)
            self._ended.notify_all()

    def collect(self) -> dict[str, T | Exception]:
        """Return what the calls that have ended returned or raised, except those that were given up."""
        with self._ended:
            ended = {name: call for name, call in self._calls.items() if call.outcome}
            for name in ended:
                del self._calls[name]
        return {name: call.outcome[0] for name, call in ended.items() if not call.given_up}

    def give_up(self, seconds: float) -> list[str]:
        """Return the calls that have run for so long, each of them once; their outcome is dropped."""
        now = time.monotonic()
        with self._ended:
            late = [
                name
                for name, call in self._calls.items()
                if not call.outcome and not call.given_up and now - call.began_s >= seconds
            ]
            for name in late:
                self._calls[name].given_up = True
        return late
