"""Queries at every broker, again and again, while a test does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Generic, TypeVar

from pinot_assets.errors import PinotError, PinotUnreachable

Answer = TypeVar("Answer")


class Queries(Generic[Answer]):
    """Asks each broker in a thread of its own, and keeps what it answered, one answer after the other.

    :param ask: what a broker answers now.
    :ivar failed: queries that were answered by an error: their senders saw no wrong rows, but no rows either.
    """

    def __init__(self, brokers: Sequence[str], ask: Callable[[str], Answer]) -> None:
        self.failed: list[PinotError] = []
        self._ask = ask
        self._shown: dict[str, list[Answer]] = {broker: [] for broker in brokers}
        self._one_at_a_time = {broker: threading.Lock() for broker in brokers}
        self._over = threading.Event()
        self._broken: list[BaseException] = []
        self._threads = [threading.Thread(target=self._go_on_asking, args=(broker,)) for broker in brokers]

    def __enter__(self) -> Queries[Answer]:
        for broker in self._shown:
            self._look(broker)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        if error is None:
            assert self._broken == []

    def answers(self) -> dict[str, list[Answer]]:
        """Every broker's answers so far, ending with one of this moment; equal neighbours count as one."""
        for broker in self._shown:
            self._look(broker)
        return {broker: list(shown) for broker, shown in self._shown.items()}

    def _go_on_asking(self, broker: str) -> None:
        try:
            while not self._over.wait(0.05):
                try:
                    self._look(broker)
                except PinotError as error:
                    self.failed.append(error)
        except BaseException as error:  # told in the test's own thread
            self._broken.append(error)

    def _look(self, broker: str) -> None:
        with self._one_at_a_time[broker]:  # or an older answer could be noted after a newer one
            answer = self._answer(broker)
            shown = self._shown[broker]
            if not shown or shown[-1] != answer:
                shown.append(answer)

    def _answer(self, broker: str) -> Answer:
        for _ in range(5):
            with suppress(PinotUnreachable):  # a machine that is too busy: no answer in time
                return self._ask(broker)
        return self._ask(broker)
