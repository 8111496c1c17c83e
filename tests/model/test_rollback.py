"""A rollback does what was shown, or nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.world.process import Kind, Trouble
from model.world.specs import spec_of
from model.world.table import TABLE, ModelTable, run

from pinot_assets.errors import RollbackRefused
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.rendering import way_lines
from pinot_assets.session.rollback.rollback_plan import RollbackPlan
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import snapshot_headers, snapshot_refs
from pinot_assets.table_spec.blocks.audit import Assertion, Audit


@pytest.fixture
def table() -> ModelTable:
    """Two switches."""
    table = ModelTable(spec_of, "sync")
    for content in ("A0", "A1"):
        table.source.write("A", content.encode())
        table.start(run)
    return table


def _open_session(table: ModelTable) -> None:
    """One of three files cannot be read: the session waits with the two others built."""
    for name, content in (("A", "A2"), ("B", "!"), ("C", "C0")):
        table.source.write(name, content.encode())
    table.start(run)


def _shown(table: ModelTable) -> RollbackPlan:
    plans: list[RollbackPlan] = []
    table.start(lambda driver: plans.append(driver.rollback_plan("1")))
    return plans[0]


def _roll_back(table: ModelTable, shown: RollbackPlan) -> BaseException | None:
    def rollback(driver: Driver) -> None:
        driver.rollback("1", shown)

    return table.start(rollback).process.error


def test_the_open_session_that_it_drops_is_shown(table: ModelTable) -> None:
    assert _shown(table).drops is None
    _open_session(table)
    shown = _shown(table)
    assert shown.drops is not None
    assert shown.drops.id == table.truth.open_session
    text = dict(way_lines(shown, table.now_ms))["drops"]
    assert text == f"open session {shown.drops.id}, 3 files: 2 done, 1 failed; what it built is deleted"
    assert _roll_back(table, shown) is None
    assert not table.truth.open_session
    assert not [info.key for info in table.staging.list("segments") if "__cp3-" in info.key]


def test_a_session_that_was_opened_since_is_not_dropped(table: ModelTable) -> None:
    shown = _shown(table)
    _open_session(table)
    opened = table.truth.open_session
    error = _roll_back(table, shown)
    assert isinstance(error, RollbackRefused)
    assert f"session {opened} is open" in str(error)
    assert table.truth.open_session == opened


def test_a_table_that_was_switched_since_is_not_taken_back(table: ModelTable) -> None:
    shown = _shown(table)
    table.source.write("A", b"A2")
    table.start(run)
    error = _roll_back(table, shown)
    assert isinstance(error, RollbackRefused)
    assert "has changed since the plan of the rollback was shown" in str(error)
    assert not table.truth.violations


def test_a_segment_that_came_since_is_not_taken_away(table: ModelTable) -> None:
    """Of a swap table all goes that is visible: somebody else's, too, of which nobody here has a tar."""
    table = ModelTable(spec_of, "swap")
    for content in ("A0", "A1"):
        table.source.write("A", content.encode())
        table.start(run)
        table.later(25 * 3600)  # too late for a revert
        table.clean_up()
    shown = _shown(table)
    table.push_foreign()
    visible = table.pinot.visible_segments(TABLE)
    error = _roll_back(table, shown)
    assert isinstance(error, RollbackRefused)
    assert f"{len(shown.goes) + 1} segments would be removed" in str(error)
    assert table.pinot.visible_segments(TABLE) == visible


def test_of_two_snapshots_of_one_number_the_one_that_was_published_is_gone_back_to(table: ModelTable) -> None:
    """A driver that dies before its last transaction leaves one behind that never was the current one."""
    table.source.write("B", b"")  # nothing to switch
    table.start(run, [Trouble(_header_of_noop(), Kind.DIES_AFTER)])
    table.expire()
    table.later(120)
    for name in "CD":
        table.source.write(name, f"{name}1".encode())
    table.start(run)
    for number in range(2):
        table.later(25 * 3600)
        table.clean_up()
        table.source.write("A", f"A{number + 5}".encode())
        table.start(run)
    staging = Staging(table.staging)
    assert [h.seq for h in snapshot_headers(table.staging.list("snapshots"))].count(3) == 2
    offered: list[int] = []

    def rollback(driver: Driver) -> None:
        offered.extend(way.target.snapshot.seq for way in driver.rollback_plans(9))
        driver.rollback("3")

    assert table.start(rollback).process.error is None
    assert offered == [5, 4, 3, 2, 1]
    assert [f.uri[-1] for f in staging.snapshot(snapshot_refs(staging)[0]).files] == ["A", "B", "C", "D"]


def _header_of_noop() -> int:
    """Which effect of a session that takes note of a file without rows writes its snapshot's header."""
    table = ModelTable(spec_of, "sync")
    for content in ("A0", "A1"):
        table.source.write("A", content.encode())
        table.start(run)
    table.source.write("B", b"")
    effects = table.start(run).process.effects
    return max(n for n, what in enumerate(effects, 1) if what.startswith("put snapshots/3-"))


def _refusal(table: ModelTable, to: str) -> str:
    error = table.start(lambda driver: driver.rollback_plan(to)).process.error
    assert isinstance(error, RollbackRefused)
    return str(error)


def test_a_table_that_is_there_already(table: ModelTable) -> None:
    assert "is at snapshot 2 already" in _refusal(table, "2")
    assert "has no snapshot 99" in _refusal(table, "99")


def test_behind_a_shut_gate_it_says_so(table: ModelTable) -> None:
    asked = Audit((Assertion(sql=f"SELECT COUNT(*) FROM {TABLE}", expect="> 100"),))
    table.spec_of = lambda options: replace(spec_of(options), audit=asked)
    table.source.write("A", b"A2")
    table.start(run)
    assert "is in its switch, and its gate is shut" in _refusal(table, "1")
    assert "has no snapshot 99" in _refusal(table, "99")
