"""Packs in a table with cells: a file has rows in a segment for each cell, and each row is seen once."""

from __future__ import annotations

from collections import Counter

import pytest
from model.test_dirty_packs import HALF_DONE, lose_rows, lose_segment, rollback
from model.test_merges import compact, foreseen
from model.test_packs import builds, ends_well, fill, packing
from model.world.builder import ROWS
from model.world.ending import holds_at_every_effect, settle
from model.world.process import Kind, Trouble
from model.world.restored import rows, snapshot
from model.world.table import MODES, TABLE, ModelTable, rebuild, run

from pinot_assets.session.checks import pack_segments
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.plan_report.rendering import risk_lines

EVEN, ODD = "HashCode(v)=0/2", "HashCode(v)=1/2"


def cell_of(row: str) -> str:
    """By Java's `hashCode`: A1 is even, A2 and B1 are odd."""
    return ODD if (31 * ord(row[0]) + ord(row[1])) % 2 else EVEN


def packs(table: ModelTable) -> set[tuple[str, int, int]]:
    """Cell, files and rows of each."""
    return {(pack.cell, pack.files, pack.rows) for pack in snapshot(table).packs}


def celled(mode: str = "sync", **layout: str) -> ModelTable:
    return packing(mode, partition="true", **layout)


def published(mode: str = "sync", names: str = "ABC", **layout: str) -> ModelTable:
    table = celled(mode, **layout)
    fill(table, names)
    table.start(run)
    return table


def all_rows(names: str) -> Counter[str]:
    return Counter(f"{name}{n}" for name in names for n in (1, 2))


def each_segment_has_one_cell(table: ModelTable) -> None:
    """L6."""
    metadata = table.pinot._tables[TABLE].metadata
    for segment in snapshot(table).segments:
        cells = {cell_of(row) for row in metadata[segment].custom[ROWS].split()}
        assert len(cells) == 1, metadata[segment].custom[ROWS]


@pytest.mark.parametrize("mode", MODES)
def test_a_segment_has_rows_of_one_cell_and_a_file_is_in_several(mode: str) -> None:
    table = published(mode, "ABCDE")
    now = snapshot(table)
    assert [(pack.cell, pack.files, pack.rows) for pack in now.packs] == [(EVEN, 5, 5), (ODD, 5, 5)]
    assert {file.packs for file in now.files} == {tuple(pack.name for pack in now.packs)}
    assert rows(table) == all_rows("ABCDE")
    each_segment_has_one_cell(table)
    ends_well(table)


@pytest.mark.parametrize("mode", MODES)
def test_a_large_file_is_packed_as_well(mode: str) -> None:
    table = celled(mode)
    table.source.write("A", b"A1 A2" + b" " * (1 << 18))
    fill(table, "B")
    table.options["layout.targetSegmentSize"] = "1MB"
    table.start(run)
    assert sorted(pack.files for pack in snapshot(table).packs) == [2, 2]
    each_segment_has_one_cell(table)
    ends_well(table)


def test_only_the_packs_of_a_rewritten_file_change() -> None:
    table = published()
    table.source.write("B", b"B7 B9")  # it leaves the even cell
    assert builds(table.start(run)) == ["B", "pack 1", "pack 2"]
    assert rows(table) == Counter(["A1", "A2", "B7", "B9", "C1", "C2"])
    assert packs(table) == {
        (EVEN, 2, 2),
        (ODD, 3, 4),
    }
    each_segment_has_one_cell(table)
    table.source.write("B", b"B8")  # and comes back into it; now it leaves the odd one
    table.start(run)
    assert packs(table) >= {(ODD, 2, 2)}
    assert rows(table) == Counter(["A1", "A2", "B8", "C1", "C2"])
    each_segment_has_one_cell(table)
    ends_well(table)


def test_a_file_with_rows_of_one_cell_changes_only_its_pack() -> None:
    table = published()
    table.source.write("D", b"D2 D4")
    table.start(run)
    before = {pack.name for pack in snapshot(table).packs if pack.cell == ODD}
    table.source.remove("D")
    assert len(builds(table.start(run))) == 1
    assert before == {pack.name for pack in snapshot(table).packs if pack.cell == ODD}
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "C2"])
    ends_well(table)


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_merges_join_packs_of_one_cell_only(mode: str) -> None:
    table = celled(mode)
    for names in ("AB", "CD", "E"):
        fill(table, names)
        table.start(run)
    assert {(pack.cell, pack.files) for pack in snapshot(table).packs} == {(EVEN, 5), (ODD, 5)}
    each_segment_has_one_cell(table)
    ends_well(table)


def test_a_table_that_gets_cells_keeps_its_packs_until_their_files_change() -> None:
    table = packing("sync")
    fill(table, "ABC")
    table.start(run)
    table.options["layout.partition"] = "true"
    table.pinot.update_table(table.spec.table_json)
    fill(table, "D")
    table.start(run)
    assert {(pack.cell, pack.files) for pack in snapshot(table).packs} == {("", 3), (EVEN, 1), (ODD, 1)}
    table.source.write("B", b"B8")
    table.start(run)
    assert {(pack.cell, pack.files) for pack in snapshot(table).packs} == {("", 2), (EVEN, 2), (ODD, 1)}
    assert rows(table) == Counter(["A1", "A2", "B8", "C1", "C2", "D1", "D2"])
    table.start(rebuild)
    assert {pack.cell for pack in snapshot(table).packs} == {EVEN, ODD}
    each_segment_has_one_cell(table)


def test_a_table_of_files_gets_cells_by_compact() -> None:
    table = packing("sync")
    del table.options["layout.pack"]
    fill(table, "ABC")
    table.start(run)
    table.options |= {"layout.pack": "true", "layout.partition": "true"}
    table.pinot.update_table(table.spec.table_json)
    table.start(compact)
    assert {(pack.cell, pack.files) for pack in snapshot(table).packs} == {(EVEN, 3), (ODD, 3)}
    each_segment_has_one_cell(table)
    assert rows(table) == all_rows("ABC")


def test_lost_rows_are_read_again_for_all_cells_of_a_file() -> None:
    table = published(maxMergeBytes="0")
    fill(table, "DE")
    table.start(run)
    lose_rows(table, "A")
    table.source.remove("B")
    assert builds(table.start(run))[:1] == ["A"]
    assert rows(table) == all_rows("ACDE")
    each_segment_has_one_cell(table)
    ends_well(table)


def test_after_a_rollback_the_held_version_stays_out() -> None:
    table = published()
    before = snapshot(table).segments.keys()
    table.source.write("B", b"B8 B9")
    table.start(run)
    table.start(rollback)
    assert rows(table) == all_rows("ABC")
    assert before.isdisjoint(snapshot(table).segments), "a revert would open a gap, as brokers prune segments"
    table.source.write("C", b"C6 C7")
    table.start(run)
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C6", "C7"])
    each_segment_has_one_cell(table)


def test_a_missing_segment_of_one_cell_pauses_its_change() -> None:
    table = published()
    lost = snapshot(table).packs[0].outputs[0].segment
    lose_segment(table, lost)
    table.source.write("B", b"B8 B9")
    table.start(run)
    assert rows(table) == Counter(row for row in all_rows("ABC") if cell_of(row) == ODD)


def expire(table: ModelTable, cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pinot's retention removes the segments of a slice."""
    gone = {pack.name for pack in snapshot(table).packs if pack.cell == cell}
    monkeypatch.setattr(pack_segments, "_is_expired", lambda pack, *_: pack.name in gone)
    for pack in snapshot(table).packs:
        if pack.name in gone:
            lose_segment(table, pack.outputs[0].segment)


def test_after_a_slice_has_expired_the_others_change_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    table = published()
    expire(table, EVEN, monkeypatch)
    for name in "BC":
        table.source.remove(name)
        table.start(run)
    assert rows(table) == Counter(["A2"])
    table.source.write("A", b"A8 A9")  # it brings its rows of both slices
    table.start(run)
    assert rows(table) == Counter(["A8", "A9"])


def test_an_append_table_is_built_again_twice_after_a_slice_has_expired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = published("append")
    expire(table, EVEN, monkeypatch)
    for size in ("77MB", "78MB"):
        table.options["desiredSegmentSize"] = size
        table.start(rebuild)
        table.source.write("D", f"D{size[1]}".encode())
        assert table.start(run).process.error is None


def test_a_lost_list_of_another_cell_stops_nothing() -> None:
    table = published()
    table.source.write("D", b"D1 D3")  # of one cell
    table.start(run)
    assert packs(table) == {(EVEN, 3, 3), (ODD, 4, 5)}
    [even] = [pack for pack in snapshot(table).packs if pack.cell == EVEN]
    table.staging.delete(f"packs/{even.members}.parquet")
    table.source.write("D", b"D5")
    assert table.start(run).process.error is None
    assert rows(table) == all_rows("ABC") + Counter(["D5"])


def test_the_plan_promises_no_revert_and_no_slices_that_are_not_there() -> None:
    table = published()
    table.source.write("D", b"D1")
    plans: list[PlanReport] = []
    table.start(lambda driver: plans.append(driver.plan()))
    [plan] = plans
    assert plan.packs.new is not None
    assert plan.packs.new.text.endswith(
        "one segment or more for each of 2 partitions of which they have rows"
    )
    assert plan.revert_until_ms is None
    text = "\n".join(line.text for line in risk_lines(plan))
    assert "no revert, because brokers prune segments" in text
    assert "by one revert" not in text


def test_the_plan_of_a_compaction_counts_cells() -> None:
    table = celled(maxMergeBytes="0")
    for names in ("AB", "CD", "EF"):
        fill(table, names)
        table.start(run)
    del table.options["layout.maxMergeBytes"]
    plan = foreseen(table)
    assert (plan.packs.merged.packs, plan.packs.merged.into) == (6, 2)
    table.start(compact)
    assert len(snapshot(table).packs) == 2


@pytest.mark.parametrize("kind", HALF_DONE)
@pytest.mark.parametrize("mode", MODES)
def test_whatever_happens_at_any_effect(mode: str, kind: Kind) -> None:
    """Every outcome of every effect while a file changes its cell, another leaves and a third one comes."""

    def life(troubles: list[Trouble]) -> tuple[ModelTable, int]:
        table = celled(mode)
        for name, text in {"A": b"A1 A2", "B": b"B1 B3", "C": b"C2"}.items():
            table.source.write(name, text)
        table.start(run)
        table.source.write("A", b"A8")
        table.source.write("D", b"D1 D2")
        table.source.remove("C")
        troubled = table.start(run, troubles).process
        table.expire()
        table.start(run)
        for stopped in table.stopped:
            table.go_on(stopped)
        fill(table, "F")
        table.start(run)
        settle(table)
        each_segment_has_one_cell(table)
        return table, len(troubled.effects)

    holds_at_every_effect(life, kind, least=15)
