"""What a trigger did, as values for the CLI, Dagster metadata and logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from pinot_assets.core.text import plural
from pinot_assets.session.values.state import PushKind, Session
from pinot_assets.snapshot.fingerprint import SourceFile
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source.readiness import Unready, told


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
    :ivar notes: what else a person should know (settled switches, swept strays, …).
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
        match self.result:
            case TriggerResult.NOTHING:
                if self.unready:
                    return f"nothing to do yet: {plural(self.listed, 'file')} listed, {told(self.unready)}"
                return f"nothing to do: {plural(self.listed, 'file')} listed, all published"
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
                return f"waiting, nothing was changed: {told(self.unready)}"
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
        ...

    def building(self, sizes: Mapping[int, int]) -> None:
        """Files are about to be built.

        :param sizes: their bytes, by ordinal.
        """
        ...

    def moving(self, rows: int) -> None:
        """So many rows are read of files that are not through; only told when there is progress."""
        ...

    def built(self, outcome: Receipt | Failure) -> None:
        """One of them is through."""
        ...


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
