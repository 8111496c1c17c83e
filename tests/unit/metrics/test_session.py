"""What a table's sessions say in numbers."""

from __future__ import annotations

from dataclasses import asdict, replace

from fakes.monitoring.pushgateway import Numbers, numbers

from pinot_assets.core.json_object import JsonObject
from pinot_assets.metrics.exposition import prometheus_text
from pinot_assets.metrics.session import StoredState, session_samples
from pinot_assets.session.values.hold import Hold
from pinot_assets.session.values.state import (
    AuditReceipt,
    Checked,
    Mode,
    ObjectRef,
    Outcome,
    Owner,
    Session,
    State,
)

T0 = 1_700_000_000_000
AUDIT = AuditReceipt(
    1, "00", False, T0 + 5000, "one row is lost", checks=(Checked("rows_as_built", False, 10, 9),)
)
SESSION = Session(
    "cp2-bbbbbb",
    2,
    Mode.SYNC,
    "f",
    T0,
    ObjectRef("k", "0"),
    State.SWITCH,
    retry_count=1,
    attempt_started_ms=T0 + 1000,
    switch_ms=T0 + 3000,
    counts={"done": 3, "failed": 2, "files": 6, "gone": 0, "pending": 1, "removals": 4},
)
DONE = replace(
    SESSION, state=State.DONE, outcome=Outcome.PUBLISHED, done_ms=T0 + 9000, audit=replace(AUDIT, passed=True)
)
HEADER: JsonObject = {
    "publishedMs": T0,
    "counts": {"files": 3, "segments": 4, "rows": 50},
    "audit": asdict(replace(AUDIT, passed=True)),
}


def told(seen: StoredState, freshness_hours: float | None = None) -> Numbers:
    """Without the prefix and the table."""
    found = numbers(prometheus_text(session_samples("t", seen, 3, freshness_hours)))
    assert all(key[0].startswith("pinot_assets_") and "t" in key for key in found)
    return {
        (key[0].removeprefix("pinot_assets_"), *(text for text in key[1:] if text != "t")): value
        for key, value in found.items()
    }


def test_a_table_without_anything_has_no_zeros_in_place_of_times() -> None:
    found = told(StoredState())
    assert found == {
        ("session_open",): 0,
        ("session_failed",): 0,
        ("session_retries",): 0,
        ("session_retries_left",): 3,
        ("session_state", "INIT"): 0,
        ("session_state", "IN_PROGRESS"): 0,
        ("session_state", "SWITCH"): 0,
        ("lease_held",): 0,
        ("held_back_changes",): 0,
    }


def test_what_is_published() -> None:
    found = told(StoredState(header=HEADER), freshness_hours=2)
    assert found["last_publish_timestamp_seconds",] == T0 / 1000
    assert [found[f"published_{what}",] for what in ("files", "segments", "rows")] == [3, 4, 50]
    assert found["freshness_limit_seconds",] == 7200


def test_an_open_session() -> None:
    found = told(StoredState(session=SESSION, sessions=(DONE, SESSION)))
    assert found["session_open",] == 1
    assert found["session_state", "SWITCH"] == 1
    assert found["session_state", "IN_PROGRESS"] == 0
    assert found["session_created_timestamp_seconds",] == T0 / 1000
    assert (found["session_retries",], found["session_retries_left",]) == (1, 2)
    states = ("done", "failed", "pending", "gone", "removed")
    assert [found["session_files", state] for state in states] == [3, 2, 1, 0, 4]
    assert found["session_failed",] == 0


def test_files_are_those_of_an_open_session() -> None:
    cleared = replace(SESSION, state=State.DONE, outcome=Outcome.CLEARED)
    assert not any(key[0] == "session_files" for key in told(StoredState(sessions=(DONE, cleared))))


def test_files_or_an_audit_that_failed_make_a_session_fail() -> None:
    assert told(StoredState(session=replace(SESSION, failures=ObjectRef("f", "0"))))["session_failed",] == 1
    assert told(StoredState(session=replace(SESSION, audit=AUDIT)))["session_failed",] == 1
    assert (
        told(StoredState(session=replace(SESSION, audit=replace(AUDIT, passed=True))))["session_failed",] == 0
    )


def test_trouble_that_passes_by_itself_is_no_failure_and_says_since_when() -> None:
    troubled = replace(SESSION, failures=ObjectRef("f", "0"), trouble_since_ms=T0 + 1000)
    found = told(StoredState(session=troubled))
    assert (found["session_failed",], found["session_trouble_timestamp_seconds",]) == (0, T0 / 1000 + 1)
    assert ("session_trouble_timestamp_seconds",) not in told(StoredState(session=SESSION))


def test_the_newest_audit_is_the_open_sessions() -> None:
    found = told(StoredState(session=replace(SESSION, audit=AUDIT), header=HEADER))
    assert found["audit_passed",] == 0
    assert found["audit_timestamp_seconds",] == T0 / 1000 + 5
    of_check = [found[f"audit_check_{what}", "rows_as_built"] for what in ("passed", "expected", "found")]
    assert of_check == [0, 10, 9]


def test_before_a_session_is_audited_that_of_what_is_published_counts() -> None:
    assert told(StoredState(session=SESSION, header=HEADER))["audit_passed",] == 1


def test_a_snapshot_of_an_older_release_has_an_audit_without_checks() -> None:
    old = {key: value for key, value in HEADER["audit"].items() if key != "checks"}
    found = told(StoredState(header={**HEADER, "audit": old}))
    assert found["audit_passed",] == 1
    assert not any(key[0].startswith("audit_check") for key in found)
    assert ("audit_passed",) not in told(StoredState(header={**HEADER, "audit": {}}))


def test_a_snapshot_of_a_rollback_has_none() -> None:
    back = {"rolledBack": "cp2-bbbbbb", "way": "revert", "source": {"key": "k", "sha256": "0"}}
    assert ("audit_passed",) not in told(StoredState(header={**HEADER, "audit": back}))


def test_the_last_switch_by_phase() -> None:
    given_up = replace(DONE, outcome=Outcome.ABANDONED_RETRIES, done_ms=T0 + 99_000)
    found = told(StoredState(sessions=(DONE, given_up)))
    assert found["last_switch_duration_seconds",] == 8
    phases = [found["last_switch_phase_duration_seconds", phase] for phase in ("build", "push", "confirm")]
    assert phases == [2, 2, 4]


def test_a_switch_that_an_earlier_attempt_wrote_has_no_negative_phase() -> None:
    late = replace(DONE, attempt_started_ms=T0 + 4000)
    assert told(StoredState(sessions=(late,)))["last_switch_phase_duration_seconds", "build"] == 0


def test_lease_and_hold() -> None:
    found = told(
        StoredState(holder=Owner("run", "host", 1, T0), hold=Hold(files={"a": "1"}, removals=("b", "c")))
    )
    assert (found["lease_held",], found["lease_acquired_timestamp_seconds",]) == (1, T0 / 1000)
    assert found["held_back_changes",] == 3
