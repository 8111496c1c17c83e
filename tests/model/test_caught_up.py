"""A pointer of a restored backup: which newer snapshot becomes the ledger, and what comes with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fakes.stores.memory import MemoryObjectStore
from model.world.lives import make_table, remove, write
from model.world.process import Kind, Trouble
from model.world.restored import (
    pointer,
    restore_nodes,
    rows,
    snapshot,
    start,
    store_of,
    take_backup,
    watch,
)
from model.world.table import TABLE, Job, ModelTable, run

from pinot_assets.core.stored_format import FIRST, NEWEST
from pinot_assets.core.untrusted import ByteLimit
from pinot_assets.errors import PinotAssetsError, SessionError, SnapshotCorrupt, SourceError
from pinot_assets.gc.collect import collect
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import snapshot_refs
from pinot_assets.session.values.state import Outcome, Pointer, pointer_to_bytes
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef


def rollback(driver: Driver) -> None:
    driver.rollback()


def clear(driver: Driver) -> None:
    driver.clear()


def collects(driver: Driver) -> None:
    collect(driver, 0, lambda done, of: None)


def publish(table: ModelTable, **files: str) -> SnapshotRef:
    write(**files)(table)
    table.later(3600)
    assert start(table, run)[1] is None
    ref = pointer(table).current_snapshot
    assert ref is not None
    return ref


def damage(table: ModelTable, ref: SnapshotRef) -> None:
    """Somebody's text lies there."""
    table.staging.delete(ref.key)
    table.staging.put_if_absent(ref.key, b"poison")


def test_the_pointer_takes_the_format_of_the_snapshot() -> None:
    """The backup is older than `state upgrade`: what it names has been written in the newer format since."""
    table = make_table("sync")
    client = table.zookeeper.client()
    client.ensure_path(store_of(table).path)
    client.set(store_of(table).path, pointer_to_bytes(Pointer(next_seq=2, history=("cp1",))))
    publish(table, A="A1")
    backup = take_backup(table)
    assert pointer(table).format == FIRST
    start(table, lambda driver: driver.upgrade())
    newest = publish(table, B="B1")
    assert snapshot(table).format == NEWEST
    restore_nodes(table, backup)
    assert pointer(table).format == FIRST
    assert start(table, run)[1] is None
    assert (pointer(table).current_snapshot, pointer(table).format) == (newest, NEWEST)
    publish(table, C="C1")
    assert store_of(table).sessions()[-1].format == NEWEST


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_of_several_newer_ones_it_is_the_one_that_queries_see(mode: str) -> None:
    table = make_table(mode)
    publish(table, A="A1", B="B1")
    backup = take_backup(table)
    refs = [publish(table, A=f"A{n}", **{f"F{n}": f"F{n}"}) for n in (2, 3, 4)]
    restore_nodes(table, backup)
    shown = watch(table)
    assert start(table, run)[1] is None
    assert pointer(table).current_snapshot == refs[-1]
    assert len(shown) == 1


@pytest.mark.parametrize("asked", ["catch up", "rebuild"])
def test_the_files_of_other_snapshots_are_not_read(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table keeps hundreds, each maybe of a million files."""
    table = make_table("sync")
    publish(table, A="A1")
    backup = take_backup(table)
    newest = [publish(table, B=f"B{n}") for n in range(1, 6)][-1]
    restore_nodes(table, backup)
    read, whole = Staging.snapshot, list[SnapshotRef]()

    def noting(staging: Staging, ref: SnapshotRef) -> Snapshot:
        whole.append(ref)
        return read(staging, ref)

    monkeypatch.setattr(Staging, "snapshot", noting)
    if asked == "catch up":
        start(table, lambda driver: driver.clear())
    else:
        start(table, lambda driver: driver.rebuild())
    assert pointer(table).current_snapshot == newest
    assert set(whole) == {newest}


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_a_rollback_that_the_pointer_does_not_know_is_no_reason_to_bring_back_what_it_took(mode: str) -> None:
    """Two snapshots are of what queries see: that of the rollback is the newer one, with what it holds."""
    table = make_table(mode)
    publish(table, A="A1")
    backup = take_backup(table)
    publish(table, B="B1")
    publish(table, C="C1")
    start(table, rollback)
    held = pointer(table)
    assert set(rows(table)) == {"A1", "B1"}
    restore_nodes(table, backup)
    shown = watch(table)
    for _ in range(2):
        assert start(table, run)[1] is None
    assert len(shown) == 1
    now = pointer(table)
    assert (now.current_snapshot, now.hold is not None) == (held.current_snapshot, held.hold is not None)
    start(table, lambda driver: driver.resume())
    assert start(table, run)[1] is None
    assert set(rows(table)) == {"A1", "B1", "C1"}


@pytest.mark.parametrize(("mode", "holds"), [("append", True), ("sync", True), ("swap", False)])
def test_what_the_old_pointer_held_back_is_still_held(mode: str, holds: bool) -> None:
    """But of a swap, which shows all files or none: it has published since, so nothing is held any more."""
    table = make_table(mode)
    publish(table, A="A1")
    publish(table, B="B1")
    start(table, rollback)
    assert pointer(table).hold is not None
    backup = take_backup(table)
    if mode == "swap":
        start(table, lambda driver: driver.resume())
    newest = publish(table, C="C1")
    restore_nodes(table, backup)
    shown = watch(table)
    for _ in range(2):
        assert start(table, run)[1] is None
    assert (pointer(table).current_snapshot, pointer(table).hold is not None) == (newest, holds)
    assert len(shown) == 1
    assert ("B1" in rows(table)) is not holds


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_what_came_in_again_since_is_not_held_any_more(mode: str) -> None:
    """Nothing is left of the hold: then there is none, or sensors would look at the table for ever."""
    table = make_table(mode)
    publish(table, A="A1")
    publish(table, B="B1")
    start(table, rollback)
    backup = take_backup(table)
    start(table, lambda driver: driver.resume())
    publish(table, C="C1")
    restore_nodes(table, backup)
    start(table, clear)
    assert pointer(table).hold is None


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_a_session_that_the_old_pointer_takes_for_open_ends_as_it_did(mode: str) -> None:
    table = make_table(mode)
    publish(table, A="A1")
    write(B="B1")(table)
    table.start(run, [Trouble("build", Kind.DIES_AFTER)])
    table.expire()
    backup = take_backup(table)
    table.later(3600)
    assert start(table, run)[1] is None
    published = snapshot(table)
    restore_nodes(table, backup)
    assert pointer(table).active_session
    assert start(table, run)[1] is None
    assert not pointer(table).active_session
    [session] = [one for one in store_of(table).sessions() if one.id == published.session]
    assert (session.outcome, session.done_ms) == (Outcome.PUBLISHED, published.published_ms)
    assert session.lineage_entry_id == published.lineage_entry_id


JOBS: dict[str, Job] = {
    "run": run,
    "clear": clear,
    "rollback": rollback,
    "gc": collects,
}


def mixed() -> ModelTable:
    """Queries see a mix: Pinot's lineage was lost, so that what was replaced is visible again."""
    table = make_table("sync")
    publish(table, A="A1", B="B1")
    backup = take_backup(table)
    publish(table, A="A2")
    publish(table, A="A3", C="C1")
    remove("B")(table)
    publish(table)
    restore_nodes(table, backup)
    table.pinot._table(TABLE).entries.clear()
    assert set(rows(table)) >= {"A2", "A3", "C1"}
    return table


@pytest.mark.parametrize("job", JOBS)
def test_a_mix_of_two_stops_the_table_and_nothing_is_deleted(job: str) -> None:
    table = mixed()
    there, shown = table.pinot.all_segments(TABLE), watch(table)
    for _ in range(2):
        _, error = start(table, JOBS[job])
        assert isinstance(error, SessionError)
        assert "its pointer in ZooKeeper is older than what queries see" in str(error)
    assert table.pinot.all_segments(TABLE) == there
    assert len(shown) == 1


def test_of_a_mix_a_person_chooses() -> None:
    """Here the newest kept snapshot, which is of all files."""
    table = mixed()
    newest = max(Staging(table.staging).outline(ref).seq for ref in snapshot_refs(Staging(table.staging)))
    assert start(table, lambda driver: driver.rollback(str(newest)))[1] is None
    start(table, lambda driver: driver.resume())
    for _ in range(2):
        assert start(table, run)[1] is None
    assert rows(table) == Counter(text.decode() for text in table.files.values())


@pytest.mark.parametrize("job", JOBS)
def test_a_snapshot_that_is_poison_stops_the_table_where_queries_see_it(job: str) -> None:
    table = make_table("sync")
    publish(table, A="A1")
    backup = take_backup(table)
    publish(table, B="B1")
    damage(table, publish(table, C="C1"))
    restore_nodes(table, backup)
    there, shown = table.pinot.all_segments(TABLE), watch(table)
    _, error = start(table, JOBS[job])
    assert isinstance(error, SessionError)
    assert table.pinot.all_segments(TABLE) == there
    assert len(shown) == 1


def test_a_snapshot_that_is_poison_and_that_nobody_sees_is_no_matter() -> None:
    table = make_table("sync")
    publish(table, A="A1")
    backup = take_backup(table)
    between = publish(table, B="B1")
    newest = publish(table, C="C1")
    damage(table, between)
    table.staging.put_if_absent(f"snapshots/99-{'0' * 64}.json", b"[" * 1000)
    restore_nodes(table, backup)
    shown = watch(table)
    assert start(table, run)[1] is None
    assert pointer(table).current_snapshot == newest
    assert len(shown) == 1
    publish(table, D="D1")
    assert set(rows(table)) == {"A1", "B1", "C1", "D1"}


# --- the store does not answer -----------------------------------------------------------------------


@contextmanager
def silent(table: ModelTable, ref: SnapshotRef) -> Iterator[None]:
    """The object is there, and the store does not give it out now."""
    read = type(table.staging).read

    def refuse(store: MemoryObjectStore, key: str, *most: ByteLimit) -> bytes:
        if key == ref.key:
            raise SourceError("the store does not answer", why="503")
        return read(store, key, *most)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(table.staging), "read", refuse)
        yield


@pytest.mark.parametrize("which", ["the rollback's", "the one before"])
def test_a_store_that_does_not_answer_makes_no_rollback_forgotten(which: str) -> None:
    """Taken for damaged, the snapshot of a rollback would be left out, and what it took back would return."""
    table = make_table("sync")
    publish(table, A="A1")
    backup = take_backup(table)
    publish(table, B="B1")
    publish(table, C="C1")
    before = pointer(table).current_snapshot
    start(table, rollback)
    held = pointer(table)
    restore_nodes(table, backup)
    shown = watch(table)
    ref = held.current_snapshot if which == "the rollback's" else before
    assert ref is not None
    with silent(table, ref):
        _, error = start(table, run)
        assert type(error) is SourceError
    for _ in range(2):
        assert start(table, run)[1] is None
    assert (pointer(table).current_snapshot, pointer(table).hold is not None) == (held.current_snapshot, True)
    assert len(shown) == 1


def test_a_store_that_does_not_answer_has_lost_nothing() -> None:
    """Nobody is told to restore a backup."""
    table = make_table("sync")
    ref = publish(table, A="A1")
    with silent(table, ref):
        error: PinotAssetsError | None = start(table, run)[1]
    assert type(error) is SourceError
    table.staging.delete(ref.key)
    with pytest.raises(SnapshotCorrupt, match="cannot be read"):
        Staging(table.staging).snapshot(ref)
    assert ref not in snapshot_refs(Staging(table.staging))
