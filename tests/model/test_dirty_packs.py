"""Packs that change: members are rewritten, deleted, held by a rollback, or their kept rows are lost."""

from __future__ import annotations

from collections import Counter

import pytest
from model.test_gc import Gc
from model.test_packs import builds, ends_well, fill, packing
from model.world.ending import holds_at_every_effect, settle
from model.world.process import Kind, Trouble
from model.world.restored import rows, snapshot
from model.world.specs import losing_spec_of
from model.world.table import TABLE, ModelTable, rebuild, run

from pinot_assets.errors import RebuildRefused, SwitchConflict
from pinot_assets.session.driver import Driver
from pinot_assets.session.values.report import TriggerResult


def published(mode: str = "sync", names: str = "ABC", **layout: str) -> ModelTable:
    table = packing(mode, **{"maxMergeBytes": "0", **layout})
    fill(table, names)
    table.start(run)
    return table


def two_packs() -> ModelTable:
    """A, B and C in one pack, D and E in another."""
    table = published()
    fill(table, "DE")
    table.start(run)
    assert [pack.files for pack in snapshot(table).packs] == [3, 2]
    return table


def rollback(driver: Driver) -> None:
    driver.rollback()


def lose_rows(table: ModelTable, of: str = "") -> None:
    """A lifecycle rule deletes rows objects: all, or those that have the rows of one file."""
    for info in [*table.staging.list("rows")]:
        data = table.staging.read(info.key)
        if not of or f"{of}1".encode() in data:
            table.staging.delete(info.key)


def test_one_of_them_is_rewritten_and_no_other_file_is_read() -> None:
    table = two_packs()
    other = snapshot(table).packs[1]
    table.source.write("B", b"B7 B8")
    assert builds(table.start(run)) == ["B", "pack 1"]
    assert rows(table) == Counter(["A1", "A2", "B7", "B8", "C1", "C2", "D1", "D2", "E1", "E2"])
    [untouched, changed] = snapshot(table).packs
    assert (untouched, changed.files) == (other, 3)
    assert {file.uri[-1]: file.packs == (changed.name,) for file in snapshot(table).files} == {
        **dict.fromkeys("ABC", True),
        **dict.fromkeys("DE", False),
    }
    ends_well(table)


def test_one_of_them_is_deleted_and_no_file_is_read() -> None:
    """L4: one of n deleted is no byte of the source, and one pack."""
    table = two_packs()
    table.source.remove("B")
    assert builds(table.start(run)) == ["pack 0"]
    assert rows(table) == Counter(["A1", "A2", "C1", "C2", "D1", "D2", "E1", "E2"])
    assert [pack.files for pack in snapshot(table).packs] == [2, 2]
    ends_well(table)


def test_a_pack_of_which_nothing_stays_is_dropped() -> None:
    table = two_packs()
    for name in "ABC":
        table.source.remove(name)
    assert builds(table.start(run)) == []
    assert [pack.files for pack in snapshot(table).packs] == [2]
    ends_well(table)


def test_a_file_that_loses_its_rows_leaves_its_pack() -> None:
    table = ModelTable(losing_spec_of, "sync", {"consistentPushMaxRetries": 3, "layout.pack": "true"})
    fill(table, "ABC")
    table.start(run)
    table.source.write("B", b"")
    assert builds(table.start(run)) == ["B", "pack 1"]
    assert rows(table) == Counter(["A1", "A2", "C1", "C2"])
    assert {file.uri[-1]: bool(file.packs) for file in snapshot(table).files} == {
        "A": True,
        "B": False,
        "C": True,
    }
    ends_well(table)


def test_a_file_that_grows_leaves_its_pack_and_one_that_shrinks_goes_into_a_new_one() -> None:
    table = published(targetSegmentSize="1MB")
    large = b"B7 B8" + b" " * (1 << 18)
    table.source.write("B", large)
    assert builds(table.start(run)) == ["B", "pack 1"]
    assert [pack.files for pack in snapshot(table).packs] == [2]
    assert rows(table) == Counter(["A1", "A2", "B7", "B8", "C1", "C2"])
    table.source.write("B", b"B9")
    assert builds(table.start(run)) == ["B", "pack 1"]
    assert sorted(pack.files for pack in snapshot(table).packs) == [1, 2]
    assert rows(table) == Counter(["A1", "A2", "B9", "C1", "C2"])
    ends_well(table)


def test_a_new_file_does_not_go_into_a_published_pack() -> None:
    table = published()
    fill(table, "D")
    table.source.write("A", b"A9")
    assert builds(table.start(run)) == ["A", "D", "pack 2", "pack 3"]
    assert sorted(pack.files for pack in snapshot(table).packs) == [1, 3]
    ends_well(table)


def test_versions_that_append_added_beside_each_other_all_leave() -> None:
    table = published("append")
    table.source.write("A", b"A9")
    fill(table, "D")
    table.start(run)
    table.mode = "sync"
    table.source.write("A", b"A10")
    table.source.remove("D")
    table.start(run)
    assert rows(table) == Counter(["A10", "B1", "B2", "C1", "C2"])
    ends_well(table)


def test_without_pack_a_table_keeps_its_packs_and_changes_them() -> None:
    table = published()
    for key in ("pack", "maxMergeBytes"):
        del table.options[f"layout.{key}"]
    table.source.write("A", b"A9")
    table.source.remove("B")
    fill(table, "D")
    table.start(run)
    assert rows(table) == Counter(["A9", "C1", "C2", "D1", "D2"])
    assert {file.uri[-1]: bool(file.packs) for file in snapshot(table).files} == {
        "A": False,
        "C": True,
        "D": False,
    }
    table.source.remove("C")
    table.start(run)
    assert snapshot(table).packs == ()
    ends_well(table)


def test_a_version_that_a_rollback_holds_stays_out_of_a_pack_that_changes() -> None:
    """The old version comes from its kept rows."""
    table = published()
    table.source.write("A", b"A9")
    table.start(run)
    table.start(rollback)
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "C2"])
    table.source.write("B", b"B9")
    table.source.remove("C")
    assert builds(table.start(run)) == ["B", "pack 1"]
    assert rows(table) == Counter(["A1", "A2", "B9"])
    table.start(lambda driver: driver.resume())
    table.start(run)
    assert rows(table) == Counter(["A9", "B9"])


def test_a_deep_rollback_brings_former_packs_back_and_gc_leaves_what_they_need() -> None:
    table = published()
    for n in range(3):
        table.source.write("A", f"A{n + 7}".encode())
        table.start(run)
    table.start(Gc())
    table.start(lambda driver: driver.rollback("1"))
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "C2"])
    table.start(Gc())
    table.source.write("C", b"C9")
    table.start(run)
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C9"])


def test_another_filter_puts_a_rewritten_file_into_a_pack_of_its_own() -> None:
    """A pack has one read recipe; what stays of the old one is built of its rows as they are."""
    table = published()
    table.options["filter"] = "v = 'A9'"
    table.source.write("A", b"A8 A9")
    assert builds(table.start(run)) == ["A", "pack 1", "pack 2"]
    assert rows(table) == Counter(["A9", "B1", "B2", "C1", "C2"])
    assert sorted(pack.files for pack in snapshot(table).packs) == [1, 2]


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_a_rebuild_reads_the_files_of_packs_again(mode: str) -> None:
    table = published(mode)
    table.options["filter"] = "v = 'A2'"
    assert table.start(run).report is not None
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "C2"])
    only_a = table.start(lambda driver: rebuild(driver, "A"))
    assert builds(only_a) == ["A", "pack 1", "pack 2"]
    assert rows(table) == Counter(["A2", "B1", "B2", "C1", "C2"])


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_files_that_shrink_by_a_rebuild_are_seen_once(mode: str) -> None:
    table = published(mode, names="AB")
    table.options["filter"] = "v = 'A2'"
    table.start(rebuild)
    assert not table.truth.violations


# --- kept rows that are lost -------------------------------------------------------------------------


def test_lost_rows_are_read_again_from_the_source() -> None:
    table = published()
    lose_rows(table)
    table.source.write("A", b"A9")
    assert builds(table.start(run)) == ["A", "B", "C", "pack 3"]
    assert rows(table) == Counter(["A9", "B1", "B2", "C1", "C2"])
    table.source.remove("B")
    assert builds(table.start(run)) == ["pack 0"]


def test_only_lost_rows_are_read_again() -> None:
    table = published()
    lose_rows(table, of="B")
    table.source.write("A", b"A9")
    assert builds(table.start(run)) == ["A", "B", "pack 2"]
    assert rows(table) == Counter(["A9", "B1", "B2", "C1", "C2"])


def test_where_the_source_has_another_version_the_pack_stays_and_its_changes_wait() -> None:
    table = two_packs()
    table.source.write("A", b"A9")
    table.start(run)
    table.start(rollback)  # holds A9, and the rows of A1 are lost:
    lose_rows(table, of="A")
    table.source.write("B", b"B9")
    table.source.remove("C")
    table.source.write("E", b"E9")
    report = table.start(run).report
    assert report is not None
    assert any("the changes of 2 files wait" in note for note in report.notes)
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "C2", "D1", "D2", "E9"])
    quiet = table.start(run).report
    assert quiet is not None
    assert quiet.result is TriggerResult.HELD, "A9 is held"
    table.mode = "swap"
    table.start(lambda driver: driver.resume())
    table.start(run)
    assert rows(table) == Counter(["A9", "B9", "D1", "D2", "E9"])


def test_a_pack_whose_member_list_is_lost_stays_and_stops_nothing_else() -> None:
    table = two_packs()
    first = snapshot(table).packs[0]
    table.staging.delete(f"packs/{first.members}.parquet")
    del table.options["layout.maxMergeBytes"]
    table.source.write("A", b"A9")
    table.source.write("D", b"D9")
    fill(table, "F")
    report = table.start(run).report
    assert report is not None
    assert any("the changes of 1 file wait" in note for note in report.notes)
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "C2", "D9", "E1", "E2", "F1", "F2"])


def test_a_pack_of_which_nothing_stays_needs_no_member_list() -> None:
    table = two_packs()
    table.staging.delete(f"packs/{snapshot(table).packs[1].members}.parquet")
    table.source.write("D", b"D9")
    table.source.remove("E")
    table.start(run)
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "C2", "D9"])


def test_damaged_rows_are_found_by_the_build_and_read_again_by_the_next_run() -> None:
    table = published()
    [key, *_] = [info.key for info in table.staging.list("rows") if b"B1" in table.staging.read(info.key)]
    table.staging.write(key, b"damaged")
    table.source.write("A", b"A9")
    first = table.start(run)
    assert first.process.error is not None
    assert builds(table.start(run)) == ["B", "pack 3"]
    assert rows(table) == Counter(["A9", "B1", "B2", "C1", "C2"])


def test_rows_that_an_open_session_needs_are_lost_while_its_file_goes_back() -> None:
    table = published()
    version = table.source.stat("A")
    assert version is not None
    content = table.source.read("A")
    table.source.write("A", b"A9")
    table.start(run, [Trouble("build pack", Kind.DIES_BEFORE)])
    table.expire()
    lose_rows(table, of="B")
    table.source.write("A", content, version.mtime_us)
    for _ in range(4):
        last = table.start(run)
        table.later(60)
    assert last.report is not None
    assert last.report.result is TriggerResult.NOTHING
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "C2"])


def test_a_file_that_was_read_waits_if_the_rows_of_its_pack_are_lost_for_good() -> None:
    table = published("append", names="AB")
    table.source.write("B", b"B2x")
    table.start(run)
    table.mode = "sync"
    table.source.write("A", b"A9")
    table.start(run, [Trouble("build pack", Kind.DIES_BEFORE)])
    table.expire()
    lose_rows(table, of="B")
    for _ in range(3):
        last = table.start(run)
        table.later(60)
    assert last.process.error is None
    assert last.report is not None
    assert last.report.result is TriggerResult.NOTHING, "no rollback holds anything"
    assert any("the changes of 1 file wait" in note for note in last.report.notes)
    planned = table.start(lambda d: d.trigger_planned(d.plan().planned.plan_basis.hash)).report
    assert planned is not None
    assert any("the changes of 1 file wait" in note for note in planned.notes)
    assert rows(table)["A1"] == 1


def test_a_plain_push_builds_no_packed_file_again() -> None:
    table = published("append")
    for key in ("pack", "maxMergeBytes"):
        del table.options[f"layout.{key}"]
    table.options |= {"consistentPushEnabled": "false", "filter": "v = 'A2'"}
    refused = table.start(lambda driver: rebuild(driver, "A")).process.error
    assert isinstance(refused, RebuildRefused)
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "C2"])


# --- segments that are lost --------------------------------------------------------------------------


def lose_segment(table: ModelTable, name: str) -> None:
    table.pinot.delete_segments(TABLE, [name])


def test_a_changed_pack_without_its_segment_pauses_the_table() -> None:
    """Built again, rows would come back that somebody has deleted."""
    table = two_packs()
    [first, _] = snapshot(table).packs
    lose_segment(table, first.outputs[0].segment)
    table.source.write("D", b"D9")
    table.start(run)  # the pack that lacks its segment does not change
    assert rows(table) == Counter(["D9", "E1", "E2"])
    table.source.write("A", b"A9")
    paused = table.start(run).process.error
    assert isinstance(paused, SwitchConflict)
    assert first.outputs[0].segment in str(paused)
    for name in "ABC":
        table.source.remove(name)
    table.start(run)  # a dropped pack lacks nothing
    assert rows(table) == Counter(["D9", "E1", "E2"])


# --- whatever happens --------------------------------------------------------------------------------


def test_a_session_that_is_given_up_leaves_rows_that_a_published_pack_has() -> None:
    table = published()
    table.source.write("A", b"A9")
    table.start(run, [Trouble("push", Kind.DIES_BEFORE)])
    table.expire()
    table.start(lambda driver: driver.clear())
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "C2"])
    table.start(Gc())
    table.source.remove("B")
    assert builds(table.start(run)) == ["A", "pack 1"]
    assert rows(table) == Counter(["A9", "C1", "C2"])
    ends_well(table)


def test_a_lost_pointer_is_made_again_from_packs_that_changed() -> None:
    table = two_packs()
    table.source.write("A", b"A9")
    table.source.remove("E")
    table.start(run)
    before = {(file.uri, file.session, file.packs, file.rows) for file in snapshot(table).files}
    for info in [*table.staging.list("snapshots")]:
        table.staging.delete(info.key)
    nodes = table.zookeeper.nodes
    for path in [path for path in nodes if "consistentPush" in path]:
        del nodes[path]
    table.start(run)
    assert {(file.uri, file.session, file.packs, file.rows) for file in snapshot(table).files} == before
    table.source.remove("D")
    table.source.write("B", b"B9")
    assert builds(table.start(run)) == ["B", "pack 1"]
    assert rows(table) == Counter(["A9", "B9", "C1", "C2"])


HALF_DONE = [Kind.DIES_AFTER, Kind.STOPS_AFTER, Kind.HALF, Kind.LATE, Kind.REPLY_LOST]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", HALF_DONE)
def test_whatever_happens_at_an_effect(kind: Kind) -> None:
    """The crash matrix of packs that change: files that are deleted and rewritten, and lost rows."""

    def life(troubles: list[Trouble]) -> tuple[ModelTable, int]:
        table = two_packs()
        table.source.write("A", b"A9")
        table.start(run)
        lose_rows(table, of="D")
        table.source.remove("B")
        table.source.write("E", b"E9")
        troubled = table.start(run, troubles).process
        table.expire()
        table.start(run)
        for stopped in table.stopped:
            table.go_on(stopped)
        fill(table, "F")
        table.start(run)
        settle(table)
        return table, len(troubled.effects)

    holds_at_every_effect(life, kind, least=15)
