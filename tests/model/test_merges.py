"""Open packs are merged: many small arrivals become few segments, and each row is seen once at any time."""

from __future__ import annotations

from collections import Counter

import pytest
from model.test_dirty_packs import HALF_DONE, lose_rows, lose_segment, rollback
from model.test_packs import builds, ends_well, fill, packing
from model.world.ending import holds_at_every_effect, settle
from model.world.process import Kind, Trouble
from model.world.restored import rows, snapshot
from model.world.specs import spec_of
from model.world.table import ModelTable, run

from pinot_assets.errors import RebuildRefused
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.values.hold import Hold
from pinot_assets.session.values.outdated import CompactRequest
from pinot_assets.session.values.report import TriggerReport, TriggerResult


def names_of(names: str) -> Counter[str]:
    return Counter(f"{name}{n}" for name in names for n in (1, 2))


def arrivals(mode: str, *names: str, **layout: str) -> ModelTable:
    table = packing(mode, **layout)
    for some in names:
        fill(table, some)
        table.start(run)
    return table


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_small_arrivals_become_one_pack_and_no_published_file_is_read(mode: str) -> None:
    table = arrivals(mode, "AB", "CD")
    fill(table, "E")
    assert builds(table.start(run)) == ["E", "pack 1"]
    [pack] = snapshot(table).packs
    assert (pack.files, len(snapshot(table).segments)) == (5, 1)
    assert rows(table) == names_of("ABCDE")
    ends_well(table)


def test_a_merge_alone_begins_no_session() -> None:
    table = arrivals("sync", "AB", "CD", maxMergeBytes="0")
    assert len(snapshot(table).packs) == 2
    del table.options["layout.maxMergeBytes"]
    quiet = table.start(run).report
    assert quiet is not None
    assert quiet.result is TriggerResult.NOTHING
    table.source.remove("D")  # a session of its own reason merges
    table.start(run)
    fill(table, "E")
    table.start(run)
    assert [pack.files for pack in snapshot(table).packs] == [4]
    ends_well(table)


@pytest.mark.parametrize("later", ["append", "sync"])
def test_a_version_that_append_published_twice_is_in_a_merged_pack_twice(later: str) -> None:
    table = arrivals("append", "AB", maxMergeBytes="0")
    former = table.source._objects[table.source._path("A")]
    table.source.write("A", b"A9")
    table.start(run)
    table.source._objects[table.source._path("A")] = former  # with its former time, too
    table.start(run)
    twice = Counter(["A1", "A1", "A2", "A2", "A9", "B1", "B2"])
    assert rows(table) == twice
    del table.options["layout.maxMergeBytes"]
    table.mode = later
    fill(table, "C")
    table.start(run)
    assert [pack.files for pack in snapshot(table).packs] == [5]
    assert rows(table) == twice + names_of("C")
    if later == "sync":
        table.source.write("A", b"A8")
        table.start(run)
        assert rows(table) == Counter(["A8", "B1", "B2", "C1", "C2"])


def test_a_merged_pack_loses_a_file_like_any_other() -> None:
    table = arrivals("sync", "AB", "CD")
    table.source.remove("A")
    table.source.write("C", b"C9")
    assert builds(table.start(run)) == ["C", "pack 1"]
    assert rows(table) == Counter(["B1", "B2", "C9", "D1", "D2"])
    ends_well(table)


def test_without_pack_nothing_is_merged() -> None:
    table = arrivals("sync", "AB", "CD", maxMergeBytes="0")
    for key in ("pack", "maxMergeBytes"):
        del table.options[f"layout.{key}"]
    table.source.remove("A")
    table.start(run)
    assert sorted(pack.files for pack in snapshot(table).packs) == [1, 2]


def test_while_a_rollback_holds_something_nothing_is_merged() -> None:
    table = arrivals("sync", "AB", "CD", maxMergeBytes="0")
    table.source.write("A", b"A9")
    table.start(run)
    table.start(rollback)
    del table.options["layout.maxMergeBytes"]
    fill(table, "E")
    table.start(run)
    assert sorted(pack.files for pack in snapshot(table).packs) == [1, 2, 2]


def test_a_rollback_of_a_merge_brings_the_packs_back() -> None:
    table = arrivals("sync", "AB", "CD")
    table.start(rollback)
    assert [pack.files for pack in snapshot(table).packs] == [2]
    assert rows(table) == names_of("AB")


def test_after_a_rollback_of_a_merge_none_is_merged_until_resume() -> None:
    table = arrivals("sync", "AB", "CD", maxMergeBytes="0")
    del table.options["layout.maxMergeBytes"]
    table.start(compact)
    revisions = {file.revision for file in snapshot(table).files}
    assert revisions == {1}
    table.start(rollback)
    assert [pack.files for pack in snapshot(table).packs] == [2, 2]
    quiet = table.start(run).report
    assert quiet is not None
    assert quiet.result is TriggerResult.NOTHING
    fill(table, "E")
    table.start(run)
    assert [pack.files for pack in snapshot(table).packs] == [2, 2, 1]
    refused = table.start(compact).process.error
    assert isinstance(refused, RebuildRefused)
    table.start(lambda driver: driver.resume())
    table.start(compact)
    assert [pack.files for pack in snapshot(table).packs] == [5]
    assert rows(table) == names_of("ABCDE")


def test_a_rollback_of_a_change_holds_the_file_and_no_merge() -> None:
    table = arrivals("sync", "AB", maxMergeBytes="0")
    table.source.write("A", b"A9")
    table.start(run)
    table.start(rollback)
    holds: list[Hold] = []
    table.start(lambda driver: holds.append(driver.observe().hold))
    assert [(len(hold.files), hold.merges) for hold in holds] == [(1, False)]


def test_a_pack_that_lacks_its_segment_is_not_merged() -> None:
    table = arrivals("append", "AB", "CD", maxMergeBytes="0")
    [first, _] = snapshot(table).packs
    lose_segment(table, first.outputs[0].segment)
    del table.options["layout.maxMergeBytes"]
    fill(table, "E")
    table.start(run)
    assert rows(table) == names_of("CDE")


def test_a_pack_whose_rows_are_lost_is_not_merged() -> None:
    table = arrivals("append", "AB", "CD", maxMergeBytes="0")
    lose_rows(table, of="A")
    del table.options["layout.maxMergeBytes"]
    fill(table, "E")
    table.start(run)
    assert [pack.files for pack in snapshot(table).packs] == [2, 3]
    assert rows(table) == names_of("ABCDE")
    ends_well(table)


def test_while_another_program_hides_a_segment_nothing_is_merged_and_append_publishes() -> None:
    table = arrivals("append", "AB", "CD", "EF", maxMergeBytes="0")
    del table.options["layout.maxMergeBytes"]
    table.merge_foreign()
    fill(table, "G")
    assert table.start(run).process.error is None
    assert [pack.files for pack in snapshot(table).packs] == [2, 2, 2, 1]


def test_a_wish_for_packs_whose_rows_are_lost_merges_nothing() -> None:
    table = arrivals("sync", "AB", "CD", maxMergeBytes="0")
    del table.options["layout.maxMergeBytes"]
    lose_rows(table)
    assert not foreseen(table).compacts


def test_packs_that_were_read_otherwise_stay_apart() -> None:
    table = arrivals("append", "AB")
    table.options["filter"] = "v = 'C1'"
    fill(table, "C")
    table.start(run)
    assert [pack.files for pack in snapshot(table).packs] == [2, 1]
    fill(table, "D")
    table.options["filter"] = "v = 'D1'"
    table.start(run)
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "D1"])


def test_a_file_that_comes_while_a_merged_pack_waits_for_its_switch() -> None:
    table = arrivals("sync", "AB")
    fill(table, "C")
    table.start(lambda driver: driver.trigger())
    fill(table, "D")
    assert builds(table.start(run)) == ["D", "pack 3"]
    assert [pack.files for pack in snapshot(table).packs] == [4]
    assert rows(table) == names_of("ABCD")
    ends_well(table)


# --- a person's wish ----------------------------------------------------------------------------------


def compact(driver: Driver) -> TriggerReport:
    """As one round of `pinot-assets compact`."""
    request = CompactRequest()
    report = driver.trigger_planned(driver.plan(request).planned.plan_basis.hash, request)
    if report.result in (TriggerResult.STAGED, TriggerResult.FAILED):
        _, findings = driver.audit()
        if not any(finding.blocks for finding in findings):
            driver.publish()
    return report


def foreseen(table: ModelTable) -> PlanReport:
    plans: list[PlanReport] = []
    table.start(lambda driver: plans.append(driver.plan(CompactRequest())))
    return plans[0]


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_a_wish_merges_all_open_packs_whatever_their_level(mode: str) -> None:
    table = arrivals(mode, "AB", "CD", "E", maxMergeBytes="0")
    assert not foreseen(table).compacts
    del table.options["layout.maxMergeBytes"]
    plan = foreseen(table)
    assert (plan.compacts, plan.packs.merged.packs, plan.packs.merged.files) == (True, 3, 5)
    assert plan.switching is not None
    assert plan.switching.rows.after.total == 10
    assert builds(table.start(compact)) == ["pack 0"]
    assert [pack.files for pack in snapshot(table).packs] == [5]
    assert rows(table) == names_of("ABCDE")
    assert not foreseen(table).compacts
    again = table.start(compact).report
    assert again is not None
    assert again.result is TriggerResult.NOTHING
    ends_well(table)


def test_a_wish_reads_small_files_with_segments_of_their_own_into_packs() -> None:
    table = ModelTable(spec_of, "sync", {"consistentPushMaxRetries": 3})
    fill(table, "ABC")
    table.start(run)
    assert len(snapshot(table).segments) == 6
    table.options["layout.pack"] = "true"
    table.start(compact)
    assert [pack.files for pack in snapshot(table).packs] == [3]
    assert len(snapshot(table).segments) == 1
    assert rows(table) == names_of("ABC")


def test_a_round_of_a_wish_takes_what_changed_in_the_source() -> None:
    table = arrivals("sync", "AB", "CD", "E", maxMergeBytes="0")
    del table.options["layout.maxMergeBytes"]
    table.source.write("A", b"A9")
    table.source.remove("D")
    table.start(compact)
    table.start(compact)
    assert [pack.files for pack in snapshot(table).packs] == [4]
    assert rows(table) == Counter(["A9", "B1", "B2", "C1", "C2", "E1", "E2"])
    ends_well(table)


def test_a_wish_that_was_interrupted_is_carried_out_by_the_next_run() -> None:
    table = arrivals("sync", "AB", "CD", maxMergeBytes="0")
    del table.options["layout.maxMergeBytes"]
    table.start(compact, [Trouble("push", Kind.DIES_BEFORE)])
    table.expire()
    table.start(run)
    assert [pack.files for pack in snapshot(table).packs] == [4]
    assert rows(table) == names_of("ABCD")
    ends_well(table)


@pytest.mark.parametrize(
    ("mode", "options", "why"),
    [
        ("sync", {}, "its table spec has no packs"),
        ("swap", {"layout.pack": "true"}, "is a swap table"),
    ],
)
def test_a_wish_that_a_table_cannot_have_is_refused(mode: str, options: dict[str, str], why: str) -> None:
    table = ModelTable(spec_of, mode, {"consistentPushMaxRetries": 3, **options})
    fill(table, "AB")
    table.start(run)
    refused = table.start(compact).process.error
    assert isinstance(refused, RebuildRefused)
    assert why in str(refused)


def test_while_a_rollback_holds_something_a_wish_is_refused() -> None:
    table = arrivals("sync", "AB")
    table.source.write("A", b"A9")
    table.start(run)
    table.start(rollback)
    refused = table.start(compact).process.error
    assert isinstance(refused, RebuildRefused)
    assert "resume" in str(refused.hint)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", HALF_DONE)
def test_whatever_happens_at_an_effect_of_a_wish(kind: Kind) -> None:
    def life(troubles: list[Trouble]) -> tuple[ModelTable, int]:
        table = arrivals("sync", "AB", "CD", maxMergeBytes="0")
        del table.options["layout.maxMergeBytes"]
        troubled = table.start(compact, troubles).process
        table.expire()
        table.source.remove("C")
        table.start(run)
        for stopped in table.stopped:
            table.go_on(stopped)
        settle(table)
        return table, len(troubled.effects)

    holds_at_every_effect(life, kind, least=10)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", HALF_DONE)
@pytest.mark.parametrize("mode", ["append", "sync"])
def test_whatever_happens_at_an_effect(mode: str, kind: Kind) -> None:
    def life(troubles: list[Trouble]) -> tuple[ModelTable, int]:
        table = arrivals(mode, "AB", "CD")
        table.source.write("A", b"A9")
        fill(table, "E")
        troubled = table.start(run, troubles).process
        table.expire()
        fill(table, "F")
        table.start(run)
        for stopped in table.stopped:
            table.go_on(stopped)
        table.source.remove("C")
        table.start(run)
        settle(table)
        return table, len(troubled.effects)

    holds_at_every_effect(life, kind, least=15)
