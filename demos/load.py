"""The query load: it sends one query again and again to every broker, to detect a half-switched table.

An answer is *mixed* if the phase does not allow it: it matches neither the table before nor the table after
the change. A refused query is an *error*, never an answer. `make demo` verifies the load with a control: if
the same change is pushed without a lineage, the load must see mixed answers.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

import httpx

from pinot_assets.errors import PinotAssetsError

FLIGHTS_SQL: Final = (
    "SELECT carrier, COUNT(*), SUM(distance) FROM flights GROUP BY carrier ORDER BY carrier LIMIT 100"
)

QueryAnswer = tuple[tuple[object, ...], ...]
"""Rows in the order of the query. Integers compare equal to the floats that Pinot may return for them."""


def answer(rows: Iterable[Sequence[object]]) -> QueryAnswer:
    """Return the rows as a value that can be compared. The query must order its rows."""
    return tuple(tuple(row) for row in rows)


@dataclass(slots=True)
class PhaseReport:
    """The answers of one phase.

    :ivar allowed: the answers that are correct in this phase.
    :ivar counts: how often each allowed answer came, in the order of `allowed`.
    :ivar in_flight: queries that are under way.
    :ivar mixed: answers that are not allowed.
    :ivar errors: queries without an answer.
    :ivar first_mixed: the first mixed answer.
    :ivar first_error: the first error's text.
    """

    name: str
    allowed: tuple[QueryAnswer, ...]
    counts: list[int]
    in_flight: int = 0
    mixed: int = 0
    errors: int = 0
    first_mixed: QueryAnswer | None = None
    first_error: str | None = None

    @property
    def queries(self) -> int:
        """The number of queries that are completed, errors included."""
        return sum(self.counts) + self.mixed + self.errors

    def record(self, result: QueryAnswer | Exception) -> None:
        """Count the result of one query."""
        if isinstance(result, Exception):
            self.errors += 1
            self.first_error = self.first_error or f"{type(result).__name__}: {result}"
        elif result in self.allowed:
            self.counts[self.allowed.index(result)] += 1
        else:
            self.mixed += 1
            self.first_mixed = self.first_mixed or result


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The answers of all phases, in order."""

    phases: tuple[PhaseReport, ...]

    @property
    def queries(self) -> int:
        """Queries of all phases."""
        return sum(phase.queries for phase in self.phases)

    @property
    def mixed(self) -> int:
        """Mixed answers of all phases."""
        return sum(phase.mixed for phase in self.phases)

    @property
    def errors(self) -> int:
        """Queries without an answer, of all phases."""
        return sum(phase.errors for phase in self.phases)


class QueryLoad:
    """Send `sql` to all brokers in turn, from several threads, while the `with` block runs.

    The threads wait until the first `phase`.

    :param broker_urls: base URLs, `http://host:port`.
    :param sql: the query; it must order its rows.
    :param threads: number of threads that query at the same time.
    :param pause_s: pause of each thread between two queries, so that a small machine has resources left for
        the work under test.
    :param timeout_s: a query that takes longer counts as an error.
    """

    def __init__(
        self,
        broker_urls: Sequence[str],
        sql: str,
        *,
        threads: int = 4,
        pause_s: float = 0.01,
        timeout_s: float = 10.0,
    ) -> None:
        if not broker_urls:
            raise PinotAssetsError("a query load needs at least one broker")
        self._urls = [url.rstrip("/") + "/query/sql" for url in broker_urls]
        self._sql = sql
        self._pause_s = pause_s
        self._timeout_s = timeout_s
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._phases: list[PhaseReport] = []
        self._threads = [
            threading.Thread(target=self._ask_on, args=(n,), name=f"query-load-{n}", daemon=True)
            for n in range(threads)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def phase(self, name: str, allowed: Sequence[QueryAnswer]) -> None:
        """From now on compare answers with `allowed`, usually the table before and after one change.

        Return when no query of the former phase is under way, so that each answer is compared with the phase
        in which the broker gave it.
        """
        with self._changed:
            before = self._phases[-1] if self._phases else None
            self._phases.append(PhaseReport(name, tuple(allowed), [0] * len(allowed)))
            self._changed.notify_all()
            if before is not None:
                self._changed.wait_for(lambda: before.in_flight == 0)

    def wait_for(self, queries: int, timeout_s: float = 60.0) -> None:
        """Wait until this phase has completed that many queries.

        :raises PinotAssetsError: it did not within the timeout.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            current = self._phases[-1]
            while current.queries < queries:
                if not self._changed.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    raise PinotAssetsError(
                        f"phase {current.name}: {current.queries} of {queries} queries in {timeout_s:.0f} s",
                        why=current.first_error,
                    )

    def report(self) -> LoadReport:
        """Return the answers so far; the report is complete after the `with` block."""
        with self._changed:
            return LoadReport(tuple(replace(phase, counts=[*phase.counts]) for phase in self._phases))

    def _ask_on(self, number: int) -> None:
        urls = itertools.islice(itertools.cycle(self._urls), number, None)
        # Ignore a proxy in the environment: the brokers run on this machine.
        with httpx.Client(timeout=self._timeout_s, trust_env=False) as client:
            while (phase := self._begin()) is not None:
                result = self._ask(client, next(urls))
                with self._changed:
                    phase.in_flight -= 1
                    phase.record(result)
                    self._changed.notify_all()
                self._stopping.wait(self._pause_s)

    def _begin(self) -> PhaseReport | None:
        with self._changed:
            self._changed.wait_for(lambda: self._phases or self._stopping.is_set())
            if self._stopping.is_set():
                return None
            phase = self._phases[-1]
            phase.in_flight += 1
            return phase

    def _ask(self, client: httpx.Client, url: str) -> QueryAnswer | Exception:
        # Every error is a result: if a thread died silently, the load would look clean.
        try:
            response = client.post(url, json={"sql": self._sql})
            response.raise_for_status()
            body = response.json()
            if body.get("exceptions"):
                return PinotAssetsError(
                    "the broker answered with exceptions", why=str(body["exceptions"])[:500]
                )
            # If a broker has no segment to query, its answer has no table: no rows. In a phase that does not
            # allow an empty table, this counts as mixed.
            table = body.get("resultTable") or {"rows": []}
            return answer(table["rows"])
        except Exception as error:
            return error
