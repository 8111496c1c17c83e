"""Source, health, REALTIME tables and runs in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.looked import looked
from fakes.monitoring.pushgateway import Numbers, numbers
from fakes.realtime.memory import S2, FakeRealtime

from pinot_assets.audit.checks import Finding
from pinot_assets.core.check_result import CheckResult, Severity, unknown
from pinot_assets.errors import PinotUnreachable
from pinot_assets.health.readings import SourceDifference
from pinot_assets.metrics import health
from pinot_assets.metrics.exposition import prometheus_text
from pinot_assets.metrics.family import Family, Sample
from pinot_assets.metrics.health import health_samples, rollback_sample
from pinot_assets.metrics.pushing import run_samples
from pinot_assets.metrics.realtime import realtime_samples
from pinot_assets.pinot.lineage import Lineage
from pinot_assets.session.values.outcome import StepRecord
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source import Fingerprint


def source_samples(
    found: SourceDifference, modified: dict[str, int], unready: dict[str, int], published_ms: int | None
) -> Iterator[Sample]:
    snapshot = None if published_ms is None else SimpleNamespace(published_ms=published_ms)
    probe = looked(difference=found, waiting_since_ms=modified, unready_since_ms=unready, snapshot=snapshot)
    return health.source_samples("t", probe)


def told(samples: Any) -> Numbers:
    """Without prefix and table."""
    found = numbers(prometheus_text(samples))
    return {
        (key[0].removeprefix("pinot_assets_"), *(text for text in key[1:] if text != "t")): value
        for key, value in found.items()
    }


# --- source ----------------------------------------------------------------------------------------


def test_changes_and_the_oldest_of_them() -> None:
    found = SourceDifference(5, missing=("a", "b"), stale=("c",), extra=("d",), held=0, unready=2)
    got = told(source_samples(found, {"a": 9000, "b": 7000, "c": 8000}, {"y": 6000, "z": 5000}, 1000))
    assert got == {
        ("source_files",): 5,
        ("source_changes", "new"): 2,
        ("source_changes", "rewritten"): 1,
        ("source_changes", "deleted"): 1,
        ("source_files_not_ready",): 2,
        ("oldest_unready_timestamp_seconds",): 5,
        ("oldest_change_timestamp_seconds",): 7,
    }


def test_a_change_waits_no_longer_than_for_the_snapshot_that_lacks_it() -> None:
    found = SourceDifference(1, missing=("a",), stale=(), extra=(), held=0, unready=0)
    assert told(source_samples(found, {"a": 1000}, {}, 5000))["oldest_change_timestamp_seconds",] == 5
    assert told(source_samples(found, {"a": 1000}, {}, None))["oldest_change_timestamp_seconds",] == 1


def test_since_when_a_file_is_not_ready() -> None:
    found = SourceDifference(1, missing=(), stale=(), extra=(), held=0, unready=1)
    name = "oldest_unready_timestamp_seconds"
    assert told(source_samples(found, {}, {"a": 1000}, 5000))[name,] == 5, "a copy may keep an old date"
    gone = told(source_samples(found, {}, {}, 5000))
    assert (gone["source_files_not_ready",], (name,) in gone) == (1, False), "no date is known of it"


def test_without_a_change_there_is_no_oldest() -> None:
    found = SourceDifference(1, missing=(), stale=(), extra=("d",), held=0, unready=0)
    assert ("oldest_change_timestamp_seconds",) not in told(source_samples(found, {}, {}, 5000))


# --- health ----------------------------------------------------------------------------------------


def test_a_failed_check_burns_at_its_severity_and_a_passed_one_at_none() -> None:
    answers = [
        CheckResult("room", False, 0, 0, "full", "buy disks", Severity.ERROR),
        CheckResult("freshness", False, 0, 0, "old", "run", Severity.WARN),
        CheckResult("replicas", True, 1, 1, "well", severity=Severity.ERROR),
    ]
    got = told(health_samples("t", answers))
    failing = {key[1:] for key, value in got.items() if key[0] == "health_check_failed" and value}
    assert failing == {("room", "error"), ("freshness", "warn")}
    assert got["health_check_failed", "replicas", "error"] == 0
    assert not any(value for key, value in got.items() if key[0] == "health_check_unknown")


def test_a_check_that_could_not_be_made_has_not_failed() -> None:
    assert told(health_samples("t", [unknown("room", "no answer", "")])) == {
        ("health_check_unknown", "room"): 1
    }


def test_packs() -> None:
    numbers = {"packs": 9, "packs_open": 3, "packs_lost": 1}
    answer = CheckResult("packs", True, 0, 0, "", numbers=numbers)
    got = told(health_samples("t", [answer]))
    assert [got["packs", kind] for kind in ("all", "open", "lost")] == [9, 3, 1]
    none = told(health_samples("t", [CheckResult("packs", True, 0, 0, "")]))
    assert not [name for name in none if name[0] == "packs"]


def test_orphans() -> None:
    keys = ("segments_visible", "segments_hidden", "session_nodes", "staged_objects", "staged_bytes")
    answer = CheckResult("orphans", True, 0, 0, "", numbers=dict(zip(keys, (1, 2, 3, 4, 5), strict=True)))
    got = told(health_samples("t", [answer]))
    kinds = ("visible_segment", "hidden_segment", "session_node", "staged_object")
    assert [got["orphans", kind] for kind in kinds] == [1, 2, 3, 4]
    assert got["orphan_staged_bytes",] == 5


def test_the_end_of_the_rollback_window() -> None:
    snapshot = SimpleNamespace(lineage_entry_id="e", published_ms=10_000)
    probe = looked(snapshot=snapshot, lineage=Lineage(), revert_window_ms=5000)
    assert told([rollback_sample("t", probe)]) == {("rollback_window_end_timestamp_seconds",): 15}


# --- REALTIME --------------------------------------------------------------------------------------


@pytest.fixture
def fake() -> FakeRealtime:
    made = FakeRealtime()
    made.segment(sequence=0, end=100)
    made.segment(sequence=1, url="", start=100, end=150)
    made.segment(sequence=2, status="COMMITTING", start=150, end=180, age_ms=60_000)
    made.segment(sequence=3, status="IN_PROGRESS", start=180, end=190, age_ms=60_000)
    return made


def test_a_realtime_table(fake: FakeRealtime) -> None:
    fake.kill(S2)
    assert told(realtime_samples("t", fake.look())) == {
        ("realtime_segments", "consuming"): 1,
        ("realtime_segments", "committing"): 1,
        ("realtime_segments", "committed"): 2,
        ("realtime_oldest_commit_age_seconds",): 60,
        ("realtime_committed_rows",): 150,
        ("realtime_committed_bytes",): 2000,
        ("realtime_segments_only_with_peers",): 1,
        ("realtime_paused",): 0,
        ("realtime_replicas_in_error",): 0,
        ("realtime_servers",): 2,
        ("realtime_servers_serving",): 1,
        ("realtime_lag_seconds",): 1,
        ("realtime_messages_to_consume",): 10,
        ("realtime_queryable_rows",): 190,
        ("realtime_pauseless_enabled",): 1,
        ("realtime_segments_in_error",): 0,
        ("realtime_segments_unrecoverable",): 0,
    }


def test_what_is_not_known_of_a_realtime_table_is_left_out(fake: FakeRealtime) -> None:
    blind = replace(fake.look(), unread={"servers": "x", "external": "y", "segments": "z"}, stream={})
    names = {key[0] for key in told(realtime_samples("t", blind))}
    assert {"realtime_segments", "realtime_servers", "realtime_replicas_in_error"}.isdisjoint(names)
    assert "realtime_pauseless_enabled" in names


# --- runs ------------------------------------------------------------------------------------------

RECEIPT = Receipt("a", 0, 1, Fingerprint(1, 2, None), "", 10, 2, (), 1.0, "")
REPORT = TriggerReport(TriggerResult.STAGED, None, 3, built=(RECEIPT, RECEIPT), kept=1, build_seconds=7.5)
GOOD = Finding("rows_as_built", True, 10, 10, "")
WARNED = replace(GOOD, name="warned", passed=False, severity=Severity.WARN)


def test_a_run() -> None:
    steps = {
        "trigger": StepRecord(9.0, REPORT),
        "audit": StepRecord(
            2.0, (None, (GOOD, replace(GOOD, name="warned", passed=False, severity=Severity.WARN)))
        ),
        "publish": StepRecord(1.0, None),
    }
    got = told(run_samples("t", steps, 1234.5))
    assert got == {
        ("run_end_timestamp_seconds",): 1234.5,
        ("run_success",): 1,
        ("run_step_duration_seconds", "trigger"): 9,
        ("run_step_duration_seconds", "audit"): 2,
        ("run_step_duration_seconds", "publish"): 1,
        ("run_build_duration_seconds",): 7.5,
        ("run_files", "built"): 2,
        ("run_files", "kept"): 1,
        ("run_files", "failed"): 0,
        ("run_rows",): 20,
        ("run_bad_rows",): 4,
        ("audit_check_passed", "rows_as_built"): 1,
        ("audit_check_expected", "rows_as_built"): 10,
        ("audit_check_found", "rows_as_built"): 10,
        ("audit_check_passed", "warned"): 0,
        ("audit_check_expected", "warned"): 10,
        ("audit_check_found", "warned"): 10,
    }


@pytest.mark.parametrize(
    "step",
    [
        StepRecord(1.0, PinotUnreachable("away")),
        StepRecord(1.0, replace(REPORT, failed=(Failure("a", 0, 1, "UNREADABLE", "so"),))),
        StepRecord(1.0, replace(REPORT, result=TriggerResult.FAILED)),
        StepRecord(1.0, (None, (replace(GOOD, passed=False),))),
    ],
)
def test_a_run_that_failed(step: StepRecord) -> None:
    assert (
        told(run_samples("t", {"trigger": StepRecord(1.0, REPORT), "last": step}, 1.0))["run_success",] == 0
    )


# --- families --------------------------------------------------------------------------------------


def test_a_sample_has_exactly_the_labels_of_its_family() -> None:
    family = Family("pinot_assets_x", "X.", ("table", "state"))
    assert family.of(True, "t", "s") == Sample(family, ("t", "s"), 1.0)
    with pytest.raises(ValueError, match="has the labels"):
        family.of(1, "t")


def test_of_two_samples_with_the_same_labels_the_last_is_told() -> None:
    family = Family("pinot_assets_x", "X.", ("table",))
    assert told([family.of(1, "t"), family.of(2, "t")]) == {("x",): 2}


def test_a_table_may_be_called_anything() -> None:
    family = Family("pinot_assets_x", "X.", ("table",))
    odd = 'a"b\\c\nd'
    assert numbers(prometheus_text([family.of(1, odd)])) == {("pinot_assets_x", odd): 1}
