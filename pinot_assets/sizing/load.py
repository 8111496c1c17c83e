"""The cluster to simulate: its tables, machines, messages, and the outage that it has to survive.

Also when a consuming segment is full (rows, time, size), and how the row limit learns from committed
segments. Source: `SizeBasedSegmentFlushThresholdComputer`, `FlushThresholdUpdateManager` and `StreamConfig`
of release-1.5.1. A pauseless commit begins before the segment is built, so Pinot learns the size at its end.
The next segment's limit is fixed by then, so the limit is always one segment behind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pinot_assets.errors import PinotAssetsError
from pinot_assets.sizing.profile import MEASURED, MeasuredCommit

HOLD_MS: Final = 3_000
"""`MAX_HOLD_TIME_MS`: milliseconds that a server sleeps before it asks again."""
NOTIFY_WINNER_MS: Final = 2 * (HOLD_MS + HOLD_MS // 10)
LEASE_EXTENSION_S: Final = 120
LEASE_PERIOD_MS: Final = 108_000
"""Times of the completion protocol (`SegmentCompletionProtocol`, `BlockingSegmentCompletionFSM`,
`SegmentBuildTimeLeaseExtender` of release-1.5.1; docs/design/realtime.md#s1 and #s2)."""

SMALLEST_ROWS: Final = 10_000
NEWEST_WEIGHT: Final = 0.1
GROWTH_AFTER_TIME: Final = 1.1


@dataclass(frozen=True, slots=True)
class Flush:
    """Thresholds of a table's stream config.

    :ivar rows: `realtime.segment.flush.threshold.rows`, divided by the partitions that one server consumes;
        0: the size decides.
    :ivar segment_rows: `...threshold.segment.rows`, not divided.
    :ivar time_ms: `...threshold.time`, 6 h unless set.
    :ivar segment_bytes: `...threshold.segment.size`, 200 MB unless set.
    :ivar first_rows: `...autotune.initialRows`.
    """

    rows: int = 0
    segment_rows: int = 0
    time_ms: int = 6 * 3_600_000
    segment_bytes: int = 200 * 1024 * 1024
    first_rows: int = 100_000


@dataclass(frozen=True, slots=True)
class Flushed:
    """What the updater of the row limit knows of a committed segment.

    :ivar rows_limit: the row limit with which it was consumed.
    :ivar rows: None, as `size_bytes` is, at a pauseless commitStart: the segment is not built yet.
    """

    rows_limit: int
    took_ms: float
    rows: int | None = None
    size_bytes: int | None = None
    forced: bool = False


class RowLimit:
    """Row limit of a table's next segment; only the lead controller's memory has it, so it can be lost."""

    def __init__(self, flush: Flush, partitions_per_server: int) -> None:
        self.flush = flush
        self.partitions_per_server = max(1, partitions_per_server)
        self._rows_per_byte = 0.0
        self._last: Flushed | None = None

    def learn(self, flushed: Flushed) -> None:
        """Learn from a committed segment; from one without size, or forced, only its row limit."""
        if not flushed.rows or not flushed.size_bytes or flushed.forced:
            if not self._rows_per_byte:
                self._last = flushed
            return
        self._last = flushed
        ratio = flushed.rows / flushed.size_bytes
        former = self._rows_per_byte
        self._rows_per_byte = NEWEST_WEIGHT * ratio + (1 - NEWEST_WEIGHT) * former if former else ratio

    def next(self) -> int:
        """Return the row limit of the segment that begins now."""
        if self.flush.rows:
            return self.flush.rows // self.partitions_per_server
        if self.flush.segment_rows:
            return self.flush.segment_rows
        if not self._rows_per_byte:
            return self._last.rows_limit if self._last else self.flush.first_rows
        return self._learned()

    def _learned(self) -> int:
        last, desired = self._last, self.flush.segment_bytes
        if last is None or last.rows is None or last.size_bytes is None:
            raise AssertionError("a ratio is only known from a segment with rows and size")
        if last.rows < last.rows_limit and last.size_bytes < desired:
            rows = float(last.rows)
            if self.flush.time_ms < last.took_ms:
                rows = self.flush.time_ms * rows // last.took_ms
            return max(int(rows * GROWTH_AFTER_TIME), SMALLEST_ROWS)
        if last.size_bytes < desired / 2:
            target = last.rows * 1.5
        elif last.size_bytes > desired * 1.5:
            target = last.rows / 2
        else:
            target = desired * self._rows_per_byte
        return max(int(target), SMALLEST_ROWS)


SHORTEST_FLUSH_MS: Final = 60_000
"""A simulated day of shorter segments would take far too long."""


class Outage(StrEnum):
    """How the deep store fails."""

    REFUSES = "refuses"
    """Every call fails within a second or so."""
    HANGS = "hangs"
    """No call returns until the store is back; then the hanging calls continue."""


class UploadWay(StrEnum):
    """How a committed segment gets into the deep store."""

    CONTROLLER = "through the controller"
    BYPASS = "deep-store bypass"
    PAUSELESS = "pauseless"


class LoadError(PinotAssetsError):
    """A cluster that cannot work: too few servers, or more messages than can be read."""


MOST_COMMITS = 5_000_000
"""Far more than a thousand tables have in a day."""


@dataclass(frozen=True, slots=True)
class Load:
    """The cluster, its load and the outage; in seconds, bytes and rows per second.

    :ivar partitions: partitions of each table.
    :ivar messages_per_s: of all tables together, spread evenly over their partitions.
    :ivar commit: measured cost of one commit, `scaled` to the size of the rows at hand.
    :ivar kept_s: how long segments are kept, which sets the length of the ideal state.
    :ivar read_rows_per_s: rate at which a server reads one partition when it is behind.
    :ivar build_slots: number of segments that one server builds at the same time.
    :ivar store_bytes_per_s: rate of one upload.
    :ivar controller_bytes_per_s: maximum rate at which a controller receives.
    :ivar upload_timeout_s: time-out of an upload by a server.
    :ivar refusal_s: time that a refusing store takes to answer.
    :ivar repair_after_s: time from the store's return until our repair starts to upload missing copies.
    """

    tables: int = 100
    servers: int = 50
    controllers: int = 3
    partitions: int = 4
    replication: int = 3
    messages_per_s: float = 100_000
    commit: MeasuredCommit = MEASURED
    for_s: float = 24 * 3_600
    outage_at_s: float = 10 * 3_600
    outage_s: float = 2 * 3_600
    outage: Outage = Outage.REFUSES
    flush: Flush = field(default_factory=Flush)
    kept_s: float = 7 * 86_400
    read_rows_per_s: float = 20_000
    build_slots: int = 4
    store_bytes_per_s: float = 50e6
    controller_bytes_per_s: float = 500e6
    upload_timeout_s: float = 300
    refusal_s: float = 1
    repair_after_s: float = 300

    def __post_init__(self) -> None:
        if min(self.tables, self.servers, self.controllers, self.partitions, self.replication) < 1:
            raise LoadError(
                "tables, servers, controllers, partitions and replicas are counted from 1",
                hint="give each at least 1",
            )
        if self.replication > self.servers:
            raise LoadError(
                f"{self.replication} replicas do not fit on {self.servers} servers",
                hint="give more --servers or fewer --replication",
            )
        if self.for_s <= 0 or self.messages_per_s <= 0:
            raise LoadError("without time or messages nothing happens", hint="give --for 24h, for example")
        if self.flush.time_ms < SHORTEST_FLUSH_MS:
            raise LoadError(
                f"a segment that is flushed after {self.flush.time_ms / 1000:g} s is too short to be useful",
                hint="give --flush-time 1m at least",
            )
        if self.outage_s and self.outage_at_s >= self.for_s:
            raise LoadError(
                "the outage begins after the end of the simulated time",
                hint="give an earlier --outage-at, or a longer --for",
            )
        if self.rows_per_s >= self.read_rows_per_s:
            raise LoadError(
                f"{self.rows_per_s:,.0f} messages/s arrive in each partition, and a server reads "
                f"{self.read_rows_per_s:,.0f} of one when it is behind",
                why="it would never catch up",
                hint="give more --partitions, or a higher --read-rate if you have measured it",
            )
        if not self._commits() <= MOST_COMMITS:
            raise LoadError(
                "segments are so small that there are too many commits to simulate",
                why=f"more than {MOST_COMMITS:,} in the simulated time",
                hint="give a larger --flush-size, --flush-rows or --flush-time, or a shorter --for",
            )

    def _commits(self) -> float:
        """Return roughly how many commits all tables have together."""
        rows = self.flush.segment_rows or self.flush.segment_bytes / self.segment_bytes(1)
        segment_s = min(rows / self.rows_per_s, self.flush.time_ms / 1000)
        return self.tables * self.partitions * self.for_s / segment_s if segment_s > 0 else math.inf

    @property
    def rows_per_s(self) -> float:
        """Messages per second of one partition."""
        return self.messages_per_s / (self.tables * self.partitions)

    @property
    def outage_ends_s(self) -> float:
        """The time at which the store is back."""
        return self.outage_at_s + self.outage_s

    @property
    def gives_up_after_s(self) -> float:
        """Seconds that a server waits for an upload while the store is down."""
        return self.refusal_s if self.outage is Outage.REFUSES else self.upload_timeout_s

    def is_down(self, at_s: float) -> bool:
        """Return whether the store is down at that time."""
        return self.outage_at_s <= at_s < self.outage_ends_s

    def build_s(self, rows: float) -> float:
        """Return how long it takes to build so many rows."""
        return self.commit.build_s * rows / self.commit.rows

    def tar_bytes(self, rows: float) -> float:
        """Return the size of the tar of so many rows, which is uploaded."""
        return self.commit.tar_bytes * rows / self.commit.rows

    def segment_bytes(self, rows: float) -> float:
        """Return the size of so many rows that Pinot compares with the flush threshold."""
        return self.commit.segment_bytes * rows / self.commit.rows


def leased_s(build_s: float) -> float:
    """Return for how long after its begin the blocking election accepts a commit whose build takes so long.

    Leases end with the build, so a hanging upload has to fit into the rest of the last lease
    (docs/design/realtime.md#s2).
    """
    first = (NOTIFY_WINNER_MS + 120_000) / 1000
    asked = 0.9 * int(first)
    if build_s < asked:
        return first
    last = asked + (build_s - asked) // (LEASE_PERIOD_MS / 1000) * (LEASE_PERIOD_MS / 1000)
    return last + LEASE_EXTENSION_S
