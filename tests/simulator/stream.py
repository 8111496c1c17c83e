"""A stream partition: how it hands out rows, how far a reader is, and which rows a copy holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32

import simpy

from simulator.tables import Stream
from simulator.zookeeper import Steps

Ranges = tuple[tuple[int, int], ...]
"""Half-open ranges of offsets, ascending, without touching one another."""

NEVER = float("inf")


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same rows in as few ranges as possible."""
    whole: list[tuple[int, int]] = []
    for first, end in sorted(r for r in ranges if r[0] < r[1]):
        if whole and first <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((first, end))
    return tuple(whole)


def count(ranges: Ranges) -> int:
    """How many rows."""
    return sum(end - first for first, end in ranges)


def missing(held: Ranges, first: int, end: int) -> Ranges:
    """What of `first` to `end` is not held."""
    gaps: list[tuple[int, int]] = []
    for low, high in held:
        if low > first:
            gaps.append((first, min(low, end)))
        first = max(first, high)
    gaps.append((first, end))
    return joined(gaps)


@dataclass(frozen=True, slots=True)
class Built:
    """A built segment: its rows, and the range of offsets that it stands for."""

    name: str
    start: int
    end: int
    rows: Ranges
    bytes_per_row: int

    @property
    def crc(self) -> str:
        """Equal rows in equal order give equal files."""
        return str(crc32(repr((self.name, self.rows)).encode()))

    @property
    def docs(self) -> int:
        """Rows in it."""
        return count(self.rows)

    @property
    def size_bytes(self) -> int:
        """Size of its tar."""
        return self.docs * self.bytes_per_row


class StreamPartition:
    """One partition: offsets come at an even rate and are forgotten when retention is over."""

    def __init__(self, stream: Stream, began: int) -> None:
        self._rate = stream.rows_per_s
        self._retention = stream.retention_ms
        self._began = began
        self._ends = NEVER if stream.flows_ms is None else began + stream.flows_ms

    def latest(self, now: float) -> int:
        """Offset that the next message gets."""
        return max(0, int(self._rate * (min(now, self._ends) - self._began)) // 1000)

    def earliest(self, now: float) -> int:
        """First offset that can be read."""
        return self.latest(now - self._retention)

    def when(self, offset: int) -> float:
        """When `latest` reaches the offset; never, where messages end before."""
        at = self._began - (-offset * 1000 // self._rate)
        return at if at <= self._ends else NEVER


@dataclass
class Reader:
    """A server's reader of one segment.

    :ivar offset: the next offset it reads, as of the last stop; `position` says it at any moment.
    :ivar rows: what it has indexed.
    :ivar late_ms: how long after they were written its messages come.
    """

    env: simpy.Environment
    stream: StreamPartition
    rows_per_s: int
    offset: int
    rows: Ranges = ()
    late_ms: int = 0
    _since: float | None = None

    def position(self) -> int:
        """The next offset it reads, now."""
        if self._since is None:
            return self.offset
        reached = self.offset + int((self.env.now - self._since) * self.rows_per_s) // 1000
        return max(self.offset, min(self.stream.latest(self.env.now - self.late_ms), reached))

    def until(self, target: int, deadline: float, also: simpy.Event | None = None) -> Steps[None]:
        """Read up to the target offset, not beyond; give up at the deadline or when `also` happens."""
        earliest = self.stream.earliest(self.env.now)
        if earliest > self.offset:
            # Kafka's `auto.offset.reset`: no error, the rows between are not there.
            self.offset = earliest
        left = -(-(target - self.offset) * 1000 // self.rows_per_s)
        reach = max(self.stream.when(target) + self.late_ms, self.env.now + left)
        self._since = self.env.now
        try:
            yield from self._wait(min(reach, deadline), also)
        finally:
            first, end = self.offset, min(self.position(), max(target, self.offset))
            self.rows = joined((*self.rows, (first, end)))
            self.offset, self._since = end, None

    def _wait(self, moment: float, also: simpy.Event | None) -> Steps[None]:
        events: list[simpy.Event] = [] if also is None or also.processed else [also]
        if also is not None and also.processed:
            return
        if moment < NEVER:
            events.append(self.env.timeout(max(0, moment - self.env.now)))
        yield self.env.any_of(events) if events else self.env.event()
