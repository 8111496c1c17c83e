"""The status of one OFFLINE table in one sentence: what it is, why, and what to do. From values alone.

Dagster shows it as the check `status` of the table's asset. Who reads a table fills `StatusFacts`: from a
look (`status_look`), or from an observation and a listing of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pinot_assets.core.check_result import CheckResult, Severity, base_name
from pinot_assets.core.text import plural
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.outdated import NO_NEED, RebuildNeed, names_of
from pinot_assets.session.values.state import Owner, Session, given_up, utc_text
from pinot_assets.session.values.trouble import has_lasted, passes, so_long, stands
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure
from pinot_assets.table_spec import TableSpec

NAME = "status"
"""Name of the check in Dagster."""
PROMISE = "The table is published as the source has it, and nothing waits for a person."


class TableCondition(StrEnum):
    """What a table is, in a word; the first that fits."""

    NOT_KNOWN = "not known"
    """ZooKeeper, the staging area or the source cannot be read."""
    FAILED = "failed"
    """Files of the session failed, or its audit did: somebody has to see to it."""
    TRIED_AGAIN = "tried again"
    """The open session has trouble that may pass by itself."""
    RUNNING = "running"
    """A run holds the lease. Dagster shows its runs itself, and here what the table is beside them."""
    UNFINISHED = "unfinished"
    """A session is open, and no run works on it."""
    HELD = "held"
    """A rollback holds files or removals back."""
    WAITING = "waiting"
    """Files wait to be published."""
    OUTDATED = "outdated"
    """Published files were built under an older table spec."""
    NOT_PUBLISHED = "not published"
    """Nothing is published yet."""
    UP_TO_DATE = "up to date"
    """The table is what its files are."""


NEEDS_PERSON: Final = frozenset((TableCondition.FAILED, TableCondition.HELD))


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """How the source differs from what is published; numbers of files that count.

    :ivar since_ms: since when the oldest change waits, epoch milliseconds; 0 if that is not known.
    """

    new: int = 0
    rewritten: int = 0
    deleted: int = 0
    since_ms: int = 0

    @property
    def total(self) -> int:
        """All changes together."""
        return self.new + self.rewritten + self.deleted

    def __str__(self) -> str:
        parts = ((self.new, "new"), (self.rewritten, "rewritten"), (self.deleted, "deleted"))
        return ", ".join(f"{number:,} {what}" for number, what in parts if number) or "no change"


NO_CHANGES = SourceChanges()


@dataclass(frozen=True, slots=True)
class StatusFacts:
    """What a table's status follows from.

    :ivar session: the open session, None if there is none.
    :ivar failures: the files that failed in its last attempt.
    :ivar gave_up: the newest session, if it published nothing and is closed (`state.given_up`).
    :ivar holder: who holds the lease.
    :ivar is_held: whether a rollback holds something back.
    :ivar held: how many files that are; 0 if it is not known.
    :ivar changes: what waits in the source.
    :ivar need: published files that the table spec would build otherwise.
    """

    table: str
    snapshot: Snapshot | None
    session: Session | None = None
    failures: Sequence[Failure] = ()
    gave_up: Session | None = None
    holder: Owner | None = None
    is_held: bool = False
    held: int = 0
    changes: SourceChanges = NO_CHANGES
    need: RebuildNeed = NO_NEED


def facts_of(
    spec: TableSpec,
    seen: Observation,
    newest: Session | None,
    changes: SourceChanges,
    need: RebuildNeed,
    held: int = 0,
) -> StatusFacts:
    """Return the facts from what was read in ZooKeeper and the staging area, and from a listing.

    :param newest: the newest session, if none is open.
    :param need: published files that the table spec would build otherwise.
    :param held: how many files the rollback holds back, 0 if it is not known.
    """
    return StatusFacts(
        spec.name,
        seen.snapshot,
        seen.session,
        seen.failures,
        given_up(newest),
        seen.holder,
        seen.pointer.hold is not None,
        held,
        changes,
        need,
    )


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The status of a table.

    :ivar what: one sentence: what it is and why.
    :ivar served: what queries see.
    :ivar do: what to do, "" if nothing is to be done.
    :ivar command: the command that does it, "" if there is none.
    :ivar runbook: the section of docs/operations.md about it, "" if nothing is to be done.
    :ivar since_ms: since when, epoch milliseconds; 0 if that is not known.
    """

    table: str
    state: TableCondition
    what: str
    served: str
    do: str = ""
    command: str = ""
    runbook: str = ""
    since_ms: int = 0

    @property
    def severity(self) -> Severity:
        """ERROR if a person has to act, else WARN; of no meaning if the table is well."""
        return Severity.ERROR if self.state in NEEDS_PERSON else Severity.WARN

    @property
    def sentence(self) -> str:
        """What it is, why, and what queries see, without what to do."""
        return f"{self.what}; {self.served}" if self.served else self.what

    def check_result(self) -> CheckResult:
        """Return the status as the result of the check `status`."""
        command = f":\n\n`{self.command}`" if self.command else ""
        return CheckResult(
            NAME,
            self.state is TableCondition.UP_TO_DATE,
            1,
            int(self.state is TableCondition.UP_TO_DATE),
            self.sentence,
            f"{self.do}{command}",
            self.severity,
            known=self.state is not TableCondition.NOT_KNOWN,
        )


def unknown_status(table: str, why: str, do: str) -> StatusReport:
    """Return the status of a table that cannot be read."""
    return StatusReport(table, TableCondition.NOT_KNOWN, f"the status of {table} is not known: {why}", "", do)


def table_status(facts: StatusFacts, now_ms: int) -> StatusReport:
    """Return the status that follows from the facts."""
    for judge in (_failed, _held, _never_published, _waiting, _behind, _outdated):
        if (status := judge(facts, now_ms)) is not None:
            return status
    assert facts.snapshot is not None  # else it was never published
    return StatusReport(
        facts.table,
        TableCondition.UP_TO_DATE,
        f"{facts.table} is published as the source has it",
        seen_by_queries(facts.snapshot),
        since_ms=facts.snapshot.published_ms,
    )


def seen_by_queries(snapshot: Snapshot | None) -> str:
    """Return what queries see: session, files, rows and when they were published."""
    if snapshot is None:
        return "queries see nothing"
    size = f"{plural(len(snapshot.ledger), 'file')}, {plural(snapshot.rows, 'row')}"
    return f"queries see {snapshot.session}: {size}, published {utc_text(snapshot.published_ms)}"


def _failed(facts: StatusFacts, now_ms: int) -> StatusReport | None:
    table, session = facts.table, facts.session or facts.gave_up
    if session is None:
        return None
    run, seen = f"pinot-assets run {table}", seen_by_queries(facts.snapshot)
    audit_shut = session.audit is not None and not session.audit.passed and not session.audit.may_pass
    if session.trouble_since_ms and has_lasted(session.trouble_since_ms, now_ms):
        lasts = so_long(session.trouble_since_ms, now_ms)
        return StatusReport(
            table,
            TableCondition.FAILED,
            f"{table} failed: the trouble has lasted {lasts}: {session.last_error}",
            seen,
            "remove the cause; sensors and `watch` then try again, or try again at once",
            run,
            "pinotassetstroublelasts",
            session.trouble_since_ms,
        )
    if facts.failures and not passes(facts.failures):
        files = plural(session.counts.get("files", len(facts.failures)), "file")
        first = facts.failures[0]
        return StatusReport(
            table,
            TableCondition.FAILED,
            f"{table} failed: {len(facts.failures):,} of {files} could not be built, first "
            f"{base_name(first.uri)} ({first.code}: {first.reason})",
            seen,
            "correct these files or delete them, then run the table; what is built is kept",
            run,
            "pinotassetssessionfailed",
            session.attempt_started_ms,
        )
    if audit_shut and session.audit is not None:
        return StatusReport(
            table,
            TableCondition.FAILED,
            f"{table} failed: the gate is shut, so nothing was switched: {session.audit.summary}",
            seen,
            "see what the audit found, correct it, then run the table",
            f"pinot-assets session show {table}",
            "pinotassetsgateshut",
            session.audit.at_ms,
        )
    if facts.session is None:
        return StatusReport(
            table,
            TableCondition.FAILED,
            f"{table} failed: {session.id} was given up: {session.last_error}",
            seen,
            "correct its files or delete them, then run the table",
            run,
            "pinotassetsfilesleftout",
            session.done_ms,
        )
    return None


def _held(facts: StatusFacts, _: int) -> StatusReport | None:
    if not facts.is_held:
        return None
    number = f"{plural(facts.held, 'file')} of the source" if facts.held else "what was taken out"
    return StatusReport(
        facts.table,
        TableCondition.HELD,
        f"{facts.table} is held by a rollback, which keeps {number} out",
        seen_by_queries(facts.snapshot),
        "has the reason for the rollback passed? End the hold",
        f"pinot-assets resume {facts.table}",
        "pinotassetsheldback",
        facts.snapshot.published_ms if facts.snapshot else 0,
    )


def _never_published(facts: StatusFacts, _: int) -> StatusReport | None:
    if facts.snapshot is not None:
        return None
    waits = f"{plural(facts.changes.new, 'file')} of the source" if facts.changes.new else "the source"
    what = f"{waits} {'waits' if facts.changes.new <= 1 else 'wait'} for a first run"
    if facts.holder is not None:
        what = f"its first run has begun, by {facts.holder}"
    elif facts.session is not None:
        what = f"its first session {facts.session.id} is open"
    return StatusReport(
        facts.table,
        TableCondition.NOT_PUBLISHED,
        f"{facts.table} was never published: {what}",
        seen_by_queries(None),
        "" if facts.holder else f"turn on the sensor `{facts.table}_files`, or run the table once",
        "" if facts.holder else f"pinot-assets run {facts.table}",
        "pinotassetschangewaits",
    )


def _waiting(facts: StatusFacts, now_ms: int) -> StatusReport | None:
    session, table = facts.session, facts.table
    if session is None or facts.holder is not None:
        return None
    if stands(session) or passes(facts.failures):
        state, since = TableCondition.TRIED_AGAIN, session.trouble_since_ms or session.attempt_started_ms
        what = f"has had trouble that may pass {so_long(since, now_ms)}: {session.last_error}"
        do = "sensors and `watch` try again, or try again at once"
    else:
        state = TableCondition.UNFINISHED
        since = max(session.created_ms, session.attempt_started_ms, session.switch_ms)
        what = f"waits: {session.id} is open in {session.state.value}, and no run works on it"
        do = "the sensor pinot_sessions continues it, or continue it at once"
    return StatusReport(
        table,
        state,
        f"{table} {what}",
        seen_by_queries(facts.snapshot),
        do,
        f"pinot-assets run {table}",
        "pinotassetssessionidle",
        since,
    )


def _behind(facts: StatusFacts, _: int) -> StatusReport | None:
    changes = facts.changes
    if not changes.total:
        return None
    # Without the age: Dagster and other stores show this sentence later, too.
    since = f" since {utc_text(changes.since_ms)}" if changes.since_ms else ""
    works = f"; a run has begun, by {facts.holder}" if facts.holder else ""
    return StatusReport(
        facts.table,
        TableCondition.WAITING,
        f"{facts.table} is behind its source{since}: {changes}{works}",
        seen_by_queries(facts.snapshot),
        "" if facts.holder else f"is the sensor `{facts.table}_files` on? Or run the table",
        "" if facts.holder else f"pinot-assets run {facts.table}",
        "pinotassetschangewaits",
        changes.since_ms,
    )


_OLDER_SPEC: Final = "segments-that-an-older-table-spec-built"


def _outdated(facts: StatusFacts, _: int) -> StatusReport | None:
    """Files that cannot be built again come first: a person has to decide about them."""
    table, need = facts.table, facts.need
    command = "" if facts.holder else f"pinot-assets rebuild {table}"
    published_ms = facts.snapshot.published_ms if facts.snapshot else 0
    if need.gone.older:
        lacking = f"the source lacks {names_of(need.gone.files, 3)}"
        return StatusReport(
            table,
            TableCondition.OUTDATED,
            f"{table}: {need.gone}, and cannot be built again, because {lacking}",
            seen_by_queries(facts.snapshot),
            "put these files back into the source and rebuild, or undo the change of the table spec",
            command,
            _OLDER_SPEC,
            published_ms,
        )
    if not need.possible.older:
        return None
    return StatusReport(
        table,
        TableCondition.OUTDATED,
        f"{table}: {need.possible}",
        seen_by_queries(facts.snapshot),
        "" if facts.holder else "look at what a rebuild takes, and rebuild",
        command,
        _OLDER_SPEC,
        published_ms,
    )
