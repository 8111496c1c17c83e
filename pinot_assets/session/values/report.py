"""Reports of a trigger for the CLI, Dagster and logs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pinot_assets.audit.checks import Finding, rows_kept
from pinot_assets.core.text import plural, size
from pinot_assets.session.values.state import PushKind, Session
from pinot_assets.snapshot.receipt import Failure, Receipt, SourceFile
from pinot_assets.source.readiness import Unready, unready_words
from pinot_assets.table_spec import TableSpec

if TYPE_CHECKING:
    from pinot_assets.snapshot.published_files import PublishedFile


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

    :ivar session: the session as stored at the end; None when there was nothing to do.
    :ivar listed: number of matching files in the source.
    :ivar files: these files by URI, as listed; None when the trigger did not list.
    :ivar new: new files; with `rewritten` and `deleted`, the differences between listing and ledger.
    :ivar rebuilt: published files that it builds again under another recipe.
    :ivar built: receipts of this trigger.
    :ivar kept: files whose earlier receipt was used again.
    :ivar build_seconds: wall time of the build; 0 when nothing was to be built.
    :ivar unready: files that were left out because their upload is not over; in a WAITING report, the known
        files that the table waits for.
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
    rebuilt: tuple[str, ...] = ()
    built: tuple[Receipt, ...] = ()
    kept: int = 0
    failed: tuple[Failure, ...] = ()
    build_seconds: float = 0.0
    unready: tuple[Unready, ...] = ()
    notes: tuple[str, ...] = ()
    paused: str = ""

    @property
    def work(self) -> str:
        """What changed in the source, and what was built of it, in one line."""
        changes = f"{len(self.new):,} new, {len(self.rewritten):,} rewritten, {len(self.deleted):,} deleted"
        if self.rebuilt:
            changes += f", {len(self.rebuilt):,} to rebuild"
        kept = f", kept {self.kept:,}" if self.kept else ""
        return f"{changes}; built {len(self.built):,} of {plural(self.listed, 'file')} listed{kept}"

    @property
    def summary(self) -> str:
        """One line."""
        listed = f"{plural(self.listed, 'file')} listed"
        match self.result:
            case TriggerResult.NOTHING:
                if self.unready:
                    return f"nothing to do yet: {listed}, {unready_words(self.unready)}"
                return f"nothing to do: {listed}, all published"
            case TriggerResult.HELD:
                return (
                    "held after a rollback: nothing is published again until `resume` or a "
                    "change of the source"
                )
            case TriggerResult.NOOP:
                return f"{self.work}; no segment changes"
            case TriggerResult.FAILED:
                return f"{self.work}{self._failed}"
            case TriggerResult.STAGED:
                one_by_one = self.session is not None and self.session.push is PushKind.PLAIN
                how = "to be published one by one" if one_by_one else "staged, hidden"
                return f"{self.work}{self._failed}; {how}"
            case TriggerResult.WAITING:
                return f"waiting, nothing was changed: {unready_words(self.unready)}"
            case TriggerResult.SETTLED:
                return "finished what was interrupted, as planned; for what the source has now, plan again"
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
        """Rows per second that the build read from the files that it built; None if it built none."""
        rows = sum(receipt.rows for receipt in self.built) + self.bad_rows
        return rows / self.build_seconds if rows and self.build_seconds else None

    @property
    def _failed(self) -> str:
        aside = f", {plural(self.bad_rows, 'bad row')} put aside" if self.bad_rows else ""
        names = ", ".join(f.uri.rsplit("/", 1)[-1] for f in self.failed[:3])
        return (f", {len(self.failed):,} failed ({names})" if self.failed else "") + aside


# --- on built files ------------------------------------------------------------------------------

WARNING: Final = "warning:"
"""How a note begins that a person should not pass over."""

SMALL_BYTES: Final = 8 << 20
"""A segment whose tar is smaller costs Pinot more to manage than its rows cost to scan. Pinot recommends
segments of some hundred megabytes."""

MANY: Final = 20
"""Fewer small files are no problem."""

MANY_PUBLISHED: Final = 1_000
"""From so many small files of a table on, each further one counts: a file a minute is never many in a run."""


def notes_on(receipts: Iterable[Receipt]) -> Iterator[str]:
    """Yield notes about built files, one line for each kind.

    The kinds: bad rows put aside and columns without values, each with the first file; and the cost of small
    files, since every file with rows becomes at least one segment.
    """
    receipts = [*receipts]
    if bad := [r for r in receipts if r.bad_rows]:
        yield (
            f"{plural(sum(r.bad_rows for r in bad), 'bad row')} of {plural(len(bad), 'file')} put aside: "
            f"{bad[0].bad_rows:,} of {bad[0].uri} in {bad[0].bad_rows_uri}{_and_more(bad)}"
        )
    if lacking := [r for r in receipts if r.missing]:
        columns = lacking[0].missing
        yield (
            f"{WARNING} {', '.join(columns)}: null in every row of "
            f"{lacking[0].uri}{_and_more(lacking)}, which has no such column, or no value in it. "
            "If the file has it under another name, write that name into the table spec, or map "
            "it with `transforms`"
        )
    # Files that are small themselves were named before the build.
    if len(tiny := [r for r in small(receipts) if r.read.size >= SMALL_BYTES]) >= MANY:
        total = sum(r.outputs[0].tar_bytes for r in tiny)
        yield (
            f"{len(tiny):,} files become small segments: {len(tiny):,} of "
            f"{total / len(tiny) / 1024:,.0f} KiB on average, where {-(-total // SMALL_BYTES):,} "
            f"would be enough; {_COST}"
        )


_COST: Final = (
    "each is an upload, a record in ZooKeeper, a folder on every replica and work in every query. Write "
    "`layout: {pack: true}` beside the ingestion block (with a consistent push): then their rows share "
    "segments. Or deliver larger files: one per day, for example, not one per "
    "minute"
)


def small_files(sizes: Iterable[int], published: int = 0) -> str | None:
    """Return what many small files will cost, before they are built; None if there are few.

    :param sizes: of the files to build, in bytes.
    :param published: how many of the table's published files are small.
    """
    tiny = [one for one in sizes if 0 < one < SMALL_BYTES]
    if not tiny or (len(tiny) < MANY and len(tiny) + published < MANY_PUBLISHED):
        return None
    files = f"{plural(len(tiny), 'file')} to build of {size(sum(tiny) // len(tiny))} on average"
    if published:
        files += f", beside {plural(published, 'small file')} that the table has"
    enough = f": {len(tiny):,} or more, where {-(-sum(tiny) // SMALL_BYTES):,} would be enough"
    return f"{files}. A file is a segment or more{enough if len(tiny) >= MANY else ''}; {_COST}"


def small_published(files: Sequence[PublishedFile]) -> int:
    """Return how many published files are small."""
    import pyarrow.compute as pc  # here, because a report that counts no files needs no Arrow

    from pinot_assets.snapshot.published_files import versions_of

    sizes = versions_of(files).column("size")
    small = pc.and_(pc.greater(sizes, 0), pc.less(sizes, SMALL_BYTES))
    return int(pc.sum(small).as_py() or 0)


def _and_more(receipts: Sequence[Receipt]) -> str:
    return f", and {len(receipts) - 1:,} more" if len(receipts) > 1 else ""


def small(receipts: Iterable[Receipt]) -> list[Receipt]:
    """Return the receipts whose only segment is small."""
    return [r for r in receipts if len(r.outputs) == 1 and r.outputs[0].tar_bytes < SMALL_BYTES]


def rows_put_aside(spec: TableSpec, receipts: Collection[Receipt]) -> tuple[Finding, ...]:
    """Return the finding about bad rows put aside; none if the table spec does not allow that."""
    return () if spec.ingestion.bad_row_limit is None else (rows_kept(receipts),)
