"""A table that shows everything that metrics can show: at least one sample of each family."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import asdict
from types import SimpleNamespace

from fakes.looked import looked
from fakes.realtime.memory import FakeRealtime

from pinot_assets import health
from pinot_assets.audit.checks import Finding
from pinot_assets.core.check_result import CheckResult, Severity, unknown
from pinot_assets.health.readings import SourceDifference
from pinot_assets.metrics.collector import Collector, ScrapePart
from pinot_assets.metrics.family import Sample
from pinot_assets.metrics.health import LEFT_OUT, health_samples, rollback_sample, source_samples
from pinot_assets.metrics.pushing import run_samples
from pinot_assets.metrics.realtime import realtime_samples
from pinot_assets.metrics.session import StoredState, session_samples
from pinot_assets.pinot.lineage import Lineage
from pinot_assets.realtime.health.all_checks import CHECKS as OF_STREAMS
from pinot_assets.session.values.outcome import StepRecord
from pinot_assets.session.values.report import TriggerReport, TriggerResult
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

NOW_MS = 1_700_000_000_000
ORPHANS = ("segments_visible", "segments_hidden", "session_nodes", "staged_objects", "staged_bytes")


def every_sample() -> Iterator[Sample]:
    """All of them, through the collector where that is their way."""
    collector = Collector(lambda _: None)
    parts = [
        ScrapePart("t", "session", lambda: [*session_samples("t", _stored_state(), 3, 24.0)]),
        ScrapePart("t", "health", lambda: [*_health(), *_source()]),
        ScrapePart("r_REALTIME", "realtime", lambda: [*_stream()]),
        ScrapePart("away", "session", _away),
    ]
    stopped = threading.Event()
    stopped.set()
    collector.look_for_ever(parts, 30, stopped)  # tells how often
    collector.look(parts)
    yield from collector.samples()
    yield from run_samples("t", run_steps(), NOW_MS / 1000)


def _away() -> list[Sample]:
    raise OSError("no answer")


def _stored_state() -> StoredState:
    audit = AuditReceipt(1, "00", True, NOW_MS + 2, "", checks=(Checked("rows_as_built", True, 1, 1),))
    done = Session(
        "cp1-aaaaaa",
        1,
        Mode.SYNC,
        "f",
        NOW_MS,
        ObjectRef("k", "0"),
        State.DONE,
        Outcome.PUBLISHED,
        attempt_started_ms=NOW_MS,
        switch_ms=NOW_MS + 1,
        done_ms=NOW_MS + 3,
        audit=audit,
    )
    opened = Session(
        "cp2-bbbbbb",
        2,
        Mode.SYNC,
        "f",
        NOW_MS,
        ObjectRef("k", "0"),
        State.IN_PROGRESS,
        trouble_since_ms=NOW_MS,
    )
    header = {
        "publishedMs": NOW_MS,
        "counts": {"files": 1, "segments": 1, "rows": 1},
        "audit": asdict(audit),
    }
    return StoredState(opened, (done, opened), Owner("run", "host", 1, NOW_MS), header)


def _source() -> Iterator[Sample]:
    difference = SourceDifference(3, missing=("a",), stale=("b",), extra=("c",), held=0, unready=1)
    probe = looked(
        difference=difference,
        waiting_since_ms={"a": NOW_MS, "b": NOW_MS},
        unready_since_ms={"d": NOW_MS},
        snapshot=SimpleNamespace(published_ms=NOW_MS),
    )
    yield from (
        *source_samples("t", probe),
        LEFT_OUT.of(1, "t"),
    )


def _health() -> Iterator[Sample]:
    numbers = dict.fromkeys((*ORPHANS, "packs", "packs_open", "packs_lost"), 1.0)
    answers = [
        CheckResult(c.name, False, 0, 0, "", severity=Severity.ERROR, numbers=numbers) for c in health.CHECKS
    ]
    yield from health_samples("t", [*answers, unknown("room", "no answer", "")])
    snapshot = SimpleNamespace(lineage_entry_id="e", published_ms=NOW_MS)
    yield rollback_sample("t", looked(snapshot=snapshot, lineage=Lineage(), revert_window_ms=1000))


def _stream() -> Iterator[Sample]:
    fake = FakeRealtime()
    fake.segment(sequence=0, end=100)
    fake.segment(sequence=1, status="COMMITTING", start=100, end=150, age_ms=60_000)
    fake.segment(sequence=2, status="IN_PROGRESS", start=150, end=160, age_ms=60_000)
    yield from realtime_samples("r_REALTIME", fake.look())
    yield from health_samples("r_REALTIME", [CheckResult(c.name, True, 0, 0, "") for c in OF_STREAMS])


def run_steps() -> dict[str, StepRecord]:
    """Of a run of `t`, with a build and an audit."""
    return {
        "trigger": StepRecord(1.0, TriggerReport(TriggerResult.STAGED, None, 1)),
        "audit": StepRecord(1.0, (None, (Finding("files_built", True, 1, 1, ""),))),
    }
