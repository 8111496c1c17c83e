"""How far a build is, how fast it goes, and how long it still takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from pinot_assets.core.text import plural
from pinot_assets.snapshot.receipt import Failure, Receipt

_MEANINGFUL_S = 1.0
"""A rate of less than that is noise."""


class Pace:
    """One build.

    :param sizes: bytes of each file to build, by its ordinal.
    :param clock: seconds.
    :ivar files: how many there are to build.
    :ivar done: how many of them are through, failed ones too.
    :ivar failed: how many of those have failed.
    """

    def __init__(self, sizes: Mapping[int, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._sizes, self._clock, self._begun = sizes, clock, clock()
        self.files, self.done, self.failed = len(sizes), 0, 0
        self._bytes = self._read_bytes = self._rows = self._moving = self._in_vain = 0

    def built(self, outcome: Receipt | Failure) -> None:
        """One file is through; its rows, if any were moving, come with the next word of those that do."""
        self.done += 1
        size = self._sizes.get(outcome.ordinal, 0)
        self._bytes += size
        if isinstance(outcome, Receipt):
            self._read_bytes += size
            self._rows += outcome.rows + outcome.bad_rows
            self._moving = max(0, self._moving - outcome.rows - outcome.bad_rows)
        else:
            self.failed += 1

    def moving(self, rows: int) -> None:
        """So many rows are read of files that are not through. Fewer than before: one failed, or it changed
        and is read again; what was read of it was read."""
        self._in_vain += max(0, self._moving - rows)
        self._moving = rows

    @property
    def rows(self) -> int:
        """Rows read, those of files that failed included as far as they were told of."""
        return self._rows + self._moving + self._in_vain

    @property
    def rows_per_s(self) -> float | None:
        """None where it is too early to say."""
        seconds = self._clock() - self._begun
        return self.rows / seconds if seconds >= _MEANINGFUL_S and self.rows else None

    @property
    def left_s(self) -> float | None:
        """Seconds, measured by bytes; None before the first file is through."""
        total = sum(self._sizes.values())
        # What moves is taken to be of the same width as what is through.
        through = self._bytes + (self._moving * self._read_bytes / self._rows if self._rows else 0)
        seconds = self._clock() - self._begun
        if not self._read_bytes or seconds < _MEANINGFUL_S:
            return None
        return seconds * max(0.0, total - through) / through

    def __str__(self) -> str:
        parts = [f"{self.done - self.failed:,} of {plural(self.files, 'file')}"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        parts.append(plural(self.rows, "row"))
        if (rate := self.rows_per_s) is not None:
            parts.append(f"{rate:,.0f} rows/s")
        if self.done < self.files and (left := self.left_s) is not None:
            parts.append(f"about {_duration(left)} left")
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
