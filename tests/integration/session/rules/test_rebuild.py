"""The number of the next session (R17), and the ledger of a table whose pointer was lost (R18)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pinot_assets.errors import SessionError, SnapshotCorrupt
from pinot_assets.pinot.lineage import LineageEntry, LineageState
from pinot_assets.session.recover.lost_pointer import REBUILT
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.snapshot.receipt import Output

pytestmark = pytest.mark.integration

Make = Callable[..., Any]
MODES = ("append", "sync", "swap")


@pytest.fixture(params=MODES)
def world(request: pytest.FixtureRequest, make_world: Make) -> Any:
    return published(make_world(request.param))


@pytest.fixture
def synced(make_world: Make) -> Any:
    return published(make_world("sync"))


def published(world: Any) -> Any:
    """P1 and P2; then F1 in two segments and E1, which has no rows."""
    world.write("P1", "P2")
    world.run()
    world.write(F1="F1a F1b")
    (world.source / "E1").write_text("v\n")
    world.run()
    world.watch_anew()
    return world


ALL = ["F1a", "F1b", "P1", "P2"]


def lose_pointer(world: Any) -> None:
    with world.store() as store:
        store.zk.delete(store.path, recursive=True)


def lose_staged(world: Any, *folders: str) -> None:
    store = world.staging.store
    for folder in folders:
        for info in list(store.list(folder)):
            store.delete(info.key)


# --- R17 ---------------------------------------------------------------------------------------------


def test_r17_a_dropped_and_recreated_table_never_meets_old_receipts(synced: Any) -> None:
    builds, old = synced.builds, synced.read_snapshot()
    synced.pinot.delete_table(synced.table)
    synced.pinot.create_table(synced.read_spec().table_json)
    lose_pointer(synced)
    assert synced.run().result is TriggerResult.STAGED
    assert synced.builds == builds + 1  # everything is built again
    assert synced.read_snapshot().seq == old.seq + 1
    assert set(synced.read_snapshot().segments).isdisjoint(old.segments)
    assert synced.visible == ALL


@pytest.mark.parametrize("where", ["staging", "snapshots", "lineage", "segments", "nodes"])
def test_r17_the_next_number_is_beyond_every_one_that_was_seen(make_world: Make, where: str) -> None:
    world = make_world("sync")
    world.write("P1")
    name = f"{world.table}__cp40-0a1b2c_0_0_0"
    table = world.pinot._tables[world.table]
    if where == "staging":
        world.staging.store.put_if_absent("sessions/cp40-0a1b2c/files/x.json", b"{}")
    elif where == "snapshots":
        world.staging.store.put_if_absent(f"snapshots/40-{'ab' * 32}.json", b"{}")
    elif where == "lineage":
        entry = LineageEntry("e", frozenset(), frozenset({name}), LineageState.REVERTED, world.now_ms)
        table.entries["e"] = entry
    elif where == "segments":
        entry = LineageEntry("e", frozenset({name}), frozenset({"x"}), LineageState.COMPLETED, world.now_ms)
        table.entries["e"] = entry
        table.segments[name] = HIDDEN
    else:
        with world.store() as store:
            store.zk.ensure_path(f"{store.path}/cp40")
    world.run()
    assert world.read_snapshot().seq == 41
    assert world.read_pointer().next_seq == 42
    assert all("__cp41-" in segment for segment in world.read_snapshot().segments)


HIDDEN = Output("hidden", 1, 1, "file:///x", 1, "h", "file:///m")


# --- R18: what a missing object means ----------------------------------------------------------------


@pytest.mark.parametrize("damage", ["missing", "mismatching"])
def test_r18_a_snapshot_that_cannot_be_read_stops_the_table(synced: Any, damage: str) -> None:
    key = synced.read_pointer().current_snapshot.key
    data = synced.staging.store.read(key)
    synced.staging.store.delete(key)
    if damage == "mismatching":
        synced.staging.store.put_if_absent(key, data.replace(b'"rows"', b'"rowz"'))
    synced.write("P3")
    builds, calls = synced.builds, len(synced.shown)
    for step in (synced.run, synced.rollback):
        with pytest.raises(SnapshotCorrupt):
            step()
    assert (synced.builds, len(synced.shown)) == (builds, calls)


def test_r18_a_new_table_with_foreign_segments_has_an_empty_ledger(make_world: Make) -> None:
    world = make_world("append")
    world.pinot._tables[world.table].segments["somebody_elses"] = HIDDEN
    world.write("P1")
    world.run()
    assert world.visible == ["P1", "somebody_elses"]


# --- R18: a lost pointer -----------------------------------------------------------------------------


def test_r18_the_kept_snapshot_with_just_these_segments_is_the_ledger_again(world: Any) -> None:
    before, builds = world.read_snapshot(), world.builds
    lose_pointer(world)
    assert world.run().result is TriggerResult.NOTHING
    assert world.read_snapshot() == before
    assert world.builds == builds
    assert any("exactly snapshot" in note for note in world.notes)
    assert world.read_pointer().next_seq > before.seq
    world.rollback()  # the way back is there as well
    assert world.visible == ["P1", "P2"]
    world.assert_settled()


def test_r18_a_rollback_finds_its_ledger_too(synced: Any) -> None:
    lose_pointer(synced)
    synced.rollback()
    assert synced.visible == ["P1", "P2"]


def test_r18_what_a_rollback_held_back_is_held_again(world: Any) -> None:
    world.rollback()
    lose_pointer(world)
    assert world.run().result is TriggerResult.HELD
    assert world.visible == ["P1", "P2"]
    world.resume()
    world.run()
    assert world.visible == ALL
    world.assert_settled()


def test_r18_visible_segments_decide(synced: Any) -> None:
    """A snapshot that is newer than what queries see is not the ledger."""
    newest = synced.read_snapshot()
    entry = newest.lineage_entry_id
    synced.pinot.revert_replace_segments(synced.table, entry)  # by somebody's hand
    lose_pointer(synced)
    synced.run()
    assert any("cp1-" in note and "exactly" in note for note in synced.notes)
    assert synced.visible == ALL  # the source was never told otherwise
    synced.assert_settled()


@pytest.mark.parametrize("lost", [("snapshots",), ("snapshots", "sessions")])
def test_r18_without_snapshots_the_custom_maps_tell(world: Any, lost: tuple[str, ...]) -> None:
    before, builds = world.read_snapshot(), world.builds
    lose_pointer(world)
    lose_staged(world, *lost)
    assert world.run().result is (
        TriggerResult.STAGED if world.read_spec().mode == "swap" else TriggerResult.NOOP
    )
    rebuilt_note = next(note for note in world.notes if "is made again from" in note)
    assert ("content hash of 0 is unknown" in rebuilt_note) is (lost == ("snapshots",))
    # Nothing but the file without rows is read; a swap table, whose mode nobody knows, is swapped once.
    expected = [["E1", "F1", "P1", "P2"]] if world.read_spec().mode == "swap" else [["E1"]]
    assert world.builder.orders[builds:] == expected
    assert {u: (f.fingerprint, f.rows) for u, f in world.read_snapshot().ledger.items()} == {
        u: (f.fingerprint, f.rows) for u, f in before.ledger.items()
    }
    if world.read_spec().mode != "swap":
        assert world.read_snapshot().segments.keys() == before.segments.keys()
    assert world.visible == ALL
    assert len(world.shown) == 1
    world.assert_settled()


def test_r18_renamed_segments_tell_too(synced: Any) -> None:
    synced.write(P1="P1.1")
    synced.run()
    synced.later(21)
    synced.rollback()
    lose_pointer(synced)
    lose_staged(synced, "snapshots")
    synced.run()
    (file,) = [
        f for f in synced.staging.snapshot(synced.read_pointer().current_snapshot).files if f.uri[-2:] == "P1"
    ]
    assert synced.visible == ["F1a", "F1b", "P1.1", "P2"]  # nobody knows any more what was held back
    assert file.sha256


def test_r18_a_touched_file_of_unknown_content_counts_as_rewritten(synced: Any) -> None:
    lose_pointer(synced)
    lose_staged(synced, "snapshots", "sessions")
    (synced.source / "P1").touch()
    synced.run()
    assert "P1" in synced.built
    assert synced.visible == ALL
    synced.assert_settled()


def test_r18_what_a_lost_session_staged_is_reverted(synced: Any) -> None:
    synced.write("F2")
    synced.trigger()
    hidden = synced.pinot.all_segments(synced.table) - synced.pinot.visible_segments(synced.table)
    lose_pointer(synced)
    report = synced.trigger()
    assert report.result is TriggerResult.STAGED
    assert any("its session is lost" in note for note in synced.notes)
    assert hidden.isdisjoint(synced.pinot.all_segments(synced.table))
    synced.run()
    assert synced.visible == sorted([*ALL, "F2"])
    synced.assert_settled()


def test_r18_a_segment_that_does_not_say_what_it_holds_stops_the_table(synced: Any) -> None:
    lose_pointer(synced)
    lose_staged(synced, "snapshots")
    metadata = synced.pinot._tables[synced.table].metadata
    name, mute = min(metadata.items())
    metadata[name] = replace(mute, custom={})
    with pytest.raises(SessionError, match=f"{name} of .* does not name its file"):
        synced.run()
    assert synced.visible == ALL
    assert synced.read_pointer().current_snapshot is None


def test_r18_a_driver_that_dies_while_it_rebuilds_is_repeated(
    synced: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_pointer(synced)
    lose_staged(synced, "snapshots")
    put = Staging.put_snapshot
    with monkeypatch.context() as patch:
        patch.setattr(Staging, "put_snapshot", lambda *a: (put(*a), synced.die()))
        synced.dies()
    assert synced.read_pointer().current_snapshot is None
    synced.run()
    assert synced.visible == ALL
    synced.assert_settled()


def test_r18_on_a_real_pinot(real_world: Any) -> None:
    world = real_world
    world.write("P1", F1="F1a F1b")
    world.run()
    before, builds = world.read_snapshot(), world.builds
    lose_pointer(world)
    assert world.run().result is TriggerResult.NOTHING
    assert world.read_snapshot() == before
    lose_pointer(world)
    lose_staged(world, "snapshots", "sessions")
    assert world.run().result is TriggerResult.NOTHING
    assert (world.read_snapshot().mode, world.builds) == (REBUILT, builds)
    assert {u: f.fingerprint for u, f in world.read_snapshot().ledger.items()} == {
        u: f.fingerprint for u, f in before.ledger.items()
    }
    assert world.read_snapshot().segments.keys() == before.segments.keys()
    world.write(F1="F1.1")
    world.run()
    for broker in world.brokers:
        assert world.shown_by(broker) == ["F1.1", "P1"]
    world.assert_settled()
