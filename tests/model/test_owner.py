"""Two clusters whose tables were given one staging area: neither deletes what the other one has there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.test_gc import Gc
from model.world.lives import make_table, planned, pointer_lost, rolled_back, write
from model.world.process import Kind, Trouble
from model.world.table import TABLE, ModelTable, run

from pinot_assets.errors import RollbackRefused
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import mark_of, snapshot_refs
from pinot_assets.session.values.state import pointer_from_bytes, pointer_to_bytes
from pinot_assets.snapshot.manifest import SnapshotRef

DAY = 25 * 3600


def two_clusters() -> tuple[ModelTable, ModelTable]:
    """The second one keeps one snapshot, and was made a minute later."""
    first, second = make_table("sync"), make_table("sync", snapshotsToKeep=1)
    second.staging = first.staging
    second.zookeeper.nodes["/pinot/PROPERTYSTORE"].made_ms += 60_000
    return first, second


def publish(table: ModelTable, count: int) -> list[str]:
    """So many times, a day apart; what the drivers noted."""
    notes: list[str] = []

    def run_noting(driver: Driver) -> None:
        run(driver)
        notes.extend(driver.notes)

    for number in range(count):
        table.later(DAY)
        write(**{"A": f"A{number}a", f"B{number}": f"B{number}b"})(table)
        assert table.start(run_noting).process.error is None
    return notes


def keys(table: ModelTable) -> set[str]:
    return {info.key for info in table.staging.list()}


def collected(table: ModelTable) -> tuple[str, ...]:
    """What gc noted."""
    gc = Gc()
    process = table.start(gc).process
    assert process.error is None
    assert gc.collected is not None
    assert gc.collected.removed == ()
    return gc.collected.garbage.notes


def test_old_snapshots_stay_where_another_cluster_works() -> None:
    first, second = two_clusters()
    publish(first, 1)
    before = keys(first)
    notes = publish(second, 4)
    assert any("another cluster uses" in note for note in notes)
    assert before <= keys(first)
    write(A="A9")(second)
    assert planned(second).expiring == ()
    write(A="A9")(first)
    assert first.start(run).process.error is None


def test_gc_takes_nothing_where_another_cluster_works_in_its_first_session() -> None:
    first, second = two_clusters()
    write(A="A0a")(first)
    first.start(run, [Trouble("end_replace_segments", Kind.DIES_BEFORE)])
    first.expire()
    second.options.pop("snapshotsToKeep")
    publish(second, 2)
    before = keys(first)
    (note,) = collected(second)
    assert "another cluster uses" in note
    assert before == keys(first)
    assert first.start(run).process.error is None


def test_snapshots_of_an_older_release_are_ours_only_if_the_current_one_leads_back_to_them() -> None:
    first, second = two_clusters()
    publish(first, 1)
    staging = Staging(first.staging)
    for ref in snapshot_refs(staging):  # as a release before this wrote it, beside no mark
        old = replace(staging.snapshot(ref), owner="")
        staging.store.delete(ref.key)
        staging.put_snapshot(old)
    for info in [*staging.store.list("owners")]:
        staging.store.delete(info.key)
    before = keys(first)
    publish(second, 3)
    (note,) = collected(second)
    assert "1 snapshot in" in note
    assert "may belong to another cluster" in note
    assert before <= keys(first)


def test_a_table_whose_every_snapshot_is_of_an_older_release_goes_on_as_before() -> None:
    table = make_table("sync")
    publish(table, 3)
    unnamed(table)
    table.options["snapshotsToKeep"] = 1
    publish(table, 1)
    assert len(snapshot_refs(Staging(table.staging))) == 2


def unnamed(table: ModelTable) -> None:
    """Its snapshots as a release before this wrote them."""
    staging = Staging(table.staging)
    parent: SnapshotRef | None = None
    for ref in reversed(snapshot_refs(staging)):
        old = replace(staging.snapshot(ref), owner="", parent=parent)
        staging.store.delete(ref.key)
        parent = staging.put_snapshot(old)
    path = next(p for p in table.zookeeper.nodes if p.endswith("/consistentPush"))
    node = table.zookeeper.nodes[path]
    pointer = replace(pointer_from_bytes(node.data), current_snapshot=parent)
    node.data = pointer_to_bytes(pointer)


@pytest.mark.parametrize(
    ("owner", "mark"),
    [("pinot-4-17", "owners/pinot-4-17"), ("dev/pinot ü-4-17", "owners/dev_pinot__-4-17")],
)
def test_a_mark_is_a_plain_key(owner: str, mark: str) -> None:
    assert mark_of(owner) == mark


def test_no_way_leads_back_to_a_snapshot_of_another_cluster() -> None:
    first, second = two_clusters()
    second.options.pop("snapshotsToKeep")
    publish(first, 3)
    publish(second, 2)
    ways, owners = set[str](), set[str]()

    def look(driver: Driver) -> None:
        ways.update(way.target.snapshot.session for way in driver.rollback_plans(10))
        owners.add(driver.clients.store.owner())
        with pytest.raises(RollbackRefused, match="has no snapshot 2"):
            driver.rollback_plan("2")

    assert second.start(look).process.error is None
    staging = Staging(first.staging)
    kept = [staging.snapshot(ref) for ref in snapshot_refs(staging)]
    assert len(kept) == 5
    assert len(ways) == 2
    assert ways == {one.session for one in kept if one.owner in owners}


def test_a_lost_pointer_takes_no_rollback_of_the_other_cluster_for_its_own() -> None:
    first, second = two_clusters()
    del second.options["snapshotsToKeep"]
    for table, name in ((first, "a"), (second, "b")):
        table.later(max(0, (first.now_ms - table.now_ms) / 1000))
        for number in range(2):
            write(A=f"A{number}{name}")(table)
            table.start(run)
            table.later(600)
        rolled_back(table)
    visible = first.pinot.visible_segments(TABLE)
    pointer_lost(first)
    first.start(run)
    assert first.pinot.visible_segments(TABLE) == visible
