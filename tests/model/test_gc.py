"""What nothing needs is taken away, and whatever happens to that leaves a table that works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from model.world.ending import settle
from model.world.process import Kind, Trouble
from model.world.specs import spec_of
from model.world.table import CLUSTER, HOUR_MS, TABLE, ModelTable, clear, run

from pinot_assets.errors import PinotNotFound, SessionHeld
from pinot_assets.gc import orphans
from pinot_assets.gc.collect import Collected, collect
from pinot_assets.gc.orphans import Garbage, garbage
from pinot_assets.ingest.contract.task_outputs import bad_rows_key
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.pinot.shadow_table import shadow_config, shadow_name, shadow_schema
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging, staged
from pinot_assets.session.stores.stored_snapshots import read_snapshots, snapshot_refs
from pinot_assets.source.file_table import ObjectInfo

DAY = 25 * 3600
TROUBLES = [Kind.DIES_AFTER, Kind.CALL_LOST, Kind.REPLY_LOST]


class Gc:
    """As `pinot-assets gc --apply`; the store of the model stamps all with about the same moment."""

    __name__ = "gc"

    def __init__(self, grace_ms: int = 0) -> None:
        self.grace_ms = grace_ms
        self.collected: Collected | None = None

    def __call__(self, driver: Driver) -> None:
        self.collected = collect(driver, self.grace_ms, lambda done, total: None)


def plan(table: ModelTable) -> Garbage:
    """As `pinot-assets gc`."""
    collected: list[Garbage] = []

    def gc(driver: Driver) -> None:
        collected.append(garbage(driver, 0))

    before = len(table.zookeeper.writes), {info.key for info in table.staging.list()}
    process = table.start(gc).process
    assert (process.error, process.effects) == (None, [])
    assert before == (len(table.zookeeper.writes), {info.key for info in table.staging.list()})
    return collected[0]


def littered() -> ModelTable:
    """Four sessions, one of them abandoned, litter of the dead; then the spec asks for fewer snapshots."""
    table = ModelTable(spec_of, "sync")
    for number in range(3):
        table.source.write("A", f"A{number}a".encode())
        table.source.write(f"B{number}", f"B{number}b".encode())
        if number == 1:
            table.start(run, [Trouble("start_replace_segments", Kind.DIES_AFTER)])
            table.expire()
            table.start(clear)  # reverts the entry, deletes what was staged; the plan stays
        table.start(run)
        table.later(DAY)
    table.options["snapshotsToKeep"] = 1
    stray = f"{TABLE}__cp1-abcdef_0_0_0"  # an executor that outlived its driver
    for key in (f"segments/{stray}.tar.gz", "sessions/cp1-abcdef/files/x.json", "segments/readme.txt"):
        table.staging.write(key, b"late")
    return table


def kept(table: ModelTable) -> list[int]:
    """Numbers of the kept snapshots; each can be read, and every tar of it."""
    staging = Staging(table.staging)
    snapshots = list(read_snapshots(staging, snapshot_refs(staging)))
    assert len(snapshots) == len(snapshot_refs(staging))
    for output in (o for one in snapshots for o in one.snapshot.segments.values()):
        staging.read(output.tar_uri)
        staging.read(output.metadata_uri)
    return [one.snapshot.seq for one in snapshots]


def test_a_plan_writes_nothing_and_names_what_apply_takes_away() -> None:
    table = littered()
    planned = plan(table)
    gc = Gc()
    assert table.start(gc).process.error is None
    assert gc.collected is not None
    assert gc.collected.failed == {}
    assert {o.name for o in gc.collected.removed} == {o.name for o in planned.old} != set()
    assert {
        orphans.OrphanKind.SNAPSHOT,
        orphans.OrphanKind.ROWS,
        orphans.OrphanKind.TAR,
        orphans.OrphanKind.SESSION,
    } <= {o.kind for o in planned.old}
    assert kept(table) == [4, 3]
    assert table.staging.read("segments/readme.txt") == b"late"
    assert plan(table).old == ()  # once more: nothing left


def test_what_is_younger_than_the_grace_time_stays() -> None:
    table, gc = littered(), Gc(HOUR_MS)
    before = {info.key for info in table.staging.list()}
    table.start(gc)
    assert gc.collected is not None
    assert gc.collected.garbage.old == ()
    assert gc.collected.garbage.young
    assert before == {info.key for info in table.staging.list()}


def test_sources_are_never_touched_and_queries_see_the_same() -> None:
    table = littered()
    files, visible = table.files, table.pinot.visible_segments(TABLE)
    table.start(Gc())
    assert (table.files, table.pinot.visible_segments(TABLE)) == (files, visible)
    settle(table)
    assert not table.truth.violations


@pytest.mark.parametrize("kind", TROUBLES)
def test_whatever_happens_while_it_is_taken_away(kind: Kind) -> None:
    places = len(littered().start(Gc()).process.effects)
    assert places > 10
    for place in range(1, places + 1):
        table = littered()
        table.start(Gc(), [Trouble(place, kind)])
        table.expire()
        assert {3, 4} <= {*kept(table)}, f"{kind} at {place}"
        gc = Gc()
        table.later(60)
        assert table.start(gc).process.error is None
        assert plan(table).old == (), f"{kind} at {place}"
        table.source.write("A", b"A9")
        table.start(run)
        settle(table)
        assert not table.truth.violations, f"{kind} at {place}"


def test_an_open_session_keeps_all_that_is_its_own() -> None:
    table = littered()
    table.source.write("A", b"A9")
    table.start(run, [Trouble("end_replace_segments", Kind.DIES_BEFORE)])
    table.expire()
    open_session = table.truth.open_session
    mine = {info.key for info in table.staging.list() if "cp5-" in info.key}
    assert open_session
    assert len(mine) > 3
    table.start(Gc())
    assert mine == {info.key for info in table.staging.list() if "cp5-" in info.key}
    table.start(run)
    settle(table)
    assert not table.truth.violations


def test_it_does_nothing_while_another_run_holds_the_table() -> None:
    table = littered()
    table.source.write("A", b"A9")
    table.start(run, [Trouble("push", Kind.STOPS_BEFORE)])
    before = {info.key for info in table.staging.list()}
    assert isinstance(table.start(Gc()).process.error, SessionHeld)
    assert before == {info.key for info in table.staging.list()}
    (other,) = table.stopped
    table.go_on(other)
    assert other.process.done


def test_a_lost_pointer_keeps_all_that_a_new_ledger_is_made_of() -> None:
    table = littered()
    path = next(p for p in table.zookeeper.nodes if p.endswith("/consistentPush"))
    for node in [p for p in table.zookeeper.nodes if p.startswith(path)]:
        del table.zookeeper.nodes[node]
    before = {info.key for info in table.staging.list()}
    gc = Gc()
    table.start(gc)
    assert gc.collected is not None
    assert "ZooKeeper has no snapshot" in gc.collected.garbage.notes[0]
    assert before == {info.key for info in table.staging.list()}
    table.start(run)
    assert kept(table)


def test_a_kept_snapshot_that_cannot_be_read_keeps_all_that_is_staged() -> None:
    table = littered()
    table.options["snapshotsToKeep"] = 5
    refs = snapshot_refs(Staging(table.staging))
    table.staging.write(refs[2].key, b"damaged")
    before = {info.key for info in table.staging.list()}
    gc = Gc()
    table.start(gc)
    assert gc.collected is not None
    assert "cannot be read" in gc.collected.garbage.notes[0]
    assert before == {info.key for info in table.staging.list()}


def test_a_table_that_is_gone_from_pinot_is_left_alone() -> None:
    table = littered()
    table.pinot.delete_table(TABLE)
    assert isinstance(table.start(Gc()).process.error, PinotNotFound)


def hidden(table: ModelTable) -> str:
    """A segment that Pinot did not delete when its switch was taken back; its name."""
    (entry,) = table.pinot.lineage(TABLE).in_state(LineageState.REVERTED)
    name = sorted(entry.segments_to)[0]
    staging = Staging(table.staging)
    (newest, *_) = read_snapshots(staging, snapshot_refs(staging))
    output = next(iter(newest.snapshot.segments.values()))
    table.pinot.push(TABLE, [replace(output, segment=name)], staged=staging)
    return name


def test_what_pinot_does_not_delete_of_a_switch_that_was_taken_back() -> None:
    table = littered()
    name = hidden(table)
    assert [o.name for o in plan(table).old if o.kind is orphans.OrphanKind.SEGMENT] == [name]
    table.start(Gc())
    assert name not in table.pinot.all_segments(TABLE)


@pytest.mark.parametrize("kind", [Kind.CALL_LOST, Kind.REPLY_LOST])
def test_the_next_owner_waits_for_a_deletion_that_gave_no_answer(kind: Kind) -> None:
    """Rule R2: it may still arrive, so the name of who sent it stays in the pointer."""
    table = littered()
    name = hidden(table)
    store = SessionStore(table.zookeeper.client(), CLUSTER, f"{TABLE}_OFFLINE")
    assert store.pointer().owner is None
    gc = Gc()
    table.start(gc, [Trouble("delete_segments", kind)])
    assert gc.collected is not None
    assert [*gc.collected.failed] == [name]
    assert store.pointer().owner is not None


def test_a_listing_without_the_current_snapshot_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a folder behind a symbolic link, say: what it does not show may be needed."""
    table = littered()
    (current, *_) = snapshot_refs(Staging(table.staging))

    def lacking(staging: Staging, folder: str) -> Iterator[ObjectInfo]:
        return (info for info in staged(staging, folder) if info.key != current.key)

    monkeypatch.setattr("pinot_assets.gc.orphans.staged", lacking)
    before = {info.key for info in table.staging.list()}
    gc = Gc()
    table.start(gc)
    assert gc.collected is not None
    assert f"lacks the current snapshot, {current.key}" in gc.collected.garbage.notes[0]
    assert before == {info.key for info in table.staging.list()}


@pytest.mark.parametrize("keep", [None, 1])
def test_one_that_a_revert_reaches_and_cannot_be_read_keeps_only_what_is_staged(keep: int | None) -> None:
    table = littered()
    for content in (b"A8", b"A9"):
        table.source.write("A", content)
        table.start(run)
    del table.options["snapshotsToKeep"]
    if keep is not None:
        table.options["snapshotsToKeep"] = keep
    table.staging.write(snapshot_refs(Staging(table.staging))[1].key, b"damaged")
    table.pinot.put_schema(shadow_schema({"dimensionFieldSpecs": [{"name": "gone"}]}, TABLE))
    before = {info.key for info in table.staging.list()}
    gc = Gc()
    assert table.start(gc).process.error is None
    assert gc.collected is not None
    assert "cannot be read" in gc.collected.garbage.notes[0]
    assert before == {info.key for info in table.staging.list()}
    assert [o.name for o in gc.collected.removed] == [shadow_name(TABLE)]


def test_a_shadow_table_that_an_audit_left() -> None:
    table = littered()
    config = shadow_config(table.spec.table_json, TABLE)
    table.pinot.put_schema(shadow_schema(table.spec.schema_json, TABLE))
    table.pinot.create_table(config)
    assert orphans.OrphanKind.SHADOW in {o.kind for o in plan(table).old}
    table.start(Gc())
    assert table.pinot.get_table_config(shadow_name(TABLE)) is None
    assert table.pinot.get_table_config(TABLE) is not None


def test_the_schema_alone_of_one() -> None:
    table = littered()
    table.pinot.put_schema(shadow_schema({"dimensionFieldSpecs": [{"name": "gone"}]}, TABLE))
    assert orphans.OrphanKind.SHADOW in {o.kind for o in plan(table).old}
    table.start(Gc())
    assert table.pinot.get_schema(shadow_name(TABLE)) is None
    assert table.pinot.get_schema(TABLE) is not None


def back_to_the_first(driver: Driver) -> None:
    """As `pinot-assets rollback --to 1`."""
    driver.rollback("1")


@pytest.mark.parametrize("place", ["start_replace_segments", "end_replace_segments"])
def test_the_target_of_a_rollback_that_is_half_way_stays(place: str) -> None:
    table = littered()
    target = Staging(table.staging).snapshot(snapshot_refs(Staging(table.staging))[-1])
    table.start(back_to_the_first, [Trouble(place, Kind.DIES_BEFORE)])
    table.expire()
    assert table.truth.open_session
    gc = Gc()
    assert table.start(gc).process.error is None
    assert 1 in kept(table)
    table.later(60)
    table.start(run)  # finishes it
    now = next(read_snapshots(Staging(table.staging), snapshot_refs(Staging(table.staging)))).snapshot
    assert now.mode == "ROLLBACK"
    assert [f.uri for f in now.files] == [f.uri for f in target.files]
    assert table.pinot.visible_segments(TABLE) == set(now.segments)


def test_tars_of_a_snapshot_that_is_too_young_to_go_stay_however_old() -> None:
    table = littered()
    for info in list(table.staging.list("segments")):
        table.staging.write(info.key, table.staging.read(info.key), mtime_us=-30 * HOUR_MS * 1000)
    before = kept(table)
    gc = Gc(HOUR_MS)
    table.start(gc)
    assert gc.collected is not None
    assert [o.name for o in gc.collected.removed] == [f"segments/{TABLE}__cp1-abcdef_0_0_0.tar.gz"]
    assert kept(table) == before


def put_aside(table: ModelTable, session: str, days: int) -> str:
    """An object with rows that were put aside so many days ago, of a file version that is published."""
    staging = Staging(table.staging)
    file = next(read_snapshots(staging, snapshot_refs(staging))).snapshot.files[0]
    key = f"sessions/{session}/{bad_rows_key(file.uri, file.fingerprint, 0)}"
    made_us = max(info.fingerprint.mtime_us for info in table.staging.list()) - days * 24 * HOUR_MS * 1000
    table.staging.write(key, b"rows", mtime_us=made_us)
    return key


@pytest.mark.parametrize("kind", TROUBLES)
def test_rows_put_aside_go_after_their_days_whatever_happens_meanwhile(kind: Kind) -> None:
    def with_rows() -> tuple[ModelTable, str]:
        table = ModelTable(spec_of, "sync")
        table.source.write("A", b"A1")
        table.start(run)
        published = next(
            read_snapshots(Staging(table.staging), snapshot_refs(Staging(table.staging)))
        ).snapshot
        young, old = (
            put_aside(table, f"{session}-abcdef", days) for session, days in (("cp9", 29), ("cp8", 31))
        )
        mine = put_aside(table, published.session, 31)
        assert len({young, old, mine}) == 3
        return table, young

    places = len(with_rows()[0].start(Gc(HOUR_MS)).process.effects)
    for place in range(1, places + 1):
        table, young = with_rows()
        table.start(Gc(HOUR_MS), [Trouble(place, kind)])
        table.expire()
        table.later(60)
        gc = Gc(99 * 24 * HOUR_MS)  # a grace time is no longer retention
        assert table.start(gc).process.error is None
        there = {info.key for info in table.staging.list() if "/bad-rows/" in info.key}
        assert there == {young}, f"{kind} at {place}"
        table.source.write("A", b"A9")
        table.start(run)
        settle(table)
        assert not table.truth.violations, f"{kind} at {place}"


def test_rows_put_aside_by_an_open_session_stay_and_go_with_the_file_that_left_the_table() -> None:
    table = littered()
    table.source.write("A", b"A9")
    table.start(run, [Trouble("end_replace_segments", Kind.DIES_BEFORE)])
    table.expire()
    opened = put_aside(table, table.truth.open_session, 31)
    gone = put_aside(table, "cp2-abcdef", 2)
    table.start(Gc(0))
    assert {opened, gone} <= {info.key for info in table.staging.list()}
    table.start(run)
    table.source.write("A", b"A10")  # the version that the rows come from is not published any more
    table.start(run)
    table.start(Gc(0))
    assert [info.key for info in table.staging.list() if "/bad-rows/" in info.key] == []
