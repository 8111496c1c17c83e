"""A plan says what the next run does, writes nothing, and is refused once the world is another one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from model.process import Kind, Trouble
from model.specs import spec_of
from model.table import MODES, TABLE, Table, run
from model.watched import WRITES

from pinot_assets.errors import PlanOutdated
from pinot_assets.session.driver import Driver
from pinot_assets.session.forecast import Step
from pinot_assets.session.outlook import Outlook
from pinot_assets.session.report import Report, Result

Change = Callable[[Table], object]


def make_table(mode: str, **options: Any) -> Table:
    return Table(spec_of, mode, {"consistentPushMaxRetries": 3, **options})


def planned(table: Table) -> Outlook:
    """Plan, which must not change anything anywhere."""
    seen: list[Outlook] = []
    before = state(table)
    table.pinot.calls.clear()

    def plan(driver: Driver) -> None:
        seen.append(driver.plan())

    process = table.start(plan).process
    assert process.error is None, process.error
    assert process.effects == ["list"] * len(process.effects)  # every write anywhere is an effect
    assert WRITES.isdisjoint(table.pinot.calls)
    assert state(table) == before
    return seen[0]


def state(table: Table) -> Any:
    """Everything that lies anywhere."""
    nodes = {path: (node.data, node.version) for path, node in table.zookeeper.nodes.items()}
    staged = {info.key: info.fingerprint for info in table.staging.list()}
    return nodes, staged, table.pinot.all_segments(TABLE), table.pinot.lineage(TABLE)


def run_planned(table: Table, wanted: str) -> tuple[Report | None, Exception | None]:
    """The whole job, as planned."""

    def go(driver: Driver) -> Report:
        report = driver.trigger_planned(wanted)
        if report.result in (Result.STAGED, Result.FAILED):
            _, findings = driver.audit()
            if all(f.passed for f in findings):
                driver.publish()
        return report

    running = table.start(go)
    return running.report, running.process.error


def write(**files: str) -> Change:
    return lambda table: [table.source.write(name, text.encode()) for name, text in files.items()]


def remove(name: str) -> Change:
    return lambda table: table.source.remove(name)


def dies(at: str) -> Change:
    return lambda table: table.start(run, [Trouble(at, Kind.DIES_AFTER)]) and table.expire()


def rolled_back(table: Table) -> None:
    def rollback(driver: Driver) -> None:
        driver.rollback()

    table.start(rollback)


def run_now(table: Table) -> None:
    table.start(run)


LIVES: dict[str, list[Change]] = {
    "nothing at all": [],
    "first files": [write(A="A1", B="B1")],
    "all published": [write(A="A1"), run_now],
    "a new, a rewritten, a deleted": [write(A="A1", B="B1"), run_now, write(A="A2", C="C1"), remove("B")],
    "a driver died before its build": [write(A="A1"), dies("zk set cp1")],
    "a driver died in its build": [write(A="A1", B="B1"), dies("build"), write(C="C1")],
    "a driver died at the start": [write(A="A1"), dies("start_")],
    "a driver died at the push": [write(A="A1"), run_now, write(B="B1"), dies("push")],
    "a driver died at the end": [write(A="A1"), dies("end_")],
    "a rollback holds": [write(A="A1"), run_now, write(B="B1"), run_now, rolled_back],
    "a rollback holds some": [write(A="A1"), run_now, write(B="B1"), run_now, rolled_back, write(C="C")],
    "somebody pushes beside": [write(A="A1"), run_now, Table.push_foreign, write(B="B1")],
}


def lived(mode: str, life: str) -> Table:
    table = make_table(mode)
    for change in LIVES[life]:
        change(table)
    return table


@pytest.mark.parametrize(("mode", "life"), [*itertools.product(MODES, LIVES)])
def test_a_run_does_what_was_planned(mode: str, life: str) -> None:
    table = lived(mode, life)
    plan = planned(table)
    assert planned(table).forecast.basis == plan.forecast.basis
    before = table.pinot.visible_segments(TABLE)
    report, error = run_planned(table, plan.forecast.basis.hash[:8])
    assert error is None, error
    assert report is not None
    step = plan.forecast.step
    assert {receipt.uri for receipt in report.built} == {row.uri for row in plan.build}
    if step in (Step.NOTHING, Step.HELD, Step.FINISH):
        assert report.result.value == {"FINISH": "SETTLED"}.get(step, step.value)
    elif step is not Step.END:
        after = table.pinot.visible_segments(TABLE)
        assert before - after == set(plan.forecast.segments_from)
        assert plan.switching is not None
        assert len(after - before) == len(plan.switching.added)
        assert planned(table).forecast.step in (Step.NOTHING, Step.HELD)
    if rolled_back not in LIVES[life]:  # which the truth knows nothing of
        assert not table.truth.violations, table.truth.violations


CHANGES: dict[str, tuple[Change, str]] = {
    "another file": (write(C="C1"), "the files in the source"),
    "another version": (write(B="B2"), "the files in the source"),
    "one less": (remove("B"), "the files in the source"),
    "a run": (run_now, "what is published"),
    "a session": (dies("zk set cp"), "the open session"),
    "a hold": (rolled_back, "what a rollback holds back"),
    "other retries": (lambda t: t.options.update(consistentPushMaxRetries=1), "the table spec"),
}


@pytest.mark.parametrize(("mode", "what"), [*itertools.product(MODES, CHANGES)])
def test_a_plan_of_another_world_is_refused(mode: str, what: str) -> None:
    table = make_table(mode)
    for change in (write(P="P"), run_now, write(Q="Q"), run_now, write(B="B1")):
        change(table)
    plan = planned(table).forecast.basis
    change, told = CHANGES[what]
    change(table)
    before = state(table)
    report, error = run_planned(table, plan.hash)
    assert report is None
    assert isinstance(error, PlanOutdated)
    assert told in str(error)
    nodes, *rest = state(table)
    assert rest == list(before[1:])
    ours = [path for path in nodes if nodes[path] != before[0].get(path)]
    assert all(path.endswith("consistentPush") for path in ours)  # the lease alone: taken, and let go


def test_a_segment_of_somebody_else_changes_the_plan_of_a_swap_alone() -> None:
    for mode in MODES:
        table = make_table(mode)
        for change in (write(A="A1"), run_now, write(A="A2")):
            change(table)
        plan = planned(table).forecast.basis
        table.push_foreign()
        _, error = run_planned(table, plan.hash)
        if mode == "swap":
            assert "the segments that would be replaced" in str(error)
        else:
            assert error is None


def test_time_changes_no_plan() -> None:
    table = lived("sync", "a driver died at the push")
    plan = planned(table).forecast.basis
    table.later(3600)
    assert planned(table).forecast.basis == plan


def test_what_is_checked_is_what_is_worked_with() -> None:
    """A file that comes between the check and the build is another run's: it lists only once."""
    table = make_table("sync")
    table.source.write("A", b"A1")
    plan = planned(table).forecast.basis
    running = None

    def go(driver: Driver) -> Report:
        report = driver.trigger_planned(plan.hash)
        driver.audit()
        driver.publish()
        return report

    running = table.start(go)
    assert running.process.effects.count("list") == 1


def failed(**options: Any) -> Table:
    """A session of which one file could not be read; it is repaired."""
    table = make_table("sync", **options)
    table.source.write("A", b"A1")
    table.source.write("B", b"!")
    table.start(run)
    table.source.write("B", b"B1")
    return table


def test_a_retry_is_told_and_spent() -> None:
    table = failed()
    plan = planned(table)
    assert (plan.forecast.step, plan.retries) == (Step.RETRY, (0, 3))
    assert (len(plan.build), plan.kept) == (1, 1)
    report, _ = run_planned(table, plan.forecast.basis.hash)
    assert report is not None
    assert report.session is not None
    assert (report.session.retry_count, report.kept) == (1, 1)


def test_a_session_that_is_given_up_says_why() -> None:
    table = failed(consistentPushMaxRetries=0)
    plan = planned(table)
    assert (plan.forecast.step, plan.forecast.why) == (Step.RESTART, "no retry left after 0")
    assert len(plan.build) == 2
    table.mode = "append"
    assert planned(table).forecast.why == "the table spec changed"


def test_a_cleared_session_is_told() -> None:
    table = failed()
    table.options["clearConsistentPushState"] = "true"
    plan = planned(table)
    assert plan.forecast.step is Step.BEGIN
    assert "is dropped first" in plan.forecast.why
    report, error = run_planned(table, plan.forecast.basis.hash)
    assert error is None
    assert report is not None
    assert len(report.built) == 2
