"""Samples of an OFFLINE table from ZooKeeper and the header of its newest snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pinot_assets.audit.checks import Finding
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.metrics.family import Sample, gauge, seconds
from pinot_assets.session.detect.observe import kept_sessions
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.session.values.state import (
    AuditReceipt,
    Checked,
    Outcome,
    Owner,
    Session,
    State,
    published_audit,
)
from pinot_assets.table_spec import TableSpec, label_of

PUBLISHED_AT = gauge("last_publish_timestamp_seconds", "When the snapshot that queries see was published.")
FRESHNESS_LIMIT = gauge("freshness_limit_seconds", "How old the table may become: dagster.freshnessHours.")
PUBLISHED = {
    "files": gauge("published_files", "Files that the newest snapshot publishes."),
    "segments": gauge("published_segments", "Segments that the newest snapshot publishes."),
    "rows": gauge("published_rows", "Rows that the newest snapshot publishes."),
}
OPEN = gauge("session_open", "1 while a session is open.")
STATE = gauge("session_state", "1 for the state that the open session is in.", "state")
CREATED = gauge("session_created_timestamp_seconds", "When the open session began; absent without one.")
FAILED = gauge(
    "session_failed",
    "1 while files of the open session, or its audit, have failed, and a person has to correct them.",
)
TROUBLE = gauge(
    "session_trouble_timestamp_seconds",
    "Since when the open session has had trouble that passes; absent without any.",
)
RETRIES = gauge("session_retries", "Retries that the open session has spent.")
RETRIES_LEFT = gauge("session_retries_left", "Retries until the open session is given up.")
FILES = gauge("session_files", "Files of the open session, by their outcome.", "state")
LEASE_HELD = gauge("lease_held", "1 while a run holds the table's lease.")
LEASE_SINCE = gauge(
    "lease_acquired_timestamp_seconds", "Since when the lease is held; absent while it is free."
)
HELD_BACK = gauge("held_back_changes", "File versions and removals that a rollback holds back.")
AUDITED_AT = gauge("audit_timestamp_seconds", "When the newest audit was made.")
AUDIT_PASSED = gauge("audit_passed", "1 where the newest audit opened the gate, 0 where it kept it shut.")
CHECK_PASSED = gauge("audit_check_passed", "1 where a check of the newest audit passed.", "check")
CHECK_EXPECTED = gauge(
    "audit_check_expected",
    "The number that a check of the newest audit expected; of an assertion, the number of answers.",
    "check",
)
CHECK_FOUND = gauge(
    "audit_check_found",
    "The number that a check of the newest audit found; of an assertion, answers as expected.",
    "check",
)
SWITCH_SECONDS = gauge(
    "last_switch_duration_seconds", "From the beginning of the last published attempt to its end."
)
PHASE_SECONDS = gauge(
    "last_switch_phase_duration_seconds",
    "The same, by phase: build and stage, push and audit, end and confirm.",
    "phase",
)

_STATES = (State.INIT, State.IN_PROGRESS, State.SWITCH)
"""States of an open session."""
_FILES = {"done": "done", "failed": "failed", "pending": "pending", "gone": "gone", "removals": "removed"}
"""Name of a session's count of files -> value of the label `state`."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """What ZooKeeper holds of a table, and the header of the snapshot that the pointer names.

    :ivar session: the open session.
    :ivar sessions: the kept sessions that can be read, oldest first, the open one included.
    :ivar header: of the newest snapshot; None where nothing is published.
    """

    session: Session | None = None
    sessions: tuple[Session, ...] = ()
    holder: Owner | None = None
    header: JsonMapping | None = None
    hold: Hold = NO_HOLD


def session_samples(
    table: str, state: StoredState, max_retries: int, freshness_hours: float | None
) -> Iterator[Sample]:
    """Yield the table's samples; a number that does not exist is left out, since a zero would be wrong."""
    yield from _published(table, state, freshness_hours)
    yield from _session(table, state.session, max_retries)
    yield LEASE_HELD.of(state.holder is not None, table)
    if state.holder is not None:
        yield LEASE_SINCE.of(seconds(state.holder.since_ms), table)
    yield HELD_BACK.of(len(state.hold.files) + len(state.hold.removals), table)
    yield from _audit(table, state)
    yield from _last_switch(table, state.sessions)


def _published(table: str, state: StoredState, freshness_hours: float | None) -> Iterator[Sample]:
    if freshness_hours is not None:
        yield FRESHNESS_LIMIT.of(freshness_hours * 3600, table)
    if state.header is not None:
        counts = state.header["counts"]
        yield PUBLISHED_AT.of(seconds(state.header["publishedMs"]), table)
        yield from (family.of(counts[name], table) for name, family in PUBLISHED.items())


def _session(table: str, session: Session | None, max_retries: int) -> Iterator[Sample]:
    spent = session.retry_count if session else 0
    yield OPEN.of(session is not None, table)
    yield RETRIES.of(spent, table)
    yield RETRIES_LEFT.of(max(0, max_retries - spent), table)
    state = session.state if session else None
    yield from (STATE.of(state is one, table, one.value) for one in _STATES)
    audit_failed = session is not None and session.audit is not None and not session.audit.passed
    troubled = session is not None and session.trouble_since_ms > 0
    failed = session is not None and (session.failures is not None or audit_failed) and not troubled
    yield FAILED.of(failed, table)
    if session is not None and troubled:
        yield TROUBLE.of(seconds(session.trouble_since_ms), table)
    if session is not None:
        yield CREATED.of(seconds(session.created_ms), table)
        counts = session.counts
        yield from (FILES.of(counts.get(name, 0), table, state) for name, state in _FILES.items())


def _audit(table: str, state: StoredState) -> Iterator[Sample]:
    """Yield the audit of the open session if it was audited, else the audit of the published snapshot."""
    if (audit := _newest_audit(state)) is None:
        return
    yield AUDITED_AT.of(seconds(audit.at_ms), table)
    yield AUDIT_PASSED.of(audit.passed, table)
    for check in audit.checks:
        yield from check_samples(table, check)


def check_samples(table: str, check: Checked | Finding) -> Iterator[Sample]:
    """Yield what one check of an audit expected and found."""
    yield CHECK_PASSED.of(check.passed, table, check.name)
    yield CHECK_EXPECTED.of(check.expected, table, check.name)
    yield CHECK_FOUND.of(check.found, table, check.name)


def _newest_audit(state: StoredState) -> AuditReceipt | None:
    if state.session is not None and state.session.audit is not None:
        return state.session.audit
    return published_audit(state.header["audit"]) if state.header is not None else None


def _last_switch(table: str, sessions: tuple[Session, ...]) -> Iterator[Sample]:
    ended = [s for s in sessions if s.outcome is Outcome.PUBLISHED and s.attempt_started_ms]
    if not ended:
        return
    last = ended[-1]
    yield SWITCH_SECONDS.of(seconds(last.done_ms - last.attempt_started_ms), table)
    if last.switch_ms and last.audit is not None:
        moments = (last.attempt_started_ms, last.switch_ms, last.audit.at_ms, last.done_ms)
        for phase, begin, end in zip(("build", "push", "confirm"), moments, moments[1:], strict=False):
            # A switch that an earlier attempt's driver left is older than the attempt that ends the session.
            yield PHASE_SECONDS.of(seconds(max(0, end - begin)), table, phase)


def samples_of_store(spec: TableSpec, store: SessionStore, staging: Staging) -> list[Sample]:
    """Return the samples of what ZooKeeper holds, and of the staged objects that it names.

    :raises PinotAssetsError: a node, or the object that it names, cannot be read.
    """
    state = stored_state(store, staging)
    return [*session_samples(label_of(spec), state, spec.ingestion.max_retries, spec.dagster.freshness_hours)]


def stored_state(store: SessionStore, staging: Staging) -> StoredState:
    """Read a table's state: without the lease, and without the snapshot's rows, perhaps a million."""
    pointer = store.pointer()
    return StoredState(
        session=store.active_session(pointer),
        sessions=tuple(s for s in reversed(kept_sessions(store)) if isinstance(s, Session)),
        holder=store.holder(),
        header=staging.header(pointer.current_snapshot) if pointer.current_snapshot else None,
        hold=staging.hold(pointer.hold) if pointer.hold else NO_HOLD,
    )
