"""What brokers answered all the while, and whether each answer was one published state, in their order."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Self

import httpx
from soak.world import Answer

PAUSE_S = 0.1


@dataclass
class BrokerAnswers:
    """The answers of one broker.

    :ivar went: each answer, how often in a row, and since when.
    :ivar errors: what came instead of an answer, and how often.
    """

    went: list[tuple[Answer, int, str]] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, answer: Answer) -> None:
        """Take one in."""
        if self.went and self.went[-1][0] == answer:
            last, times, since = self.went[-1]
            self.went[-1] = (last, times + 1, since)
        else:
            self.went.append((answer, 1, datetime.now().strftime("%H:%M:%S")))

    @property
    def count(self) -> int:
        """How many answers there were."""
        return sum(times for _, times, _ in self.went)


def mixed(heard: BrokerAnswers, published: Sequence[Answer]) -> list[tuple[int, str]]:
    """Answers that are no published state, or one that was over.

    :param published: in the order in which they were switched to; the empty table comes before them.
    :returns: how often in a row, and since when.
    """
    states = [(), *published]
    at, unexpected = 0, []
    for answer, times, since in heard.went:
        try:
            at = states.index(answer, at)
        except ValueError:
            unexpected.append((times, since))
    return unexpected


class Asking:
    """Asks each broker again and again, one thread each, while the block runs."""

    def __init__(self, brokers: Sequence[str], table: str) -> None:
        self.answers = {url: BrokerAnswers() for url in brokers}
        self._table = table
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask_on, args=(u,), daemon=True) for u in brokers]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask_on(self, url: str) -> None:
        with httpx.Client(timeout=10, trust_env=False) as client:
            while not self._over.wait(PAUSE_S):
                try:
                    self.answers[url].add(answer(client, url, self._table))
                except Exception as error:  # a thread that dies would make the soak look clean
                    self.answers[url].errors[f"{type(error).__name__}: {error}"[:200]] += 1


def answer(client: httpx.Client, broker: str, table: str) -> Answer:
    """One answer.

    :raises RuntimeError: it is partial, or none.
    """
    sql = f"SELECT id, ver, COUNT(*), SUM(v) FROM {table} GROUP BY id, ver ORDER BY id, ver LIMIT 10000"
    return tuple((str(i), int(ver), int(n), int(total)) for i, ver, n, total in rows(client, broker, sql))


Cells = list[str | int | float]


def rows(client: httpx.Client, broker: str, sql: str) -> list[Cells]:
    """The rows of a whole answer.

    :raises RuntimeError: it is partial, or none.
    """
    response = client.post(f"{broker}/query/sql", json={"sql": sql})
    response.raise_for_status()
    body = response.json()
    if body.get("exceptions"):
        raise RuntimeError(" ".join(str(body["exceptions"]).split()))
    if body.get("partialResult") or body.get("numServersResponded", 0) < body.get("numServersQueried", 0):
        raise RuntimeError("not every server answered")
    cells: list[Cells] = (body.get("resultTable") or {}).get("rows") or []
    return cells
