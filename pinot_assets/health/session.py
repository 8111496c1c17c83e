"""Whether the open session gets on, and how many retries it has left."""

from __future__ import annotations

from pinot_assets.core.check_result import (
    HOUR_MS,
    CheckProblem,
    CheckResult,
    Severity,
    check_result_of,
    hours,
)
from pinot_assets.core.text import counted
from pinot_assets.session.values.state import Owner, Session, State, utc_text
from pinot_assets.session.values.trouble import has_lasted

NAME = "session_progress"

OLDEST_MS = 24 * HOUR_MS
"""An open session older than this holds back a day of changes."""

IDLE_MS = HOUR_MS
"""For so long nobody may hold the lease of a session in which nothing failed: its driver died."""

HELD_MS = 24 * HOUR_MS
"""Nobody should hold a lease for longer: a driver that hangs keeps its heartbeat (rule R25)."""


def session_progress(
    table: str, session: Session | None, holder: Owner | None, max_retries: int, now_ms: int
) -> CheckResult:
    """No open session failed, waits for nobody or grows old; no lease is held for ever.

    :param session: the open one.
    :param holder: who holds the lease.
    """
    run = f"run {table} (`pinot-assets run {table}`)"
    problems: list[CheckProblem] = []
    age_ms = now_ms - session.created_ms if session else 0
    held_ms = now_ms - holder.since_ms if holder else 0
    left = max(0, max_retries - session.retry_count) if session else max_retries
    if session is not None:
        audit_failed = session.audit is not None and not session.audit.passed
        if session.trouble_since_ms:
            if has_lasted(session.trouble_since_ms, now_ms):
                problems.append(_trouble(table, session, now_ms))
        elif session.failures is not None or audit_failed:
            what = "failed its audit" if audit_failed else "has files that failed"
            problems.append(
                CheckProblem(
                    f"{session.id} {what}, {counted(left, 'retry', 'retries')} left: {session.last_error}",
                    _way_on(session, max_retries, run),
                )
            )
        elif holder is None and now_ms - _last_step_ms(session) > IDLE_MS:
            idle = hours(now_ms - _last_step_ms(session))
            what = f"{session.id} stands in {session.state.value} and nobody has worked on it for {idle} h"
            problems.append(CheckProblem(what, f"its driver died: {run}, it goes on from what is stored"))
        if age_ms > OLDEST_MS:
            what = f"{session.id} has been open for {hours(age_ms)} h"
            problems.append(CheckProblem(what, f"`pinot-assets status {table}` says why; then {run}"))
    if holder is not None and held_ms > HELD_MS:
        what = f"the lease has been held for {hours(held_ms)} h by {holder}"
        problems.append(
            CheckProblem(what, "does that run still work? End it: the lease goes with its process")
        )
    return check_result_of(
        NAME,
        problems,
        expected=max_retries,
        found=session.retry_count if session else 0,
        good=_good(session),
        numbers={
            "session_open": int(session is not None),
            "session_in_switch": int(session is not None and session.state is State.SWITCH),
            "session_age_hours": hours(age_ms),
            "retries_left": left,
            "files_failed": session.counts.get("failed", 0) if session else 0,
            "trouble_hours": hours(now_ms - session.trouble_since_ms)
            if session and session.trouble_since_ms
            else 0,
            "lease_held_hours": hours(held_ms),
        },
    )


def _trouble(table: str, session: Session, now_ms: int) -> CheckProblem:
    return CheckProblem(
        f"{session.id} has had trouble for {hours(now_ms - session.trouble_since_ms)} h that should have "
        f"passed by itself: {session.last_error}",
        f"see to the cause; {table} is tried again every 15 minutes where its sensors or a watch run, "
        "and spends no retry",
        Severity.ERROR,
    )


def _good(session: Session | None) -> str:
    if session is None:
        return "no session is open"
    if session.trouble_since_ms:
        since = utc_text(session.trouble_since_ms)
        return f"{session.id} has had trouble that may pass since {since}: {session.last_error}"
    return f"{session.id} is in {session.state.value} and gets on"


def _way_on(session: Session, most: int, run: str) -> str:
    audit = session.audit
    if session.failures is None and audit is not None and audit.waits:
        if audit.of_data:
            return f"repair the files, or change what `audit:` asks for, then {run}: no retry is spent"
        by_itself = "sensors and `watch` do it by themselves"
        return f"see to what it names, then {run} ({by_itself}): nothing is built again"
    if session.retry_count < most:
        return f"repair the files or take them away, then {run}: only they are built again"
    return (
        f"repair the files, raise consistentPushMaxRetries (now {most}), then {run}: "
        "without a retry left it starts over and builds every file again"
    )


def _last_step_ms(session: Session) -> int:
    return max(session.created_ms, session.attempt_started_ms, session.switch_ms)
