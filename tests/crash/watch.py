"""What queries see all the while: one thread for each broker, which asks for every row again and again.

An answer is *mixed* if it is neither the table before nor the table after, or if the table goes back.

A revert may show a *gap*, which is Pinot's: its controller writes the lineage, tells the brokers, and
deletes what was taken back, all in one call. A broker that hears of the deletion first puts the lineage into
its segment selector and then into its instance selector, and a query in between gets those segments only that
both know (`RoutingEntry.onAssignmentChange` of `BrokerRoutingManager`; "we update all components for routing
in sequence", says `BalancedInstanceSelector.select`). One answer of each broker may be such a one.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpx

from pinot_assets.core.json_object import JsonObject

Rows = tuple[str, ...]
"""All values of the table, each as often as it is there, in order."""


@dataclass
class Phase:
    """One crash point's time.

    :ivar ways: sequences of states through which the table may go.
    :ivar gap: what a single answer of each broker may show in between; None where nothing is reverted.
    :ivar went: what each broker showed, without repeats and without its gap.
    :ivar gaps: brokers that were seen in their gap.
    """

    ways: tuple[tuple[Rows, ...], ...]
    gap: Rows | None = None
    answers: int = 0
    mixed: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    went: dict[str, list[Rows]] = field(default_factory=dict)
    gaps: set[str] = field(default_factory=set)

    def see(self, broker: str, rows: Rows) -> None:
        """Take an answer in."""
        self.answers += 1
        went = self.went.setdefault(broker, [])
        if went and went[-1] == rows:
            return
        if rows == self.gap and broker not in self.gaps and not any(_leads(way, [rows]) for way in self.ways):
            self.gaps.add(broker)
            return
        went.append(rows)
        if not any(_leads(way, went) for way in self.ways):
            self.mixed.append(f"{broker} showed {' → '.join(map(str, went[-2:]))}")


def _leads(way: tuple[Rows, ...], went: list[Rows]) -> bool:
    """Whether the states come in this order; not all need to be seen."""
    rest = iter(way)
    return all(state in rest for state in went)


class Watch:
    """Asks both brokers about one table while the block runs."""

    def __init__(self, brokers: list[str], table: str, pause_s: float = 0.08) -> None:
        self._table, self._pause_s = table, pause_s
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._phase = Phase(ways=())
        self._threads = [threading.Thread(target=self._ask_on, args=(url,), daemon=True) for url in brokers]

    def __enter__(self) -> Self:
        return self

    def start(self, *ways: tuple[Rows, ...], gap: Rows | None = None) -> Phase:
        """Judge answers by these ways from now on."""
        with self._lock:
            self._phase = Phase(ways, gap)
        for thread in self._threads:
            if not thread.is_alive():
                thread.start()
        return self._phase

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _ask_on(self, url: str) -> None:
        with httpx.Client(timeout=10, trust_env=False) as client:
            while not self._over.wait(self._pause_s):
                with self._lock:
                    phase = self._phase
                try:
                    rows = rows_of(client, url, self._table)
                except Exception as error:
                    with self._lock:
                        phase.errors[f"{type(error).__name__}: {error}"[:300]] += 1
                    continue
                with self._lock:
                    phase.see(url, rows)


def rows_of(client: httpx.Client, broker: str, table: str) -> Rows:
    """All values that a broker shows.

    :raises RuntimeError: it says that something went wrong.
    """
    sql = f'SELECT v, COUNT(*) FROM "{table}" GROUP BY v ORDER BY v LIMIT 5000'
    response = client.post(f"{broker}/query/sql", json={"sql": sql})
    response.raise_for_status()
    body: JsonObject = response.json()
    if body.get("exceptions"):
        raise RuntimeError(" ".join(str(body["exceptions"]).split()))
    if body.get("numServersResponded", 0) < body.get("numServersQueried", 0):
        raise RuntimeError("not every server answered")
    rows = (body.get("resultTable") or {}).get("rows") or []
    return tuple(str(value) for value, count in rows for _ in range(int(count)))
