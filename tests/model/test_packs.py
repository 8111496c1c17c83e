"""Packs in one session: the scenes of a session, with small files whose rows share segments."""

from __future__ import annotations

from collections import Counter

import pytest
from model.world import builder
from model.world.ending import holds_at_every_effect, settle
from model.world.process import Kind, Trouble
from model.world.restored import rows, snapshot
from model.world.specs import spec_of
from model.world.table import MODES, ModelTable, Running, run

from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.session.driver import Driver
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source import ObjectStore

CAN_PACK = MODES


def packing(mode: str, **layout: str) -> ModelTable:
    keys = {f"layout.{key}": value for key, value in {"pack": "true", **layout}.items()}
    return ModelTable(spec_of, mode, {"consistentPushMaxRetries": 3, **keys})


def fill(table: ModelTable, names: str) -> None:
    for name in names:
        table.source.write(name, f"{name}1 {name}2".encode())


def builds(running: Running) -> list[str]:
    return [
        effect.removeprefix("build ") for effect in running.process.effects if effect.startswith("build ")
    ]


def ends_well(table: ModelTable) -> None:
    settle(table)
    assert not table.truth.violations, "\n".join([*table.story, *table.truth.violations])


@pytest.mark.parametrize("mode", CAN_PACK)
def test_many_files_are_one_segment(mode: str) -> None:
    table = packing(mode)
    fill(table, "ABCDEFGH")
    table.source.write("empty", b"")
    table.start(run)
    published = snapshot(table)
    [pack] = published.packs
    assert [*published.segments] == [output.segment for output in pack.outputs]
    assert (pack.files, pack.rows, len(published.files), published.rows) == (8, 16, 9, 16)
    assert {file.packs for file in published.files if file.rows} == {(pack.name,)}
    assert rows(table) == Counter(f"{name}{n}" for name in "ABCDEFGH" for n in (1, 2))
    ends_well(table)


@pytest.mark.parametrize("mode", CAN_PACK)
def test_scene_1_one_of_them_fails_and_the_retry_reads_that_one_alone(mode: str) -> None:
    """L3, L4."""
    table = packing(mode)
    fill(table, "AB")
    table.source.write("C", b"!")
    first = table.start(run)
    assert builds(first) == ["A", "B", "C"]
    assert rows(table) == Counter()
    fill(table, "C")
    second = table.start(run)
    assert builds(second) == ["C", "pack 3"]
    assert [pack.files for pack in snapshot(table).packs] == [3]
    ends_well(table)


@pytest.mark.parametrize("mode", CAN_PACK)
def test_scene_2_a_new_file_joins_the_retry(mode: str) -> None:
    table = packing(mode)
    fill(table, "A")
    table.source.write("B", b"!")
    table.start(run)
    fill(table, "BC")
    assert builds(table.start(run)) == ["B", "C", "pack 3"]
    assert [pack.files for pack in snapshot(table).packs] == [3]
    ends_well(table)


@pytest.mark.parametrize("mode", CAN_PACK)
def test_scene_4_a_file_that_was_read_stays_in_the_version_that_was_read(mode: str) -> None:
    table = packing(mode)
    fill(table, "A")
    table.source.write("B", b"!")
    table.start(run)
    table.source.write("A", b"A9")
    fill(table, "B")
    assert builds(table.start(run)) == ["B", "pack 2"]
    assert rows(table) == Counter(["A1", "A2", "B1", "B2"])
    ends_well(table)


@pytest.mark.parametrize("mode", CAN_PACK)
def test_scene_5_a_file_that_was_read_and_is_deleted_leaves_its_pack_and_nothing_is_read(mode: str) -> None:
    """L4: one of n deleted is no byte of the source, and one pack."""
    table = packing(mode)
    fill(table, "ABC")
    table.start(run, [Trouble("start_", Kind.DIES_BEFORE)])
    table.expire()
    table.source.remove("B")
    assert builds(table.start(run)) == ["pack 4"]
    assert rows(table) == Counter(["A1", "A2", "C1", "C2"])
    ends_well(table)


@pytest.mark.parametrize("mode", CAN_PACK)
def test_a_file_that_is_deleted_and_comes_back_before_the_switch(mode: str) -> None:
    table = packing(mode)
    fill(table, "AB")
    table.start(run, [Trouble("start_", Kind.DIES_BEFORE)])
    table.expire()
    content = table.source.read("A")
    table.source.remove("A")
    table.start(run, [Trouble("start_", Kind.DIES_BEFORE)])
    table.expire()
    table.source.write("A", content)
    table.start(run)
    assert rows(table) == Counter(["A1", "A2", "B1", "B2"])
    ends_well(table)


@pytest.mark.parametrize("mode", CAN_PACK)
def test_a_pack_that_was_built_is_kept_by_the_next_run(mode: str) -> None:
    table = packing(mode)
    fill(table, "AB")
    first = table.start(run, [Trouble("start_", Kind.DIES_BEFORE)])
    assert builds(first) == ["A", "B", "pack 2"]
    table.expire()
    second = table.start(run)
    assert builds(second) == []
    assert rows(table) == Counter(["A1", "A2", "B1", "B2"])
    ends_well(table)


def test_a_pack_that_cannot_be_built_spends_no_retry_and_no_file_is_read_again() -> None:
    table = packing("append")
    fill(table, "AB")
    failed = table.start(run, [Trouble("build pack 2", Kind.CALL_LOST)])
    assert failed.process.error is not None
    again = table.start(run)
    assert builds(again) == ["pack 2"]
    assert again.report is not None
    assert again.report.session is not None
    assert again.report.session.retry_count == 0
    ends_well(table)


def test_the_next_session_makes_a_pack_of_its_own() -> None:
    table = packing("append", maxMergeBytes="0")
    fill(table, "AB")
    table.start(run)
    fill(table, "CD")
    table.source.write("A", b"A9")
    assert builds(table.start(run)) == ["A", "C", "D", "pack 3"]
    published = snapshot(table)
    assert [pack.files for pack in published.packs] == [2, 3]
    assert {file.packs for file in published.files if file.uri.endswith("/A")} == {
        (p.name,) for p in published.packs
    }
    assert rows(table) == Counter(["A1", "A2", "A9", "B1", "B2", "C1", "C2", "D1", "D2"])
    ends_well(table)


def test_a_swap_replaces_all_packs() -> None:
    table = packing("swap")
    fill(table, "AB")
    table.start(run)
    table.source.remove("A")
    fill(table, "C")
    table.start(run)
    assert [(pack.files, pack.session) for pack in snapshot(table).packs] == [(2, snapshot(table).session)]
    assert rows(table) == Counter(["B1", "B2", "C1", "C2"])
    ends_well(table)


def test_a_large_file_has_its_own_segments() -> None:
    table = packing("append", targetSegmentSize="1MB")
    fill(table, "AB")
    table.source.write("L", b"L1" + b" " * (1 << 18))
    table.start(run)
    published = snapshot(table)
    assert {file.uri[-1]: (file.packs != (), len(file.outputs)) for file in published.files} == {
        "A": (True, 0),
        "B": (True, 0),
        "L": (False, 1),
    }
    ends_well(table)


def test_nothing_changed_is_nothing_to_do() -> None:
    table = packing("append")
    fill(table, "AB")
    table.start(run)
    quiet = table.start(run)
    assert quiet.report is not None
    assert quiet.report.result is TriggerResult.NOTHING
    ends_well(table)


HALF_DONE = [Kind.DIES_AFTER, Kind.STOPS_AFTER, Kind.HALF, Kind.LATE, Kind.REPLY_LOST]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", HALF_DONE)
@pytest.mark.parametrize("mode", CAN_PACK)
def test_whatever_happens_at_an_effect(mode: str, kind: Kind) -> None:
    """The crash matrix of packs: each effect of a session of small files, in turn."""

    def life(troubles: list[Trouble]) -> tuple[ModelTable, int]:
        table = packing(mode)
        fill(table, "AB")
        table.start(run)
        table.source.write("A", b"A9")
        table.source.remove("B")
        fill(table, "CD")
        troubled = table.start(run, troubles).process
        table.expire()
        table.start(run)
        for stopped in table.stopped:
            table.go_on(stopped)
        effects = len(troubled.effects)
        fill(table, "E")
        table.start(run)
        settle(table)
        return table, effects

    holds_at_every_effect(life, kind, least=15)


def written_ms(table: ModelTable, name: str) -> int:
    version = table.source.stat(name)
    assert version is not None
    return version.mtime_us // 1000


def scheduled(driver: Driver) -> TriggerReport:
    return driver.trigger_scheduled()


def test_files_wait_for_others_unless_a_person_asks() -> None:
    table = packing("append", waitFor="60")
    fill(table, "G")
    table.start(run)
    table.source.remove("G")  # which append leaves where it is, and which starts nothing
    fill(table, "A")
    table.now_ms = written_ms(table, "A")
    waits = table.start(scheduled)
    assert waits.report is not None
    assert waits.report.result is TriggerResult.NOTHING
    assert any("1 new file of 5 B wait for others" in note for note in waits.report.notes)
    table.later(3600)
    staged = table.start(scheduled).report
    assert staged is not None
    assert staged.result is TriggerResult.STAGED
    fill(table, "B")
    goes_on = table.start(scheduled).report
    assert goes_on is not None
    assert goes_on.result is TriggerResult.STAGED, "an open session waits for nothing"
    table.start(run)
    fill(table, "C")
    table.now_ms = written_ms(table, "C")
    assert builds(table.start(run)) != []
    ends_well(table)


@pytest.mark.parametrize(("mode", "waits"), [("append", True), ("sync", False)])
def test_a_rewritten_file_waits_only_where_it_is_added_beside_its_older_version(
    mode: str, waits: bool
) -> None:
    table = packing(mode, waitFor="60")
    fill(table, "AB")
    table.start(run)
    table.source.write("A", b"A9")
    table.now_ms = written_ms(table, "A")
    report = table.start(scheduled).report
    assert report is not None
    assert (report.result is TriggerResult.NOTHING) == waits


@pytest.mark.parametrize("is_plain", [False, True])
def test_a_published_file_that_comes_back_while_it_is_read_is_not_shown_twice(
    monkeypatch: pytest.MonkeyPatch, is_plain: bool
) -> None:
    table = packing("append")
    fill(table, "AB")
    table.start(run)
    if is_plain:  # which replaces no pack
        del table.options["layout.pack"]
        table.options["consistentPushEnabled"] = "false"
    store, real = table.source, builder.build
    former = store._objects[store._path("A")]
    table.source.write("A", b"A9")

    def build(
        build_spec: BuildSpec, task: FileTask, source: ObjectStore, built: builder.Built
    ) -> Receipt | Failure:
        if task.file.uri.endswith("/A"):  # somebody restores it, with its former time
            store._objects[store._path("A")] = former
        return real(build_spec, task, source, built)

    monkeypatch.setattr(builder, "build", build)
    table.start(run)
    monkeypatch.setattr(builder, "build", real)
    assert rows(table) == Counter(["A1", "A2", "B1", "B2"])
    quiet = table.start(run).report
    assert quiet is not None
    assert quiet.result is TriggerResult.NOTHING
    assert rows(table) == Counter(["A1", "A2", "B1", "B2"])


@pytest.mark.parametrize("retries", [0, 3])
def test_packs_that_failed_do_not_count_once_one_is_built(retries: int) -> None:
    table = packing("append")
    table.options["consistentPushMaxRetries"] = retries
    fill(table, "AB")
    for _ in range(3):
        table.start(run, [Trouble("build pack", Kind.CALL_LOST)])
    table.start(run, [Trouble("push", Kind.DIES_BEFORE)])
    table.expire()
    last = table.start(run)
    assert builds(last) == []
    assert last.report is not None
    assert last.report.session is not None
    assert last.report.session.retry_count == 0
    assert rows(table) == Counter(["A1", "A2", "B1", "B2"])


def test_a_lost_pointer_and_lost_snapshots_are_made_again_from_the_segments_of_packs() -> None:
    table = packing("append")
    fill(table, "AB")
    table.start(run)
    for info in [*table.staging.list("snapshots")]:
        table.staging.delete(info.key)
    nodes = table.zookeeper.nodes
    for path in [path for path in nodes if "consistentPush" in path]:
        del nodes[path]
    found = table.start(run).report
    assert found is not None
    assert found.result is TriggerResult.NOTHING
    assert [pack.files for pack in snapshot(table).packs] == [2]
    fill(table, "C")
    table.start(run)
    assert rows(table) == Counter(["A1", "A2", "B1", "B2", "C1", "C2"])
