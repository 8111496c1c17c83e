"""When a consuming segment is full: rows, time, size, and how the row limit learns from what was committed.

Source: `SizeBasedSegmentFlushThresholdComputer`, `FlushThresholdUpdateManager` and `StreamConfig` of
release-1.5.1. A pauseless commit begins before the segment is built, so its size is learned at its end, when
the next segment's limit is fixed already: the limit lags one segment behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SMALLEST_ROWS: Final = 10_000
NEWEST_WEIGHT: Final = 0.1
GROWTH_AFTER_TIME: Final = 1.1


@dataclass(frozen=True, slots=True)
class Flush:
    """Thresholds of a table's stream config.

    :ivar rows: `realtime.segment.flush.threshold.rows`, divided by the partitions that one server consumes;
        0: the size decides.
    :ivar segment_rows: `...threshold.segment.rows`, taken as it is.
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
    """A committed segment, as the updater sees it.

    :ivar rows_limit: the row limit it was consumed with.
    :ivar rows: None, like the size, at a pauseless commitStart: not built yet.
    """

    rows_limit: int
    took_ms: float
    rows: int | None = None
    size_bytes: int | None = None
    forced: bool = False


class RowLimit:
    """Row limit of a table's next segment; lives in the lead controller's memory and is lost with it."""

    def __init__(self, flush: Flush, partitions_per_server: int) -> None:
        self.flush = flush
        self.partitions_per_server = max(1, partitions_per_server)
        self._rows_per_byte = 0.0
        self._last: Flushed | None = None

    def learn(self, flushed: Flushed) -> None:
        """Take a committed segment in. Without a size, or forced, it tells only the former limit."""
        if not flushed.rows or not flushed.size_bytes or flushed.forced:
            if not self._rows_per_byte:
                self._last = flushed
            return
        self._last = flushed
        ratio = flushed.rows / flushed.size_bytes
        former = self._rows_per_byte
        self._rows_per_byte = NEWEST_WEIGHT * ratio + (1 - NEWEST_WEIGHT) * former if former else ratio

    def next(self) -> int:
        """Row limit of the segment that begins now."""
        if self.flush.rows:
            return self.flush.rows // self.partitions_per_server
        if self.flush.segment_rows:
            return self.flush.segment_rows
        if not self._rows_per_byte:
            return self._last.rows_limit if self._last else self.flush.first_rows
        return self._learned()

    def _learned(self) -> int:
        last, wanted = self._last, self.flush.segment_bytes
        if last is None or last.rows is None or last.size_bytes is None:
            raise AssertionError("a ratio is only known from a segment with rows and size")
        if last.rows < last.rows_limit and last.size_bytes < wanted:
            rows = float(last.rows)
            if self.flush.time_ms < last.took_ms:
                rows = self.flush.time_ms * rows // last.took_ms
            return max(int(rows * GROWTH_AFTER_TIME), SMALLEST_ROWS)
        if last.size_bytes < wanted / 2:
            target = last.rows * 1.5
        elif last.size_bytes > wanted * 1.5:
            target = last.rows / 2
        else:
            target = wanted * self._rows_per_byte
        return max(int(target), SMALLEST_ROWS)
