"""Simulates a day of a whole cluster in seconds: one event for each segment commit, not for each message.

The protocol is the same as in `world`, on a larger scale: a partition reads until its segment is full (rows
by the learning updater, or time), commits in one of three ways, and reads on. It then catches up with what it
missed. `ASSUMES` lists the assumptions.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS
from pinot_assets.sizing.load import HOLD_MS, Flushed, Load, Outage, RowLimit, UploadWay, leased_s
from pinot_assets.sizing.profile import ZOOKEEPER_MS

ASSUMES: Final = (
    "Messages arrive evenly, over time and over partitions; all tables are alike.",
    "Servers that are behind read one partition as fast as --read-rate says, and have enough CPU "
    "while they build; a warning shows where that is doubtful.",
    "A commit's cost grows with its rows; the measured cost and its source are in sizing/profile.py.",
    "An upload through the controller passes it twice: in from the server, out to the deep store.",
    "Controller traffic is the protocol's messages, with those of replicas that wait; uploads; "
    "per commit the segments' nodes, ideal state, external view, Helix's messages and servers' "
    "current states, read and written as a whole, uncompressed; the deep store's listing at each "
    "commit that is moved; and what the periodic tasks (status checker, validation, retention) "
    "read at their default periods. Not counted: ZooKeeper's heartbeats (5 MB a day for three "
    "controllers), requests for a back-fill (2 KB a segment), metrics, queries, minions. Servers "
    "find peers in ZooKeeper and send each other tars without a controller.",
    "No server or controller dies. The proof for that is in tests/unit/simulator.",
    "Repair fills in copies that are missing after an outage, one at a time for each controller "
    "(deepStoreUploadRetry.parallelism = 1). Pinot itself does so once a day for pauseless "
    "tables, and for others only with controller.realtime.segment.deepStoreUploadRetryEnabled.",
)
OVERHEAD_S: Final = 0.5
"""Seconds of messages, Helix and ZooKeeper around a commit."""

GOLDEN: Final = 0.618033988749895


@dataclass(slots=True)
class Commit:
    """One commit; times in seconds since the begin of the day.

    :ivar full_s: when the segment was full.
    :ivar ready_s: when the partition could read again.
    :ivar behind_s: age of the newest row at `ready_s`.
    :ivar done_s: when the segment was DONE; later than `ready_s` for pauseless.
    :ivar stored_s: when the deep store had it; infinite if not within the simulated time.
    :ivar blocked_s: how long the commit waited for the store to come back.
    """

    table: int
    rows: float
    full_s: float
    ready_s: float
    behind_s: float
    done_s: float
    stored_s: float
    blocked_s: float = 0.0


@dataclass(slots=True)
class Day:
    """The result of a simulation: all commits, and the changes of the rate at which rows are read."""

    commits: list[Commit] = field(default_factory=list)
    rate_at: list[float] = field(default_factory=list)
    rate_by: list[float] = field(default_factory=list)

    def changes(self, at_s: float, by: float) -> None:
        """Record a change of the rate: at `at_s` by `by` rows per second."""
        self.rate_at.append(at_s)
        self.rate_by.append(by)


@dataclass(slots=True)
class _Partition:
    table: int
    limit: float
    created_s: float
    ready_s: float
    behind: float = 0.0
    read: float = 0.0


def simulate(load: Load, way: UploadWay) -> Day:
    """Simulate a cluster's day.

    :returns: its commits, in the order in which their ends were computed, and the changes of the rate.
    """
    return _DayOfLoad(load, way).run()


class _DayOfLoad:
    def __init__(self, load: Load, way: UploadWay) -> None:
        self.load, self.way, self.day = load, way, Day()
        per_server = -(-load.partitions * load.replication // load.servers)
        self.limits = [RowLimit(load.flush, per_server) for _ in range(load.tables)]
        self.free_s = [0.0] * load.controllers
        self.order = count()
        self.heap: list[tuple[float, int, _Partition, float | None]] = []

    def run(self) -> Day:
        """Simulate the day, beginning with segments in every stage of filling."""
        load = self.load
        full = self._steady_rows()
        for number in range(load.tables * load.partitions):
            read = number * GOLDEN % 1 * full
            partition = _Partition(number // load.partitions, full, -read / load.rows_per_s, 0.0, read=read)
            self.day.changes(0.0, load.rows_per_s)
            self._fill(partition)
        while self.heap:
            at, _, partition, full_s = heapq.heappop(self.heap)
            if at >= load.for_s:
                continue
            if full_s is None:
                self._full(partition, at)
            else:
                self._upload(partition, full_s, at)
        self._back_fill()
        return self.day

    def _steady_rows(self) -> float:
        """Return the rows of a segment in the long run, and let the row limits learn them in advance."""
        load, flush = self.load, self.load.flush
        by_time = load.rows_per_s * flush.time_ms / 1000
        if flush.rows or flush.segment_rows:
            return min(self.limits[0].next(), by_time)
        by_size = flush.segment_bytes * load.commit.rows / load.commit.segment_bytes
        rows = max(10_000.0, min(by_size, by_time))
        for limit in self.limits:
            limit.learn(self._flushed(rows, rows, rows / load.rows_per_s))
        return rows

    def _flushed(self, limit: float, rows: float, took_s: float) -> Flushed:
        return Flushed(int(limit), took_s * 1000, int(rows), int(self.load.segment_bytes(rows)))

    # --- a partition's round -----------------------------------------------------------------------

    def _fill(self, partition: _Partition) -> None:
        """Compute when the current segment will be full, by rows or time, and schedule that."""
        load = self.load
        spare = load.read_rows_per_s - load.rows_per_s
        catch_up = partition.behind / spare
        left = max(0.0, partition.limit - partition.read)
        fast = load.read_rows_per_s * catch_up
        takes = left / load.read_rows_per_s if left <= fast else catch_up + (left - fast) / load.rows_per_s
        ends = max(partition.created_s + load.flush.time_ms / 1000, partition.ready_s + 1)
        full = min(partition.ready_s + takes, ends)
        if partition.behind:
            self.day.changes(partition.ready_s, spare)
            self.day.changes(min(full, partition.ready_s + catch_up), -spare)
        reading = full - partition.ready_s
        caught = min(reading, catch_up)
        partition.read += load.read_rows_per_s * caught + load.rows_per_s * (reading - caught)
        partition.behind = max(0.0, partition.behind - spare * caught)
        heapq.heappush(self.heap, (full, next(self.order), partition, None))

    def _full(self, partition: _Partition, at: float) -> None:
        """Build the full segment and commit it in the simulated way; pauseless reads on meanwhile."""
        self.day.changes(at, -self.load.rows_per_s)
        built = at + self.load.build_s(partition.read)
        if self.way is UploadWay.PAUSELESS:
            self._pauseless(partition, at, built)
        elif self.way is UploadWay.BYPASS:
            self._bypass(partition, at, built)
        else:
            heapq.heappush(self.heap, (built, next(self.order), partition, at))

    def _upload(self, partition: _Partition, full_s: float, at: float) -> None:
        """Upload through the controller: one tar after the other, and none while the store is down."""
        load = self.load
        lead = partition.table % load.controllers
        takes = load.tar_bytes(partition.read) / load.controller_bytes_per_s
        begins = max(at, self.free_s[lead])
        if load.outage_s and begins < load.outage_ends_s and begins + takes > load.outage_at_s:
            # Each server asks again every few seconds, at its own moment.
            again = load.outage_ends_s + HOLD_MS / 1000 * (next(self.order) * GOLDEN % 1)
            heapq.heappush(self.heap, (again, next(self.order), partition, full_s))
            return
        self.free_s[lead] = begins + takes
        ready = begins + max(takes, self._own_upload(partition.read)) + OVERHEAD_S
        waited = load.outage_ends_s - max(full_s, load.outage_at_s)
        blocked = max(0.0, waited) if at >= load.outage_ends_s and full_s < load.outage_ends_s else 0.0
        self._committed(partition, full_s, ready, ready, ready, blocked)

    def _own_upload(self, rows: float) -> float:
        return self.load.tar_bytes(rows) / self.load.store_bytes_per_s

    def _bypass(self, partition: _Partition, at: float, built: float) -> None:
        load = self.load
        begins, takes = built, self._own_upload(partition.read)
        is_stored, blocked = True, 0.0
        if load.is_down(built):
            in_time = built - at + load.upload_timeout_s <= leased_s(built - at)
            if load.outage is Outage.REFUSES or in_time:
                takes, is_stored = load.gives_up_after_s, False
            else:
                # The election ends before the upload does: no replica commits until the store is back.
                begins, blocked = load.outage_ends_s, load.outage_ends_s - built
        ready = begins + takes + OVERHEAD_S
        self._committed(partition, at, ready, ready, ready if is_stored else float("inf"), blocked)

    def _pauseless(self, partition: _Partition, at: float, built: float) -> None:
        load = self.load
        ready = at + 3 * ZOOKEEPER_MS / 1000 + 0.2
        down = load.is_down(built)
        done = built + (load.gives_up_after_s if down else self._own_upload(partition.read)) + OVERHEAD_S
        late = done - at > COMPLETION_WINDOW_MS / 1000
        self._committed(partition, at, ready, done, float("inf") if down or late else done)

    def _committed(
        self,
        partition: _Partition,
        full: float,
        ready: float,
        done: float,
        stored: float,
        blocked: float = 0.0,
    ) -> None:
        load, limit = self.load, self.limits[partition.table]
        partition.behind += (ready - full) * load.rows_per_s
        commit = Commit(
            partition.table,
            partition.read,
            full,
            ready,
            partition.behind / load.rows_per_s,
            done,
            stored,
            blocked,
        )
        self.day.commits.append(commit)
        self.day.changes(ready, load.rows_per_s)
        limit.learn(self._flushed(partition.limit, partition.read, full - partition.created_s))
        partition.limit, partition.read = limit.next(), 0.0
        partition.created_s = partition.ready_s = ready
        self._fill(partition)

    def _back_fill(self) -> None:
        """Repair what the store lacks once it is back, oldest first; each later one when it is due."""
        load = self.load
        free = [0.0] * load.controllers
        for commit in sorted(self.day.commits, key=lambda c: c.done_s):
            if commit.stored_s != float("inf"):
                continue
            due = commit.done_s + COMPLETION_WINDOW_MS / 1000
            if load.outage_s and due >= load.outage_at_s:
                due = max(due, load.outage_ends_s + load.repair_after_s)
            lead = commit.table % load.controllers
            free[lead] = commit.stored_s = max(due, free[lead]) + self._own_upload(commit.rows) + OVERHEAD_S
