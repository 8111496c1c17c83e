"""Whether every broker answers with the rows of a snapshot: what a rollback ends with."""

from __future__ import annotations

from dataclasses import dataclass

from pinot_assets.core.deadline import Deadline
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotError
from pinot_assets.session.stores.clients import Edges
from pinot_assets.snapshot.manifest import Snapshot


@dataclass(frozen=True, slots=True)
class Counted:
    """What one broker answered to COUNT(*).

    :ivar rows: None where it gave no whole answer; `error` says why.
    :ivar expected: rows of the snapshot's segments, and of other segments of the table, that are visible.
    """

    broker: str
    rows: int | None
    expected: int
    error: str = ""

    @property
    def right(self) -> bool:
        """Whether queries see the snapshot there."""
        return self.rows == self.expected

    def __str__(self) -> str:
        if self.rows is None:
            return f"{self.broker} gave no whole answer: {self.error}"
        return f"{self.broker} counts {plural(self.rows, 'row')}, {self.expected:,} expected"


def count(edges: Edges, table: str, snapshot: Snapshot) -> tuple[Counted, ...]:
    """Ask every broker, each until it is right, as long as a broker may lag (`Waits.broker`).

    A controller that does not answer is an answer that is not right, and no error: what is counted has
    happened, and whoever is told of an error would do it once more.
    """
    try:
        expected, brokers = _expected(edges, table, snapshot), edges.pinot.brokers(table)
    except PinotError as error:
        return (Counted("the controller", None, snapshot.rows, error.reason),)
    return tuple(_count(edges, broker, table, expected) for broker in brokers)


def _expected(edges: Edges, table: str, snapshot: Snapshot) -> int:
    ours, rows = snapshot.segments, 0
    for name in edges.pinot.visible_segments(table):
        rows += ours[name].rows if name in ours else edges.pinot.segment_metadata(table, name).total_docs
    return rows


def _count(edges: Edges, broker: str, table: str, expected: int) -> Counted:
    deadline = Deadline(edges, edges.waits.broker)
    while True:
        try:
            counted = Counted(broker, edges.pinot.broker_rows(broker, table), expected)
        except PinotError as error:
            counted = Counted(broker, None, expected, str(error))
        if counted.right or deadline.is_over:
            return counted
        deadline.pause(0.5)
