"""Whether every broker answers with the rows of a snapshot: what a rollback ends with."""

from __future__ import annotations

from dataclasses import dataclass

from pinot_assets.core.deadline import Deadline, poll_until
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotError
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.snapshot.manifest import Snapshot


@dataclass(frozen=True, slots=True)
class RowCount:
    """What one broker answered to COUNT(*).

    :ivar rows: None where it gave no whole answer; `error` says why.
    :ivar expected: rows of the snapshot's segments, and of other segments of the table, that are visible.
    """

    broker: str
    rows: int | None
    expected: int
    error: str = ""

    @property
    def matches(self) -> bool:
        """Whether queries see the snapshot there."""
        return self.rows == self.expected

    def __str__(self) -> str:
        if self.rows is None:
            return f"{self.broker} gave no whole answer: {self.error}"
        return f"{self.broker} counts {plural(self.rows, 'row')}, {self.expected:,} expected"


def count(clients: TableClients, table: str, snapshot: Snapshot) -> tuple[RowCount, ...]:
    """Ask every broker, each until it is right, as long as a broker may lag (`Waits.broker`).

    A controller that does not answer is an answer that is not right, and no error: what is counted has
    happened, and whoever is told of an error would do it once more.
    """
    try:
        expected, brokers = _expected(clients, table, snapshot), clients.pinot.brokers(table)
    except PinotError as error:
        return (RowCount("the controller", None, snapshot.rows, error.reason),)
    return tuple(_count(clients, broker, table, expected) for broker in brokers)


def _expected(clients: TableClients, table: str, snapshot: Snapshot) -> int:
    ours, rows = snapshot.segments, 0
    for name in clients.pinot.visible_segments(table):
        rows += ours[name].rows if name in ours else clients.pinot.segment_metadata(table, name).total_docs
    return rows


def _count(clients: TableClients, broker: str, table: str, expected: int) -> RowCount:
    def look() -> RowCount:
        try:
            return RowCount(broker, clients.pinot.broker_rows(broker, table), expected)
        except PinotError as error:
            return RowCount(broker, None, expected, str(error))

    return poll_until(Deadline(clients, clients.waits.broker), 0.5, look, lambda counted: counted.matches)
