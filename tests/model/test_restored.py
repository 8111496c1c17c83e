"""ZooKeeper, staging area and Dagster's database put back to an earlier moment, in every combination: queries
keep their rows, what was published becomes the ledger again, and the next run converges."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from fakes.stores.memory import open_memory
from model.world.builder import ROWS
from model.world.lives import PUSHES, make_table, write
from model.world.process import Kind, Trouble
from model.world.restored import (
    MOMENTS,
    STAGINGS,
    ZOOKEEPERS,
    Restore,
    converge,
    life,
    pointer,
    rebuild,
    restore_nodes,
    restore_pointer,
    restore_staging,
    rows,
    snapshot,
    start,
    store_of,
    watch,
)
from model.world.table import MODES, TABLE, Job, ModelTable, run

from pinot_assets.errors import SessionError, SnapshotCorrupt
from pinot_assets.gc.collect import collect
from pinot_assets.gc.orphans import garbage
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.scheduling.files_tick import decide_tick
from pinot_assets.session.decide.run_decision import PlannedAction
from pinot_assets.session.detect.observe import list_source, observe
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import snapshot_refs
from pinot_assets.session.values.state import Outcome, seq_of


def tick(table: ModelTable, cursor: str, now_s: int) -> tuple[bool, str]:
    """Of the files sensor."""
    observation = observe(store_of(table), Staging(table.staging))
    decided = decide_tick(
        table.spec, list_source(table.spec, open_memory(table.source.uri)), observation, cursor, now_s
    )
    return decided.launch, decided.cursor


SCENES = [
    *((mode, moment) for mode in MODES for moment in MOMENTS),
    *((push, "amid a switch") for push in PUSHES),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("staging", STAGINGS)
@pytest.mark.parametrize("zookeeper", ZOOKEEPERS)
@pytest.mark.parametrize(("mode", "moment"), SCENES)
def test_r02_r17_queries_keep_their_rows_and_the_next_run_converges(
    mode: str, moment: str, zookeeper: str, staging: str
) -> None:
    table, backup = life(mode, moment)
    STAGINGS[staging](table, backup)
    ZOOKEEPERS[zookeeper](table, backup)
    shown = watch(table)
    before = rows(table)
    write(Z="Z1")(table)
    converge(table)
    after = Counter(content for text in table.files.values() for content in text.decode().split())
    if mode == "append":
        # A session that was open when the backup was taken keeps the versions that it has built.
        built = {"A1", "A2"} - set(before)
        assert set(rows(table)) - built == (set(before) | set(after)) - built
        assert max(rows(table).values()) == 1, "queries see rows twice"
    else:
        assert rows(table) == after
    assert all(not (before & after) - state for state in shown), "rows of files that stayed were away"
    ledger = snapshot(table)
    assert set(ledger.segments) == table.pinot.visible_segments(TABLE)
    assert not pointer(table).active_session
    assert not table.pinot.lineage(TABLE).in_state(LineageState.IN_PROGRESS)
    numbers = [seq_of(name) or 0 for name in table.pinot.all_segments(TABLE)]
    assert pointer(table).next_seq > max(numbers)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("restore", [restore_pointer, restore_nodes])
def test_r18_the_newer_snapshot_that_queries_see_is_adopted(mode: str, moment: str, restore: Restore) -> None:
    """Without a person, without a build, and with all that is known of it."""
    table, backup = life(mode, moment)
    known, newest = pointer(table), snapshot(table)
    restore(table, backup)
    shown = watch(table)
    tick(table, "", 1000)  # the sensors can look at it
    notes, error = start(table, run)
    assert error is None
    assert len(shown) == 1, "queries have seen a change"
    assert any(f"exactly snapshot {newest.session}, which is the ledger now" in note for note in notes)
    now = pointer(table)
    assert (now.current_snapshot, now.active_session) == (known.current_snapshot, "")
    assert now.next_seq >= known.next_seq
    assert snapshot(table) == newest, "audit and parent are those that were written"
    for session in store_of(table).sessions():
        assert session.outcome is not Outcome.OPEN


@pytest.mark.parametrize("mode", MODES)
def test_a_plan_of_a_run_says_so(mode: str) -> None:
    table, backup = life(mode, "amid a switch")
    restore_nodes(table, backup)
    plans = []
    start(table, lambda driver: plans.append(driver.plan()))
    assert plans[0].decision.step is PlannedAction.FINISH
    assert "older than what queries see" in plans[0].decision.why
    shown = watch(table)
    _, error = start(table, lambda driver: driver.trigger_planned(plans[0].planned.plan_basis.hash))
    assert error is None
    assert len(shown) == 1


def test_a_pointer_whose_snapshot_has_expired_since_stops_no_sensor() -> None:
    table, backup = life("sync", "between sessions")
    restore_pointer(table, backup)
    ref = pointer(table).current_snapshot
    assert ref is not None
    newest = max(Staging(table.staging).outline(r).seq for r in snapshot_refs(Staging(table.staging)))
    table.staging.delete(ref.key)
    observation = observe(store_of(table), Staging(table.staging))
    assert observation.snapshot is not None
    assert observation.snapshot.seq == newest
    write(Z="Z1")(table)
    assert tick(table, "", 1000)[0]
    assert start(table, run)[1] is None
    assert rows(table) == Counter(c.decode() for c in table.files.values())


def rollback_to(snapshot: str) -> Job:
    return lambda driver: driver.rollback(snapshot)


def test_the_choice_is_spelled_out_and_each_way_leads_out() -> None:
    """Queries see neither the pointer's snapshot nor exactly a newer one."""
    for way in ("rebuild", "newest", "pointer"):
        table, backup = life("sync", "between sessions")
        newest = snapshot(table)
        restore_nodes(table, backup)
        gone = min(set(newest.segments) - set(snapshot(table).segments))
        table.pinot.delete_segments(TABLE, [gone])
        other = life("sync", "between sessions")[0]  # a segment of a later number that no snapshot names
        stranger = min(set(snapshot(other).segments))
        fake = table.pinot._tables[TABLE]
        there = other.pinot._tables[TABLE]
        fake.segments[stranger] = there.segments[stranger]
        known = there.metadata[stranger]
        fake.metadata[stranger] = replace(known, custom={**known.custom, ROWS: "X1"})
        shown = watch(table)
        for job in (run, lambda driver: driver.clear(), lambda driver: driver.rollback()):
            _, error = start(table, job)
            assert isinstance(error, SessionError)
            text = str(error)
            assert "its pointer in ZooKeeper is older than what queries see" in text
            assert f"pinot-assets session rebuild {TABLE}" in text
            assert f"pinot-assets rollback {TABLE} --to {newest.seq}`" in text
            assert f"pinot-assets rollback {TABLE} --to 1`" in text
        assert len(shown) == 1
        if way == "rebuild":
            _, error = start(table, rebuild)
            assert len(shown) == 1
        else:
            _, error = start(table, rollback_to(str(newest.seq) if way == "newest" else "1"))
            assert len(shown) == 2, "one switch"
        assert error is None
        start(table, lambda driver: driver.resume())
        for _ in range(2):
            _, error = start(table, run)
            assert error is None
        assert rows(table) == Counter(c.decode() for c in table.files.values()), way


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("to", ["", "1"])
def test_a_rollback_that_died_before_its_last_transaction_is_finished_not_stopped(mode: str, to: str) -> None:
    """Its snapshot is newer than the pointer's, and queries see what the pointer does not know."""
    table = make_table(mode)
    for change in (write(A="A1", B="B1"), write(A="A2"), write(B="B2")):
        change(table)
        table.start(run)

    def rollback(driver: Driver) -> None:
        driver.rollback(to)

    # The rows of the snapshot are put first, then its header, after which the driver dies.
    table.start(rollback, [Trouble("put snapshots/4-", kind) for kind in (Kind.TWICE, Kind.DIES_AFTER)])
    table.expire()
    assert len(snapshot_refs(Staging(table.staging))) == 4
    now = rows(table)
    write(C="C1")(table)
    notes, error = start(table, run)
    assert error is None, notes
    assert snapshot(table).seq >= 4
    assert not now - rows(table), "what the rollback brought back is gone"


def test_a_pointer_whose_snapshot_is_missing_says_how_to_go_on() -> None:
    table, backup = life("sync", "between sessions")
    restore_staging(table, backup)
    shown = watch(table)
    _, error = start(table, run)
    assert isinstance(error, SnapshotCorrupt)
    assert "pinot-assets session rebuild" in str(error)
    _, error = start(table, rebuild)
    assert error is None
    builds = len(snapshot(table).files)
    _, error = start(table, run)
    assert error is None
    assert (len(shown), len(snapshot(table).files)) == (1, builds), "nothing was built again"


@pytest.mark.parametrize("mode", MODES)
def test_gc_and_its_plan_leave_alone_what_is_published(mode: str) -> None:
    table, backup = life(mode, "between sessions")
    restore_nodes(table, backup)
    shown = watch(table)
    collected = []
    _, error = start(table, lambda driver: collected.append(garbage(driver, 0)))
    assert error is None
    assert not [o for o in collected[0].old if o.kind == "visible segment"]
    _, error = start(table, lambda driver: collect(driver, 0, lambda done, of: None))
    assert error is None
    assert len(shown) == 1


@pytest.mark.parametrize("mode", MODES)
def test_the_sensor_with_an_old_cursor_launches_what_there_is_to_do(mode: str) -> None:
    """Of a Dagster database that was put back; the cursor is all that decides there."""
    table = make_table(mode)
    write(A="A1")(table)
    launched, old = tick(table, "", 1000)
    assert launched
    table.start(run)
    write(B="B1")(table)
    launched, new = tick(table, old, 2000)
    assert launched
    table.start(run)
    for cursor in (old, new, ""):
        assert not tick(table, cursor, 3000)[0], "all is published"
    write(C="C1")(table)
    for cursor in (old, new, ""):
        assert tick(table, cursor, 4000)[0]
    table.start(run)
    assert set(rows(table)) == {"A1", "B1", "C1"}


def test_what_the_ledger_names_may_be_deleted_and_what_only_pinot_knows_may_not() -> None:
    """At the one door; a plain push on an old Pinot takes the segments of a deleted file away itself."""
    table, backup = life("sync", "between sessions")
    published = set(snapshot(table).segments)
    one = min(published)
    assert start(table, lambda driver: driver._take_lease().switcher().delete([one]))[1] is None
    assert table.pinot.visible_segments(TABLE) == published - {one}
    restore_nodes(table, backup)
    later = published - {one} - set(snapshot(table).segments)
    _, error = start(table, lambda driver: driver._take_lease().switcher().delete(later))
    assert isinstance(error, SessionError)
    assert table.pinot.visible_segments(TABLE) == published - {one}
