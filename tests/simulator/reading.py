"""Reading a stream partition: how far a reader is at any moment, without an event for every message."""

from __future__ import annotations

from dataclasses import dataclass

import simpy

from simulator.rows import NEVER, Ranges, StreamPartition, joined
from simulator.zookeeper import Steps


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
