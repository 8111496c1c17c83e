"""What people are told of a trigger: while it builds, and what it did, for the CLI, Dagster and logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from pinot_assets.audit.checks import Finding, rows_kept
from pinot_assets.core.text import plural
from pinot_assets.session.values.state import PushKind, Session
from pinot_assets.snapshot.receipt import Failure, Receipt, SourceFile
from pinot_assets.source.readiness import Unready, unready_words
from pinot_assets.table_spec import TableSpec


class TriggerResult(StrEnum):
    """How far a trigger came."""

    NOTHING = "NOTHING"
    HELD = "HELD"
    NOOP = "NOOP"
    FAILED = "FAILED"
    STAGED = "STAGED"
    WAITING = "WAITING"
    PAUSED = "PAUSED"
    SETTLED = "SETTLED"


@dataclass(frozen=True, slots=True)
class TriggerReport:
    """One trigger.

    :ivar session: as stored at the end, None when there was nothing to do.
    :ivar listed: files in the source directory that match.
    :ivar files: these files by URI, as listed; None when the trigger did not come so far.
    :ivar new: new files, rewritten, deleted: the listing against the ledger.
    :ivar built: receipts of this trigger.
    :ivar kept: files whose earlier receipt was used again.
    :ivar build_seconds: wall time of the build; 0 where nothing was to be built.
    :ivar unready: files that were left alone because they are being written; in a WAITING report those
        that everything waits for.
    :ivar notes: what else a person should know (resolved switches, swept strays, …).
    :ivar paused: why a PAUSED report leaves the session alone.
    """

    result: TriggerResult
    session: Session | None
    listed: int
    files: Mapping[str, SourceFile] | None = None
    new: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    built: tuple[Receipt, ...] = ()
    kept: int = 0
    failed: tuple[Failure, ...] = ()
    build_seconds: float = 0.0
    unready: tuple[Unready, ...] = ()
    notes: tuple[str, ...] = ()
    paused: str = ""

    @property
    def summary(self) -> str:
        """One line."""
        changes = f"{len(self.new)} new, {len(self.rewritten)} rewritten, {len(self.deleted)} deleted"
        built = f"built {len(self.built)} of {self.listed} files listed"
        listed = f"{plural(self.listed, 'file')} listed"
        match self.result:
            case TriggerResult.NOTHING:
                if self.unready:
                    return f"nothing to do yet: {listed}, {unready_words(self.unready)}"
                return f"nothing to do: {listed}, all published"
            case TriggerResult.HELD:
                return (
                    "held after a rollback: nothing is brought back until `resume` or a change of the source"
                )
            case TriggerResult.NOOP:
                return f"{changes}; {built}; no segment changes"
            case TriggerResult.FAILED:
                return f"{changes}; {built}, kept {self.kept}{self._failed}"
            case TriggerResult.STAGED:
                one_by_one = self.session is not None and self.session.push is PushKind.PLAIN
                how = "to be published one by one" if one_by_one else "staged, hidden"
                return f"{changes}; {built}, kept {self.kept}{self._failed}; {how}"
            case TriggerResult.WAITING:
                return f"waiting, nothing was changed: {unready_words(self.unready)}"
            case TriggerResult.SETTLED:
                return "finished what was left half way, as planned; plan again for what the source holds"
            case TriggerResult.PAUSED:
                return (
                    f"paused, nothing was changed: the open session {self.paused} and waits for the schedule "
                    "or a run by hand"
                )

    @property
    def bad_rows(self) -> int:
        """Rows that this trigger's builds put aside."""
        return sum(receipt.bad_rows for receipt in self.built)

    @property
    def rows_per_s(self) -> float | None:
        """Rows that the build read in a second, of files that were built; None where none was."""
        rows = sum(receipt.rows for receipt in self.built) + self.bad_rows
        return rows / self.build_seconds if rows and self.build_seconds else None

    @property
    def _failed(self) -> str:
        aside = f", {plural(self.bad_rows, 'bad row')} put aside" if self.bad_rows else ""
        names = ", ".join(f.uri.rsplit("/", 1)[-1] for f in self.failed[:3])
        return (f", {len(self.failed)} failed ({names})" if self.failed else "") + aside


class Progress(Protocol):
    """Where a driver tells how it gets on."""

    def note(self, text: str) -> None:
        """One step, for people."""

    def building(self, sizes: Mapping[int, int]) -> None:
        """Files are about to be built.

        :param sizes: their bytes, by ordinal.
        """

    def moving(self, rows: int) -> None:
        """So many rows are read of files that are not through; only told when there is progress."""

    def built(self, outcome: Receipt | Failure) -> None:
        """One of them is through."""


@dataclass
class Quiet:
    """A progress that keeps the notes and shows nothing."""

    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keep it."""
        self.notes.append(text)

    def building(self, sizes: Mapping[int, int]) -> None:
        """Ignore it."""

    def moving(self, rows: int) -> None:
        """Ignore it."""

    def built(self, outcome: Receipt | Failure) -> None:
        """Ignore it."""


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


# --- of built files ------------------------------------------------------------------------------

SMALL_BYTES: Final = 8 << 20
"""Below that a segment's tar costs more to keep track of than its rows cost to scan. Pinot's own advice is
segments of some hundred megabytes."""

MANY: Final = 20
"""Fewer are no matter."""


def notes_on(receipts: Iterable[Receipt]) -> Iterator[str]:
    """What people are told of built files, one line for each kind.

    Rows that were put aside and columns without values, each with the first file; and what small files cost:
    every file with rows is a segment of its own.
    """
    receipts = [*receipts]
    if bad := [r for r in receipts if r.bad_rows]:
        yield (
            f"{plural(sum(r.bad_rows for r in bad), 'bad row')} of {plural(len(bad), 'file')} put aside: "
            f"{bad[0].bad_rows} of {bad[0].uri} in {bad[0].bad_rows_uri}{_and_more(bad)}"
        )
    if lacking := [r for r in receipts if r.missing]:
        yield (
            f"{plural(len(lacking), 'file')} without values in columns of the table (null in all rows): "
            f"{lacking[0].uri} has none for {', '.join(lacking[0].missing)}{_and_more(lacking)}"
        )
    if len(tiny := small(receipts)) >= MANY:
        size = sum(r.outputs[0].tar_bytes for r in tiny)
        yield (
            f"{len(tiny)} files are small: they cost {len(tiny)} segments of "
            f"{size / len(tiny) / 1024:,.0f} KiB on average, where {-(-size // SMALL_BYTES)} would do; each "
            "is an upload, a record in ZooKeeper, a folder on every replica and work in every query. "
            "Merge them upstream: a file per day, say, not one per minute"
        )


def _and_more(receipts: Sequence[Receipt]) -> str:
    return f", and {len(receipts) - 1} more" if len(receipts) > 1 else ""


def small(receipts: Iterable[Receipt]) -> list[Receipt]:
    """Those whose only segment is small."""
    return [r for r in receipts if len(r.outputs) == 1 and r.outputs[0].tar_bytes < SMALL_BYTES]


def rows_put_aside(spec: TableSpec, receipts: Collection[Receipt]) -> tuple[Finding, ...]:
    """Whether rows of the files were put aside; nothing for a table that does not let them be."""
    return () if spec.ingestion.bad_row_limit is None else (rows_kept(receipts),)
