"""A plan says what the next run does, writes nothing, and is refused once the world is another one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from fakes.pinot.staged import EMPTY
from fakes.stores.memory import new_memory
from model.world.lives import (
    LIVES,
    UNKNOWN_TO_TRUTH,
    Change,
    dies,
    failed,
    lived,
    make_table,
    planned,
    remove,
    rolled_back,
    run_now,
    run_planned,
    state,
    write,
)
from model.world.process import Kind, Trouble
from model.world.table import MODES, TABLE, ModelTable, run

from pinot_assets.errors import PlanOutdated
from pinot_assets.pinot.shadow_table import shadow_config, shadow_name, shadow_schema
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.decide.run_decision import PlannedAction
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report import planned_run
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.plan_report.planned_run import PARTS, PlannedRun, plan_run
from pinot_assets.session.plan_report.rendering import amounts, risk_lines
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import snapshot_refs
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.blocks.audit import Assertion, Audit, RowChange

STRAY = f"{TABLE}__cp1-0a1b2c_0_0_0"


@pytest.mark.parametrize(("mode", "life"), [*itertools.product(MODES, LIVES)])
def test_a_run_does_what_was_planned(mode: str, life: str) -> None:
    table = lived(mode, life)
    plan = planned(table)
    assert planned(table).planned.plan_basis == plan.planned.plan_basis
    before = table.pinot.visible_segments(TABLE)
    report, error = run_planned(table, plan.planned.plan_basis.hash[:8])
    if plan.planned.refused is not None:
        assert str(error) == str(plan.planned.refused)
        return
    assert error is None, error
    assert report is not None
    step = plan.decision.step
    assert {receipt.uri for receipt in report.built} == {row.uri for row in plan.build}
    if step in (PlannedAction.NOTHING, PlannedAction.HELD, PlannedAction.FINISH):
        assert report.result.value == {"FINISH": "SETTLED"}.get(step, step.value)
    else:
        after = table.pinot.visible_segments(TABLE)
        assert before - after == set(plan.planned.segments_from)
        assert plan.switching is not None
        assert len(after - before) == len(plan.switching.added)
        assert planned(table).decision.step in (PlannedAction.NOTHING, PlannedAction.HELD)
    if UNKNOWN_TO_TRUTH.isdisjoint(LIVES[life]):
        assert not table.truth.violations, table.truth.violations


def pushes_stray(table: ModelTable) -> None:
    """Somebody who had lost the table; the truth, which does not know of whom, looks at nothing any more."""
    table.truth.look = lambda: None  # type: ignore[method-assign]
    table.pinot.push(TABLE, [Output(STRAY, 1, 1, "", 1, "", "")], staged=EMPTY)


CHANGES: dict[str, tuple[Change, str]] = {
    "another file": (write(C="C1"), "the files in the source"),
    "another version": (write(B="B2"), "the files in the source"),
    "one less": (remove("B"), "the files in the source"),
    "a run": (run_now, "what is published"),
    "a session": (dies("zk set cp"), "the open session"),
    "a hold": (rolled_back, "what a rollback holds back"),
    "a stray": (pushes_stray, "replaced or deleted"),
    "other retries": (lambda t: t.options.update(consistentPushMaxRetries=1), "the table spec"),
}


@pytest.mark.parametrize("mode", MODES)
def test_what_a_late_start_hid_is_shown_again_and_nothing_else_is_done(mode: str) -> None:
    table = lived(mode, "a start landed late")
    assert not table.pinot.visible_segments(TABLE)
    plan = planned(table)
    assert plan.decision.step is PlannedAction.FINISH
    assert "hidden by a delayed start of pinot-assets" in plan.decision.why
    report, error = run_planned(table, plan.planned.plan_basis.hash)
    assert error is None
    assert report is not None
    assert not report.built
    assert len(table.pinot.visible_segments(TABLE)) == 2
    assert planned(table).decision.step is PlannedAction.BEGIN


@pytest.mark.parametrize(("mode", "what"), [*itertools.product(MODES, CHANGES)])
def test_a_plan_of_another_world_is_refused(mode: str, what: str) -> None:
    table = make_table(mode)
    for change in (write(P="P"), run_now, write(Q="Q"), run_now, write(B="B1")):
        change(table)
    plan = planned(table).planned.plan_basis
    change, reason = CHANGES[what]
    change(table)
    before = state(table)
    report, error = run_planned(table, plan.hash)
    assert report is None
    assert isinstance(error, PlanOutdated)
    assert reason in str(error)
    nodes, *rest = state(table)
    assert rest == list(before[1:])
    ours = [path for path in nodes if nodes[path] != before[0].get(path)]
    assert all(path.endswith("consistentPush") for path in ours)  # the lease alone: taken, and let go


def test_what_is_finished_is_part_of_the_plan() -> None:
    """Segments are shown again in one world; in the other the ledger of a former table is dropped."""
    table = lived("sync", "a start landed late")
    table.truth.look = lambda: None  # type: ignore[method-assign]
    shows = planned(table).planned
    table.pinot.delete_table(TABLE)
    table.pinot.create_table(table.spec.table_json)
    path = f"/pinot/PROPERTYSTORE/CONFIGS/TABLE/{TABLE}_OFFLINE"
    table.zookeeper.client().ensure_path(path)
    table.zookeeper.nodes[path].made_ms = table.now_ms + 10_000_000
    drops = planned(table).planned
    assert shows.decision.step is drops.decision.step is PlannedAction.FINISH
    assert "was deleted and created again" in drops.decision.why
    assert run_refused(table, shows.plan_basis.hash)
    report, error = run_planned(table, drops.plan_basis.hash)
    assert (error, report and report.result) == (None, TriggerResult.SETTLED)


def test_what_a_run_would_be_refused_for_is_part_of_the_plan() -> None:
    """Nothing is built for a switch that another's merge bars by now."""
    table = lived("sync", "all published")
    write(Z="Z1")(table)
    free = planned(table).planned
    table.truth.look = lambda: None  # type: ignore[method-assign]
    table.merge_foreign()
    barred = planned(table).planned
    assert (free.refused, barred.refused is None) == (None, False)
    assert run_refused(table, free.plan_basis.hash)


def run_refused(table: ModelTable, plan_hash: str) -> bool:
    report, error = run_planned(table, plan_hash)
    return report is None and isinstance(error, PlanOutdated)


INGESTION: dict[str, object] = {
    "max_retries": 1,
    "clear_state": True,
    "empty_source_action": "REFUSE",
    "rollback_window": "pinotDefault",
    "push_mode": "TAR",
    "snapshots_to_keep": 9,
    "snapshot_days_to_keep": 9,
    "max_rows_per_segment": 9,
}
COUNTED = "SELECT COUNT(*) FROM model"
SPECS: dict[str, Callable[[TableSpec], TableSpec]] = {
    **{
        key: lambda spec, key=key: replace(  # type: ignore[misc]
            spec, ingestion=spec.ingestion.model_copy(update={key: INGESTION[key]})
        )
        for key in INGESTION
    },
    "assertions": lambda spec: replace(
        spec, audit=Audit(assertions=(Assertion(sql=COUNTED, expect="staged >= 0"),))
    ),
    "checks": lambda spec: replace(spec, audit=Audit(checks=(RowChange(check="row_change", max="50%"),))),
    "replicas": lambda spec: replace(spec, audit=Audit(replicas="one")),
}


@pytest.mark.parametrize("what", SPECS)
def test_each_value_of_the_spec_that_a_run_goes_by_changes_the_plan(what: str) -> None:
    """And nothing else of what the plan rests on, so that the case fails without it."""
    table = make_table("sync")
    for change in (write(A="A1"), run_now, write(B="B1")):
        change(table)
    before, spec = planned(table).planned.plan_basis, table.spec
    other = SPECS[what](spec)
    same = spec.config_fingerprint("1") == other.config_fingerprint("1")
    assert same == (what != "max_rows_per_segment")
    table.spec_of = lambda options: other
    after = planned(table).planned.plan_basis
    assert {part for part in PARTS if before.digests[part] != after.digests[part]} == {"spec"}


def test_another_cluster_or_staging_area_changes_the_plan() -> None:
    """A first plan, made against a cluster for tests: everything else is the same in the other one."""
    table = make_table("sync")
    write(A="A1")(table)
    first = planned(table).planned.plan_basis
    table.zookeeper.nodes["/pinot/PROPERTYSTORE"].made_ms += 60_000
    second = planned(table).planned.plan_basis
    table.staging = new_memory()
    third = planned(table).planned.plan_basis
    for before, after in itertools.pairwise((first, second, third)):
        assert {part for part in PARTS if before.digests[part] != after.digests[part]} == {"spec"}


@pytest.mark.parametrize("change", ["touched", "empty"])
def test_what_switches_nothing_takes_nothing_away_and_keeps_the_way_back(change: str) -> None:
    table = make_table("sync", snapshotsToKeep=1)
    for number in range(3):
        write(A=f"A{number}")(table)
        run_now(table)
        table.later(48 * 3600)
    write(**({"A": "A2"} if change == "touched" else {"B": ""}))(table)
    plan = planned(table)
    assert (plan.decision.step, plan.switching, plan.expiring) == (PlannedAction.BEGIN, None, ())
    assert "no switch" in dict(risks(plan))
    kept = set(snapshot_refs(Staging(table.staging)))
    report, error = run_planned(table, plan.planned.plan_basis.hash)
    assert error is None
    assert report is not None
    assert report.result is TriggerResult.NOOP
    assert kept < set(snapshot_refs(Staging(table.staging)))


def test_a_segment_of_somebody_else_changes_the_plan_of_a_swap_alone() -> None:
    for mode in MODES:
        table = make_table(mode)
        for change in (write(A="A1"), run_now, write(A="A2")):
            change(table)
        plan = planned(table).planned.plan_basis
        table.push_foreign()
        _, error = run_planned(table, plan.hash)
        if mode == "swap":
            assert "the segments that would be replaced" in str(error)
        else:
            assert error is None


def test_time_changes_no_plan() -> None:
    table = lived("sync", "a driver died at the push")
    plan = planned(table).planned.plan_basis
    table.later(3600)
    assert planned(table).planned.plan_basis == plan


def test_what_is_checked_is_what_is_worked_with() -> None:
    """A file that comes between the check and the build is another run's: it lists only once."""
    table = make_table("sync")
    table.source.write("A", b"A1")
    plan = planned(table).planned.plan_basis

    def go(driver: Driver) -> TriggerReport:
        report = driver.trigger_planned(plan.hash)
        driver.audit()
        driver.publish()
        return report

    running = table.start(go)
    assert running.process.effects.count("list") == 1


def test_a_retry_is_told_and_spent() -> None:
    table = failed()
    plan = planned(table)
    assert (plan.decision.step, plan.retries) == (PlannedAction.RETRY, (0, 3))
    assert (len(plan.build), plan.kept) == (1, 1)
    report, _ = run_planned(table, plan.planned.plan_basis.hash)
    assert report is not None
    assert report.session is not None
    assert (report.session.retry_count, report.kept) == (1, 1)


def test_a_session_that_is_given_up_says_why() -> None:
    table = failed(consistentPushMaxRetries=0)
    plan = planned(table)
    assert (plan.decision.step, plan.decision.why) == (PlannedAction.RESTART, "no retry left after 0")
    assert len(plan.build) == 2
    assert ("retries", "the session is given up after 0 of 0; the new session has 0") in risks(plan)
    table.mode = "append"
    assert planned(table).decision.why == "the table spec changed"


def test_a_cleared_session_is_told() -> None:
    table = failed()
    table.options["clearConsistentPushState"] = "true"
    plan = planned(table)
    assert plan.decision.step is PlannedAction.BEGIN
    assert "is dropped first" in plan.decision.why
    report, error = run_planned(table, plan.planned.plan_basis.hash)
    assert error is None
    assert report is not None
    assert len(report.built) == 2


def test_everything_waits_for_a_file_that_is_written_anew() -> None:
    table = make_table("sync", completenessMarker="_SUCCESS")
    for name in ("d/A", "d/_SUCCESS"):
        table.source.write(name, b"A1")
    run_now(table)
    table.source.remove("d/_SUCCESS")
    table.source.write("d/A", b"A2")
    plan = planned(table)
    assert plan.decision.step is PlannedAction.WAITING
    report, _ = run_planned(table, plan.planned.plan_basis.hash)
    assert report is not None
    assert report.result is TriggerResult.WAITING
    table.source.write("d/_SUCCESS", b"")  # the same versions count: what is to be done is another thing
    _, error = run_planned(table, plan.planned.plan_basis.hash)
    assert "which of them are ready" in str(error)


@pytest.mark.parametrize(
    "push",
    [{"consistentPushEnabled": "false"}, {"consistentPushEnabled": "false", "enableAtomicUpload": "true"}],
)
def test_other_kinds_of_push_are_planned_too(push: dict[str, str]) -> None:
    table = make_table("sync", **push)
    for change in LIVES["a new, a rewritten, a deleted"]:
        change(table)
    plan = planned(table)
    before = table.pinot.visible_segments(TABLE)
    _, error = run_planned(table, plan.planned.plan_basis.hash)
    assert error is None
    assert before - table.pinot.visible_segments(TABLE) == set(plan.planned.segments_from)
    assert planned(table).decision.step is PlannedAction.NOTHING


def test_an_end_that_arrives_while_the_plan_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch is recorded, as it must be; nothing else that was planned before it is done."""
    table = make_table("sync")
    write(A="A1")(table)
    table.start(run, [Trouble("end_", Kind.DIES_BEFORE)])
    table.expire()
    plan = planned(table)
    assert plan.decision.step is PlannedAction.END

    def then_it_ends(reading: TriggerContext) -> PlannedRun:
        run_plan = plan_run(reading)
        assert run_plan.decision.session is not None
        table.pinot.end_replace_segments(TABLE, run_plan.decision.session.lineage_entry_id)
        return run_plan

    monkeypatch.setattr(planned_run, "plan_run", then_it_ends)
    _, error = run_planned(table, plan.planned.plan_basis.hash)
    assert isinstance(error, PlanOutdated)
    assert "changed while its plan was checked" in str(error)
    monkeypatch.undo()
    assert planned(table).decision.step is PlannedAction.NOTHING


def test_strays_are_told_and_swept() -> None:
    table = make_table("swap")
    write(A="A1")(table)
    run_now(table)
    pushes_stray(table)
    write(A="A2")(table)
    plan = planned(table)
    assert plan.planned.strays == (STRAY,)
    assert STRAY not in plan.planned.segments_from
    _, error = run_planned(table, plan.planned.plan_basis.hash)
    assert error is None
    assert STRAY not in table.pinot.all_segments(TABLE)


@pytest.mark.parametrize("mode", ["sync", "append", "swap"])
def test_segments_of_somebody_else_beside_the_first_snapshot_are_warned_of(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(mode)
    monkeypatch.setattr(table.truth, "look", lambda: None)  # it knows nothing of who pushed that
    table.pinot.push(TABLE, [Output("air_minion_0", 1, 1, "", 1, "", "")], staged=EMPTY)
    write(A="A1")(table)
    plan = planned(table)
    report, error = run_planned(table, plan.planned.plan_basis.hash)
    assert error is None
    assert report is not None
    texts = [line.text for line in risk_lines(plan) if line.warns] + list(report.notes)
    twice = [text for text in texts if "see rows twice" in text]
    assert len(twice) == (0 if mode == "swap" else 2)
    assert all("air_minion_0" in text and "consistentPushSwapEnabled" in text for text in twice)
    write(B="B1")(table)
    assert not any("see rows twice" in line.text for line in risk_lines(planned(table)))


def test_strays_and_a_shadow_table_are_told_where_nothing_else_is_done() -> None:
    table = lived("sync", "all published")
    pushes_stray(table)
    table.pinot.put_schema(shadow_schema(table.spec.schema_json, TABLE))
    table.pinot.create_table(shadow_config(table.spec.table_json, TABLE))
    plan = planned(table)
    assert plan.decision.step is PlannedAction.NOTHING
    assert ("strays", "1 segment in no snapshot: deleted first") in risks(plan)
    assert ("shadow table", f"{shadow_name(TABLE)}, which an audit left: deleted first") in risks(plan)
    _, error = run_planned(table, plan.planned.plan_basis.hash)
    assert error is None
    assert table.pinot.get_table_config(shadow_name(TABLE)) is None
    assert not {"strays", "shadow table"} & {label for label, _ in risks(planned(table))}


def test_the_end_of_an_open_switch_shows_what_it_replaces() -> None:
    table = lived("sync", "a new, a rewritten, a deleted")
    table.start(run, [Trouble("end_", Kind.DIES_BEFORE)])
    table.expire()
    plan = planned(table)
    assert plan.decision.step is PlannedAction.END
    numbers_told = {line.label: line.text for line in amounts(plan)}
    assert numbers_told["segments"] == "2 → 2: 2 replaced, 2 new"
    assert numbers_told["rows"].startswith("2 → 2: 2 removed, 2 added")


def risks(plan: PlanReport) -> list[tuple[str, str]]:
    return [(line.label, line.text) for line in risk_lines(plan)]


def test_old_snapshots_that_go_after_the_switch_are_told() -> None:
    table = make_table("sync")
    for number in range(4):
        write(A=f"A{number}")(table)
        run_now(table)
        table.later(48 * 3600)
    write(A="A9")(table)
    assert not planned(table).expiring
    table.options["snapshotsToKeep"] = 1
    plan = planned(table)
    assert [header.seq for header in plan.expiring] == [3, 2, 1]
    (deletion,) = [line for line in risk_lines(plan) if line.label == "deletes"]
    assert deletion.warns
    assert "3 snapshots with the tars that only they need" in deletion.text
    assert deletion.text.endswith("cp3, cp2, cp1")
    kept = set(snapshot_refs(Staging(table.staging)))
    _, error = run_planned(table, plan.planned.plan_basis.hash)
    assert error is None
    assert kept - set(snapshot_refs(Staging(table.staging))) == {header.ref for header in plan.expiring}


def test_a_damaged_old_snapshot_keeps_nobody_from_planning() -> None:
    table = make_table("sync", snapshotsToKeep=1)
    for number in range(3):
        write(A=f"A{number}")(table)
        run_now(table)
    damaged = snapshot_refs(Staging(table.staging))[2]
    table.staging.write(damaged.key, b"damaged")
    write(A="A9")(table)
    plan = planned(table)
    assert not plan.expiring
    report, error = run_planned(table, plan.planned.plan_basis.hash)
    assert error is None
    assert report is not None
    assert damaged in snapshot_refs(Staging(table.staging))
