"""An open session gets on, and has retries left."""

from __future__ import annotations

from dataclasses import replace

from fakes.looked import looked

from pinot_assets.core.check_result import HOUR_MS, CheckResult, Severity
from pinot_assets.health import session
from pinot_assets.session.values.state import AuditReceipt, Mode, ObjectRef, Owner, Session, State

NOW = 100 * HOUR_MS
REF = ObjectRef("p", "h")
SESSION = Session("cp2-bbbbbb", 2, Mode.SYNC, "c", NOW - HOUR_MS // 2, REF, state=State.IN_PROGRESS)
FAILED = replace(SESSION, failures=REF, retry_count=1, last_error="2 files failed", counts={"failed": 2})


def session_progress(opened: Session | None, holder: Owner | None, retries: int) -> CheckResult:
    return session.session_progress(looked(NOW, max_retries=retries, session=opened, holder=holder))


def owner(hours: float) -> Owner:
    return Owner("run-1", "host", 1, int(NOW - hours * HOUR_MS))


def test_no_session_and_a_young_one_pass() -> None:
    assert session_progress(None, None, 3).passed
    answer = session_progress(SESSION, owner(0.5), 3)
    assert (answer.passed, answer.expected, answer.found) == (True, 3, 0)
    assert answer.numbers["session_age_hours"] == 0.5


def test_failed_files_and_the_retries_that_are_left() -> None:
    answer = session_progress(FAILED, None, 3)
    assert not answer.passed
    assert "2 retries left: 2 files failed" in answer.message
    assert "only they are built again" in answer.next_step
    assert (answer.numbers["retries_left"], answer.numbers["files_failed"]) == (2, 2)


def test_without_a_retry_left_the_key_is_named() -> None:
    answer = session_progress(FAILED, None, 1)
    assert "consistentPushMaxRetries" in answer.next_step
    assert answer.numbers["retries_left"] == 0


def test_a_failed_audit() -> None:
    audit = AuditReceipt(1, "h", False, NOW, "replicas", waits=True, of_data=True)
    answer = session_progress(replace(SESSION, audit=audit, state=State.SWITCH), None, 3)
    assert "failed its audit" in answer.message
    assert "or change `audit:` in the table spec" in answer.next_step
    # Servers that are down are nobody's fault: there is no file to repair.
    servers = replace(SESSION, audit=replace(audit, of_data=False), state=State.SWITCH)
    answer = session_progress(servers, None, 3)
    assert "nothing is built again" in answer.next_step
    assert answer.numbers["session_in_switch"] == 1


def test_a_session_that_nobody_works_on() -> None:
    left = replace(SESSION, created_ms=NOW - 3 * HOUR_MS, attempt_started_ms=NOW - 2 * HOUR_MS)
    answer = session_progress(left, None, 3)
    assert "no run has worked on it for 2.0 h" in answer.message
    assert "driver died" in answer.next_step
    assert session_progress(left, owner(2), 3).passed


def test_a_session_that_grows_old() -> None:
    old = replace(SESSION, created_ms=NOW - 30 * HOUR_MS, attempt_started_ms=NOW)
    answer = session_progress(old, owner(1), 3)
    assert "open for 30.0 h" in answer.message
    assert "pinot-assets status t" in answer.next_step


def test_a_lease_that_is_held_for_ever() -> None:
    answer = session_progress(None, owner(25), 3)
    assert "held for 25.0 h by run-1 on host" in answer.message


def test_trouble_that_passes_by_itself_is_red_after_an_hour_with_cause_and_age() -> None:
    error = "1 file failed; s3://b/F3: it does not exist any more"
    young = replace(FAILED, last_error=error, trouble_since_ms=NOW - HOUR_MS + 1)
    answer = session_progress(young, None, 0)
    assert answer.passed
    assert "trouble that may pass since" in answer.message
    assert error in answer.message
    old = replace(young, trouble_since_ms=NOW - HOUR_MS)
    answer = session_progress(old, None, 0)
    assert (answer.passed, answer.severity, answer.numbers["trouble_hours"]) == (False, Severity.ERROR, 1)
    assert f"has had trouble for 1.0 h that time alone should have mended: {error}" in answer.message
    assert "without spending a retry" in answer.next_step


def test_a_store_that_ends_every_build_is_told_in_the_same_way() -> None:
    lasting = replace(SESSION, trouble_since_ms=NOW - 2 * HOUR_MS, last_error="s3://b does not answer")
    answer = session_progress(lasting, None, 3)
    assert not answer.passed
    assert "for 2.0 h" in answer.message
    assert "s3://b does not answer" in answer.message
