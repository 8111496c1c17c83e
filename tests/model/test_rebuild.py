"""A changed table spec is carried out: published files are built again, at one instant, or not at all.

The specs of these lives differ in a setting of the reader. The model's builder does not look at it, so that
queries must see the same rows before and after (and the truth of the model checks that at every effect).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from model.world.ending import settle
from model.world.lives import (
    PUSHES,
    make_table,
    of_format_1,
    planned,
    pointer_lost,
    remove,
    rolled_back,
    write,
)
from model.world.process import Kind, Trouble
from model.world.table import CLUSTER, TABLE, ModelTable, rebuild, run

from pinot_assets.core.stored_format import NEWEST
from pinot_assets.errors import RebuildRefused
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.plan_report.rendering import spec_lines
from pinot_assets.session.plan_report.unknown_recipes import UnknownRecipes
from pinot_assets.session.rollback.rollback_plan import RollbackPlan
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.hold import Hold
from pinot_assets.session.values.outdated import RebuildRequest
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import pointer_to_bytes
from pinot_assets.snapshot.manifest import Snapshot

REPLACING = ["append", "sync"]
EACH = [*REPLACING, *PUSHES]


def change_spec(table: ModelTable, delimiter: str = ";") -> None:
    table.options["recordReader.prop.delimiter"] = delimiter


def published(mode: str, **options: object) -> ModelTable:
    """Three files of revision 1, and a spec of revision 2."""
    table = make_table(mode, **options)
    write(A="A1", B="B1 B2", C="C1")(table)
    assert table.start(run).process.error is None
    change_spec(table)
    return table


def rebuild_of(files: str = "") -> Callable[[Driver], TriggerReport]:
    """The whole job of `pinot-assets rebuild`."""

    def job(driver: Driver) -> TriggerReport:
        return rebuild(driver, files)

    return job


def store_of(table: ModelTable) -> SessionStore:
    return SessionStore(table.zookeeper.client(), CLUSTER, f"{TABLE}_OFFLINE")


def ledger(table: ModelTable) -> Snapshot:
    ref = store_of(table).pointer().current_snapshot
    assert ref is not None
    return Staging(table.staging).snapshot(ref)


def revisions(table: ModelTable) -> dict[str, int]:
    return {uri.rpartition("/")[2]: file.revision for uri, file in ledger(table).ledger.items()}


def reported(table: ModelTable, job: Callable[[Driver], TriggerReport]) -> TriggerReport:
    started = table.start(job)
    assert started.process.error is None, started.process.error
    assert started.report is not None
    return started.report


def ends_well(table: ModelTable) -> None:
    assert not table.truth.violations, "\n".join([*table.story, *table.truth.violations])


# --- asked, and not asked -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", EACH)
def test_a_run_says_what_waits_and_builds_nothing_again(mode: str) -> None:
    table = published(mode)
    write(D="D1")(table)
    report = reported(table, run)
    assert (report.new, report.rebuilt) == ((table.source.uri_of("D"),), ())
    assert any(
        "4 of 4 segments were built under revision 1 (now 2): rows changed by recordReader.prop.delimiter"
        in n
        for n in report.notes
    )
    assert revisions(table) == {"A": 1, "B": 1, "C": 1, "D": 2}
    quiet = reported(table, run)
    assert quiet.result is TriggerResult.NOTHING
    assert any("4 of 5 segments" in note for note in quiet.notes)


@pytest.mark.parametrize("mode", EACH)
def test_a_rebuild_builds_them_again_once(mode: str) -> None:
    table = published(mode)
    before = table.pinot.visible_segments(TABLE)
    report = reported(table, rebuild_of())
    assert len(report.rebuilt) == len(report.built) == 3
    assert revisions(table) == {"A": 2, "B": 2, "C": 2}
    assert before.isdisjoint(table.pinot.visible_segments(TABLE))
    last = reported(table, run)
    assert (last.result, last.notes) == (TriggerResult.NOTHING, ())
    if mode in REPLACING:
        ends_well(table)


def test_a_rebuild_publishes_what_changed_in_the_source_too() -> None:
    table = published("sync")
    write(A="A2", D="D1")(table)
    remove("C")(table)
    report = reported(table, rebuild_of())
    assert [uri.rpartition("/")[2] for uri in report.rebuilt] == ["B"]
    assert revisions(table) == {"A": 2, "B": 2, "D": 2}
    ends_well(table)


@pytest.mark.parametrize("mode", REPLACING)
def test_files_choose_some_of_them(mode: str) -> None:
    table = published(mode)
    assert len(reported(table, rebuild_of("[AB]")).built) == 2
    assert revisions(table) == {"A": 2, "B": 2, "C": 1}
    plan = plan_of(table, RebuildRequest())
    assert str(plan.need.possible).startswith("1 of 4 segments were built under revision 1")
    assert not plan_of(table, RebuildRequest("A")).rebuilds
    ends_well(table)


def test_files_that_need_no_rebuild_do_not_continue_the_rebuild_of_others() -> None:
    table = published("sync")
    reported(table, rebuild_of("A"))
    table.start(rebuild_of("B"), [Trouble("build", Kind.DIES_AFTER)])
    table.expire()
    assert plan_of(table, RebuildRequest("[AB]")).rebuilds == {table.source.uri_of("B")}
    assert not plan_of(table, RebuildRequest("A")).rebuilds


@pytest.mark.parametrize("mode", EACH)
def test_if_the_spec_says_so_the_next_run_builds_them_again(mode: str) -> None:
    table = published(mode, onSpecChange="rebuild")
    write(D="D1")(table)
    report = reported(table, run)
    assert (len(report.new), len(report.rebuilt)) == (1, 3)
    assert not any("built under revision" in note for note in report.notes)
    assert set(revisions(table).values()) == {2}
    assert reported(table, run).result is TriggerResult.NOTHING


def test_files_of_a_release_without_recipes_are_built_again_only_by_name() -> None:
    table = published("sync")
    forget_revisions(table)
    assert reported(table, run).notes == ()
    assert not plan_of(table, RebuildRequest()).rebuilds
    assert len(reported(table, rebuild_of("*")).built) == 3
    assert set(revisions(table).values()) == {1}
    ends_well(table)


def test_a_plan_compares_them_through_what_servers_report() -> None:
    table = published("sync")
    assert plan_of(table, RebuildRequest()).unknown == UnknownRecipes()
    forget_revisions(table)
    assert plan_of(table, RebuildRequest()).unknown == UnknownRecipes(4, 4)
    held = table.pinot._tables[TABLE].held
    name = min(held.keys() & ledger(table).segments.keys())
    held[name] = replace(held[name], types={**held[name].types, "v": "LONG"})
    plan = plan_of(table, RebuildRequest())
    assert plan.unknown == UnknownRecipes(4, 4, {"dataType of v (LONG there)": 1})
    [line] = [line for line in spec_lines(plan) if line.label == "unknown"]
    assert "metadata of 4 compared: dataType of v (LONG there), in 1" in line.text
    assert not plan.rebuilds


def test_what_no_server_reports_is_not_called_right() -> None:
    table = published("sync")
    forget_revisions(table)
    plan = plan_of(table, RebuildRequest())
    [line] = [
        line for line in spec_lines(replace(plan, unknown=UnknownRecipes(4))) if line.label == "unknown"
    ]
    assert line.text.endswith("not compared, because no server reported their metadata")


# --- sources that are gone, tables that cannot ----------------------------------------------------


def test_a_file_that_is_not_in_the_source_any_more_is_named_and_kept() -> None:
    table = published("append")
    remove("A")(table)
    write(B="B3")(table)
    report = reported(table, rebuild_of())
    assert [uri.rpartition("/")[2] for uri in report.rebuilt] == ["C"]
    (stays,) = (note for note in report.notes if "they stay as they are" in note)
    assert "the source lacks A, B" in stays
    assert {f.uri.rpartition("/")[2]: f.revision for f in ledger(table).files if f.revision == 1} == {
        "A": 1,
        "B": 1,
    }
    ends_well(table)


def test_a_swap_table_builds_all_files_at_its_next_run_and_has_no_rebuild() -> None:
    table = published("swap")
    refused(table, "is a swap table, which has no rebuild")
    assert len(reported(table, run).built) == 3
    assert set(revisions(table).values()) == {2}


def test_a_table_of_format_1_has_to_be_upgraded_first() -> None:
    table = of_format_1()
    change_spec(table)
    assert reported(table, run).notes == ()
    refused(table, "cannot be built again")


def test_a_table_that_was_never_published_has_no_rebuild() -> None:
    refused(make_table("sync"), "has never been published")


def refused(table: ModelTable, text: str) -> None:
    error = table.start(rebuild_of()).process.error
    assert isinstance(error, RebuildRefused)
    assert text in str(error)


# --- a session like any other ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", REPLACING)
@pytest.mark.parametrize("at", ["build", "put switch", "start_", "push", "end_", "put snap"])
def test_a_run_goes_on_with_a_rebuild_whose_driver_died(mode: str, at: str) -> None:
    table = published(mode)
    table.start(rebuild_of(), [Trouble(at, Kind.DIES_AFTER)])
    table.expire()
    reported(table, run)
    assert set(revisions(table).values()) == {2}
    settle(table)
    ends_well(table)


@pytest.mark.parametrize("mode", REPLACING)
@pytest.mark.parametrize("kind", [Kind.DIES_AFTER, Kind.STOPS_BEFORE, Kind.REPLY_LOST, Kind.TWICE])
def test_whatever_happens_at_an_effect_of_a_rebuild(mode: str, kind: Kind) -> None:
    effects = len(_live(mode, [])[1])
    assert effects > 15
    for number in range(1, effects + 1):
        table, _ = _live(mode, [Trouble(number, kind)])
        ends_well(table)
        assert set(revisions(table).values()) <= {1, 2}


def _live(mode: str, troubles: list[Trouble]) -> tuple[ModelTable, list[str]]:
    table = published(mode)
    write(D="D1")(table)
    troubled = table.start(rebuild_of(), troubles).process
    table.expire()
    table.start(run)
    for stopped in table.stopped:
        table.go_on(stopped)
    effects = list(troubled.effects)
    settle(table)
    return table, effects


def test_a_file_that_is_rewritten_meanwhile_is_built_as_it_is_then() -> None:
    table = published("append")
    table.start(rebuild_of(), [Trouble("zk set cp2", Kind.DIES_AFTER)])
    table.expire()
    write(B="B3")(table)
    reported(table, run)
    assert {(f.uri.rpartition("/")[2], f.revision) for f in ledger(table).files} == {
        ("A", 2),
        ("B", 1),
        ("B", 2),
        ("C", 2),
    }
    ends_well(table)


def test_another_change_of_the_spec_gives_the_rebuild_up() -> None:
    table = published("sync")
    table.start(rebuild_of(), [Trouble("build", Kind.DIES_AFTER)])
    table.expire()
    change_spec(table, "|")
    report = reported(table, run)
    assert (report.result, report.rebuilt) == (TriggerResult.NOTHING, ())
    assert any("(now 2)" in note for note in report.notes)
    assert set(revisions(table).values()) == {1}
    ends_well(table)


# --- a plan ---------------------------------------------------------------------------------------


def plan_of(table: ModelTable, request: RebuildRequest) -> PlanReport:
    plans: list[PlanReport] = []

    def plan(driver: Driver) -> None:
        plans.append(driver.plan(request))

    process = table.start(plan).process
    assert process.error is None, process.error
    return plans[0]


def test_a_plan_sorts_the_changes_and_says_what_a_rebuild_takes() -> None:
    table = published("sync")
    plan = planned(table)
    assert [(c.setting, c.verdict.value) for c in plan.spec_changes] == [
        ("recordReader.prop.delimiter", "rebuild")
    ]
    assert (len(plan.need.possible.files), plan.rebuilds) == (3, frozenset())
    asked = plan_of(table, RebuildRequest("A"))
    assert [row.uri for row in asked.build] == [table.source.uri_of("A")]
    assert asked.planned.segments_from
    assert asked.planned.plan_basis.hash != plan.planned.plan_basis.hash


# --- rolled back ----------------------------------------------------------------------------------


def hold_of(table: ModelTable) -> Hold | None:
    ref = store_of(table).pointer().hold
    return Staging(table.staging).hold(ref) if ref is not None else None


@pytest.mark.parametrize("mode", REPLACING)
def test_a_rebuild_that_was_rolled_back_stays_so_until_resume(mode: str) -> None:
    table = published(mode, onSpecChange="rebuild")
    reported(table, run)
    assert set(revisions(table).values()) == {2}
    ways: list[RollbackPlan] = []
    table.start(lambda driver: ways.append(driver.rollback_plan()))
    assert [{file.revision for file in files} for files in (ways[0].files_go, ways[0].files_come)] == [
        {2},
        {1},
    ]
    rolled_back(table)
    assert set(revisions(table).values()) == {1}
    assert hold_of(table) == Hold({}, (), rebuilds=True, format=NEWEST)
    held = reported(table, run)
    assert (held.rebuilt, held.result) == ((), TriggerResult.HELD)
    refused(table, "a rollback took a rebuild back")

    def resume(driver: Driver) -> None:
        driver.resume()

    table.start(resume)
    assert len(reported(table, run).rebuilt) == 3
    assert set(revisions(table).values()) == {2}


def test_the_hold_of_a_rebuild_ends_when_the_spec_is_set_back() -> None:
    table = published("sync", onSpecChange="rebuild")
    reported(table, run)
    rolled_back(table)
    del table.options["recordReader.prop.delimiter"]
    assert reported(table, run).result is TriggerResult.NOTHING
    assert hold_of(table) is None
    change_spec(table)
    assert len(reported(table, run).rebuilt) == 3


def test_a_number_of_a_revision_that_was_rolled_back_is_not_given_again() -> None:
    table = published("sync")
    reported(table, rebuild_of())
    rolled_back(table)
    change_spec(table, "|")

    def resume(driver: Driver) -> None:
        driver.resume()

    table.start(resume)
    reported(table, rebuild_of())
    assert set(revisions(table).values()) == {3}


# --- what is stored -------------------------------------------------------------------------------


def forget_revisions(table: ModelTable) -> None:
    """As if a release before recipes had published the table."""
    store, staging = store_of(table), Staging(table.staging)
    snapshot = ledger(table)
    files = tuple(replace(file, revision=0) for file in snapshot.files)
    ref = staging.put_snapshot(replace(snapshot, files=files, recipes=()))
    pointer = replace(store.pointer(), current_snapshot=ref)
    table.zookeeper.client().set(store.path, pointer_to_bytes(pointer))


def test_a_lost_pointer_loses_no_recipe() -> None:
    table = published("sync")
    write(D="D1")(table)
    reported(table, run)
    pointer_lost(table)
    reported(table, run)
    assert revisions(table) == {"A": 1, "B": 1, "C": 1, "D": 2}
    assert [recipe.revision for recipe in ledger(table).recipes] == [1, 2]


# --- the gate -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", REPLACING)
@pytest.mark.parametrize("publishes_first", [True, False])
def test_a_new_filter_that_empties_a_file_keeps_the_gate_shut(mode: str, publishes_first: bool) -> None:
    """Also when another run has published a file under the new spec before: then both snapshots have one
    config fingerprint, and still the file is built under another recipe."""
    table = make_table(mode)
    write(A="two", B="one two")(table)
    assert table.start(run).process.error is None
    table.options["filter"] = "v = 'one'"
    if publishes_first:
        write(C="one")(table)
        assert table.start(run).process.error is None
    seen = table.pinot.visible_segments(TABLE)
    findings: list[str] = []

    def job(driver: Driver) -> None:
        request = RebuildRequest()
        driver.trigger_planned(driver.plan(request).planned.plan_basis.hash, request)
        _, found = driver.audit()
        findings.extend(finding.message for finding in found if finding.blocks)

    assert table.start(job).process.error is None
    assert len(findings) == 1
    assert "A changes from 1 to 0 rows" in findings[0]
    assert table.pinot.visible_segments(TABLE) == seen
