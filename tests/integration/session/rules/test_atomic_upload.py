"""`enableAtomicUpload`, StarTree's older switch for sync: one run, one entry, no retries (edge case E16)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pinot_assets.errors import SnapshotIncomplete
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome, PushKind, State

pytestmark = pytest.mark.integration

ATOMIC = {"consistentPushEnabled": False, "enableAtomicUpload": True}


@pytest.fixture
def atomic(make_world: Callable[..., Any]) -> Any:
    world = make_world("sync", **ATOMIC)  # with three retries, which it does not have
    world.write("P1", "Q", F1="F1old")
    world.run()
    world.remove("Q")
    world.write("F1", "F2", "F3")
    world.watch_anew()
    return world


def test_e16_a_run_that_succeeds_switches_at_one_instant(atomic: Any) -> None:
    atomic.run()
    assert atomic.shown == [("F1old", "P1", "Q"), ("F1", "F2", "F3", "P1")]
    last = atomic.read_sessions()[-1]
    assert (last.push, last.state, last.outcome) == (PushKind.ATOMIC, State.DONE, Outcome.PUBLISHED)
    assert len(list(atomic.pinot.lineage(atomic.table))) == 2  # one entry per run
    atomic.assert_settled()


def test_e16_after_a_failed_file_nothing_stays_and_the_next_run_starts_over(atomic: Any) -> None:
    atomic.builder.failing = {"F3"}
    report = atomic.run()
    assert report.result is TriggerResult.FAILED
    assert atomic.read_session() is None
    failed = atomic.read_sessions()[-1]
    assert (failed.outcome, failed.retry_count) == (Outcome.ABANDONED_RETRIES, 0)
    assert not any(failed.id in info.key for info in atomic.staging.store.list("segments"))
    assert list(atomic.staging.store.list(f"sessions/{failed.id}/files")) == []
    atomic.assert_settled()
    atomic.builder.failing = set()
    atomic.run()
    assert atomic.built == ["F1", "F2", "F3"]
    assert atomic.shown == [("F1old", "P1", "Q"), ("F1", "F2", "F3", "P1")]
    assert atomic.read_sessions()[-1].retry_count == 0


def test_e16_the_gate_still_tells_why_the_run_failed(atomic: Any) -> None:
    atomic.builder.failing = {"F3"}
    atomic.trigger()
    _, (finding,) = atomic.audit()
    assert (finding.name, finding.found, finding.expected) == ("files_built", 2, 3)
    assert finding.blocks
    with pytest.raises(SnapshotIncomplete, match="could not be built"):
        atomic.publish()


def test_e16_after_a_failed_audit_nothing_stays(atomic: Any) -> None:
    report = atomic.trigger()
    atomic.pinot.break_replica(atomic.table, report.built[0].outputs[0].segment)
    _, findings = atomic.audit()
    assert any(f.blocks for f in findings)
    assert atomic.read_session() is None
    atomic.assert_settled()
    assert not any("cp2" in name for name in atomic.pinot.all_segments(atomic.table))
    atomic.run()
    assert atomic.built == ["F1", "F2", "F3"]
    assert atomic.shown == [("F1old", "P1", "Q"), ("F1", "F2", "F3", "P1")]


def test_e16_consistent_push_wins(atomic: Any) -> None:
    atomic.options["consistentPushEnabled"] = True
    atomic.builder.failing = {"F3"}
    atomic.run()
    open_session = atomic.read_session()
    assert open_session.push is PushKind.CONSISTENT
    atomic.builder.failing = set()
    atomic.run()
    assert atomic.built == ["F3"]
    assert (atomic.read_sessions()[-1].id, atomic.read_sessions()[-1].retry_count) == (open_session.id, 1)


def test_e16_in_append_it_is_a_plain_push(make_world: Callable[..., Any]) -> None:
    world = make_world("append", **ATOMIC)
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    world.run()
    assert world.visible == ["F1"]
    assert world.read_sessions()[-1].push is PushKind.PLAIN


def test_a_run_that_died_is_gone_on_with(atomic: Any) -> None:
    """It did not fail: what is built is not built again (invariant I13)."""
    atomic.builder.die_after = 2
    atomic.dies()
    atomic.run()
    assert atomic.built == ["F3"]
    assert atomic.shown == [("F1old", "P1", "Q"), ("F1", "F2", "F3", "P1")]
