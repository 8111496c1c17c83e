"""The progress of a driver: its phases and the pace of a build, for the CLI and Dagster's logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from pinot_assets.core.text import plural
from pinot_assets.snapshot.receipt import Failure, Receipt


class RunPhase(StrEnum):
    """A part of a run that may take long; the value is what a person reads."""

    CONNECT = "connecting"
    LIST = "listing the source"
    BUILD = "building"
    PUSH = "pushing"
    AUDIT = "auditing"
    SWITCH = "switching"


UNITS: Final[Mapping[RunPhase, str]] = {RunPhase.LIST: "object", RunPhase.PUSH: "segment"}
"""What a phase counts; other phases count nothing."""


class Progress(Protocol):
    """Where a driver reports progress."""

    def note(self, text: str) -> None:
        """One step, for people."""

    def begin(self, phase: RunPhase, total: int = 0) -> None:
        """A phase begins, and the one before is over.

        :param total: how many things it counts (`UNITS`); 0 if that is not known.
        """

    def advance(self, done: int) -> None:
        """So many things of the phase are done by now."""

    def rest(self) -> None:
        """No phase is under way until the next one begins."""

    def building(self, sizes: Mapping[int, int]) -> None:
        """The phase BUILD begins.

        :param sizes: bytes of the files to build, by ordinal.
        """

    def moving(self, rows: int) -> None:
        """`rows` rows of unfinished files are read so far; called only when there is progress."""

    def built(self, outcome: Receipt | Failure) -> None:
        """One file is finished: built or failed."""


@dataclass
class Quiet:
    """A progress that keeps the notes and shows nothing."""

    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keep it."""
        self.notes.append(text)

    def begin(self, phase: RunPhase, total: int = 0) -> None:
        """Ignore it."""

    def advance(self, done: int) -> None:
        """Ignore it."""

    def rest(self) -> None:
        """Ignore it."""

    def building(self, sizes: Mapping[int, int]) -> None:
        """Ignore it."""

    def moving(self, rows: int) -> None:
        """Ignore it."""

    def built(self, outcome: Receipt | Failure) -> None:
        """Ignore it."""


@dataclass
class Count:
    """How far a phase is that counts things, or that counts nothing.

    :ivar total: how many things there are; 0 if that is not known.
    :ivar done: how many of them are done.
    """

    phase: RunPhase
    total: int = 0
    done: int = 0

    def __str__(self) -> str:
        if not (unit := UNITS.get(self.phase)) or not (self.total or self.done):
            return ""
        return f"{self.done:,} of {plural(self.total, unit)}" if self.total else plural(self.done, unit)


_MEANINGFUL_S = 1.0
"""Rates over a shorter time, in seconds, are noise."""


class Pace:
    """How far one build is, how fast it is and how long it still takes.

    :param sizes: bytes of each file to build, by its ordinal.
    :param clock: returns seconds.
    :ivar files: number of files to build.
    :ivar done: number of finished files, failed ones included.
    :ivar failed: number of failed files.
    """

    def __init__(self, sizes: Mapping[int, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._sizes, self._clock, self._begun = sizes, clock, clock()
        self.files, self.done, self.failed = len(sizes), 0, 0
        self._bytes = self._read_bytes = self._rows = self._moving = self._in_vain = 0

    def built(self, outcome: Receipt | Failure) -> None:
        """Count a finished file and take its rows off the moving ones; the next `moving` corrects these."""
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
        """Set the number of rows read from unfinished files. If it shrinks, a file failed, or it changed and
        is read again; the rows that were read in vain still count."""
        self._in_vain += max(0, self._moving - rows)
        self._moving = rows

    @property
    def rows(self) -> int:
        """Rows read, including the reported rows of failed files."""
        return self._rows + self._moving + self._in_vain

    @property
    def rows_per_s(self) -> float | None:
        """Rows per second; None in the first second and before the first row."""
        seconds = self._clock() - self._begun
        return self.rows / seconds if seconds >= _MEANINGFUL_S and self.rows else None

    @property
    def left_s(self) -> float | None:
        """Seconds left, estimated from bytes; None before the first file is built."""
        total = sum(self._sizes.values())
        # Assume that rows of unfinished files are as wide as those of finished ones.
        through = self._bytes + (self._moving * self._read_bytes / self._rows if self._rows else 0)
        seconds = self._clock() - self._begun
        if not self._read_bytes or seconds < _MEANINGFUL_S:
            return None
        return seconds * max(0.0, total - through) / through

    def __str__(self) -> str:
        parts = [f"{self.done - self.failed:,} of {plural(self.files, 'file')}"]
        if self.failed:
            parts.append(f"{self.failed:,} failed")
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
