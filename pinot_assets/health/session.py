"""Checks whether the open session makes progress, and how many retries it has left."""

from __future__ import annotations

from collections.abc import Iterator

from pinot_assets.core.check_result import (
    HOUR_MS,
    CheckProblem,
    CheckResult,
    Severity,
    hours,
    problem_if,
    result_of,
)
from pinot_assets.core.text import counted
from pinot_assets.health.check import check
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.session.values.state import Session, State, utc_text
from pinot_assets.session.values.trouble import has_lasted

OLDEST_MS = 24 * HOUR_MS
"""Age from which an open session is too old: it holds back a day of changes."""

IDLE_MS = HOUR_MS
"""How long the lease of a session without failures may be free: then its driver has died."""

HELD_MS = 24 * HOUR_MS
"""How long a lease may be held: a driver that hangs keeps its heartbeat (rule R25)."""


@check("An open session makes progress and has retries left.")
def session_progress(probe: TableProbe) -> CheckResult:
    """The open session has not failed, is worked on and not too old; no lease is held for too long."""
    session, holder, now_ms = probe.session(), probe.holder(), probe.now_ms
    max_retries = probe.spec.ingestion.max_retries
    run = f"run {probe.spec.name} (`pinot-assets run {probe.spec.name}`)"
    held_ms = now_ms - holder.since_ms if holder else 0
    trouble_ms = now_ms - session.trouble_since_ms if session and session.trouble_since_ms else 0
    return result_of(
        [
            *(_of_session(session, probe, run) if session else ()),
            *problem_if(
                held_ms > HELD_MS,
                f"the lease has been held for {hours(held_ms)} h by {holder}",
                "does that run still work? End it: the lease ends with its process",
            ),
        ],
        expected=max_retries,
        found=session.retry_count if session else 0,
        good=_good(session),
        numbers={
            "session_open": int(session is not None),
            "session_in_switch": int(session is not None and session.state is State.SWITCH),
            "session_age_hours": hours(now_ms - session.created_ms if session else 0),
            "retries_left": max(0, max_retries - (session.retry_count if session else 0)),
            "files_failed": session.counts.get("failed", 0) if session else 0,
            "trouble_hours": hours(trouble_ms),
            "lease_held_hours": hours(held_ms),
        },
    )


def _of_session(session: Session, probe: TableProbe, run: str) -> Iterator[CheckProblem]:
    now_ms, most = probe.now_ms, probe.spec.ingestion.max_retries
    age_ms = now_ms - session.created_ms
    idle_ms = now_ms - max(session.created_ms, session.attempt_started_ms, session.switch_ms)
    audit_failed = session.audit is not None and not session.audit.passed
    if session.trouble_since_ms:
        yield from problem_if(
            has_lasted(session.trouble_since_ms, now_ms),
            f"{session.id} has had trouble for {hours(now_ms - session.trouble_since_ms)} h that "
            f"time alone should have mended: {session.last_error}",
            f"remove the cause; sensors or a watch try {probe.spec.name} again every 15 minutes, "
            "without spending a retry",
            Severity.ERROR,
        )
    elif session.failures is not None or audit_failed:
        what = "failed its audit" if audit_failed else "has files that failed"
        left = counted(max(0, most - session.retry_count), "retry", "retries")
        text = f"{session.id} {what}, {left} left: {session.last_error}"
        yield CheckProblem(text, _way_on(session, most, run))
    elif probe.holder() is None and idle_ms > IDLE_MS:
        yield CheckProblem(
            f"{session.id} is in {session.state.value}, and no run has worked on it for {hours(idle_ms)} h",
            f"its driver died: {run}, which continues from what is stored",
        )
    yield from problem_if(
        age_ms > OLDEST_MS,
        f"{session.id} has been open for {hours(age_ms)} h",
        f"`pinot-assets status {probe.spec.name}` shows why; then {run}",
    )


def _good(session: Session | None) -> str:
    if session is None:
        return "no session is open"
    if session.trouble_since_ms:
        since = utc_text(session.trouble_since_ms)
        return f"{session.id} has had trouble that may pass since {since}: {session.last_error}"
    return f"{session.id} is in {session.state.value} and makes progress"


def _way_on(session: Session, most: int, run: str) -> str:
    audit = session.audit
    if session.failures is None and audit is not None and audit.waits:
        if audit.of_data:
            return f"correct the files, or change `audit:` in the table spec, then {run}: no retry is spent"
        by_itself = "sensors and `watch` do so, too"
        return f"correct what it names, then {run} ({by_itself}): nothing is built again"
    if session.retry_count < most:
        return f"correct the files or delete them, then {run}: only they are built again"
    return (
        f"correct the files, raise consistentPushMaxRetries (now {most}), then {run}: without a "
        "retry left it starts over and builds every file again"
    )
