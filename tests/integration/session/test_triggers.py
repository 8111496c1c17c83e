"""Triggers beyond the scenes: what wakes a session, what stops it, and the gate."""

from __future__ import annotations

import os
from typing import Any

import pytest

from pinot_assets.errors import (
    ListingFailed,
    PinotError,
    SessionHeld,
    SnapshotCorrupt,
    SnapshotIncomplete,
    SourceError,
    SpecDrift,
    SwitchConflict,
)
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome, State
from pinot_assets.snapshot.receipt import Output

pytestmark = pytest.mark.integration

MODES = ("append", "sync", "swap")


@pytest.fixture(params=MODES)
def world(request: pytest.FixtureRequest, make_world: Any) -> Any:
    return make_world(request.param)


@pytest.fixture
def synced(make_world: Any) -> Any:
    """P1 and P2 are published, in sync."""
    world = make_world("sync")
    world.write("P1", "P2")
    world.run()
    return world


# --- what wakes a session ------------------------------------------------------------------------


def test_the_first_push(world: Any) -> None:
    world.write("F1", "F2")
    report = world.run()
    assert (report.result, report.listed, len(report.built)) == (TriggerResult.STAGED, 2, 2)
    assert world.visible == ["F1", "F2"]
    assert world.shown == [(), ("F1", "F2")]
    snapshot = world.read_snapshot()
    assert snapshot.parent is None
    assert (snapshot.rows, len(snapshot.files)) == (2, 2)
    world.assert_settled()


def test_r28_staging_is_tried_before_the_first_session(world: Any) -> None:
    """R28: an area that cannot be written is told before anything is built or stored."""
    staging = world.folder / "staging"
    staging.rmdir()
    staging.write_text("a file, where the staging area is to be")
    world.write("F1")
    before = world.read_pointer().next_seq
    with pytest.raises(SourceError, match=r"Cannot (read|write)"):
        world.run()
    assert (world.read_sessions(), world.read_pointer().next_seq, world.builds) == ([], before, 0)
    staging.unlink()
    world.run()
    assert world.visible == ["F1"]
    assert not list(staging.rglob("*probe*"))


def test_e06_nothing_to_do_opens_no_session(world: Any) -> None:
    assert world.run().result is TriggerResult.NOTHING
    world.write("F1")
    world.run()
    before = world.read_sessions(), world.read_pointer().next_seq
    world.slept.clear()
    for _ in range(2):
        assert world.run().result is TriggerResult.NOTHING
    assert world.slept == []
    assert (world.read_sessions(), world.read_pointer().next_seq) == before
    assert world.builds == 1


def test_only_what_changed_is_built_in_sync(synced: Any) -> None:
    world = synced
    world.write("P3", P2="P2.1")
    world.remove("P1")
    report = world.run()
    assert world.built == ["P2", "P3"]
    assert [len(x) for x in (report.new, report.rewritten, report.deleted)] == [1, 1, 1]
    assert world.visible == ["P2.1", "P3"]
    assert set(world.read_ledger()) == {"P2", "P3"}
    assert world.shown == [(), ("P1", "P2"), ("P2.1", "P3")]
    world.assert_settled()


def test_append_counts_and_warns_of_rewritten_files(make_world: Any) -> None:
    world = make_world("append")
    world.write("F1", "F2")
    world.run()
    world.write(F1="F1.1")
    world.remove("F2")
    world.run()
    assert world.visible == ["F1", "F1.1", "F2"]
    assert any("1 rewritten files are added beside" in note for note in world.notes)
    world.assert_settled()
    assert world.run().result is TriggerResult.NOTHING


def test_removals_alone_are_one_atomic_delete(synced: Any) -> None:
    world = synced
    world.remove("P2")
    world.run()
    assert world.builds == 1
    assert world.visible == ["P1"]
    assert world.shown == [(), ("P1", "P2"), ("P1",)]
    world.assert_settled()


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_e03_a_touched_file_updates_the_ledger_and_never_wakes_again(make_world: Any, mode: str) -> None:
    """E3: the fingerprint wakes, content decides."""
    world = make_world(mode)
    world.write("F1", "F2")
    world.run()
    os.utime(world.source / "F1", (1_000_000_000, 1_000_000_000))
    names = world.pinot.visible_segments(world.table)
    assert world.run().result is TriggerResult.NOOP
    assert world.builds == 1
    assert world.pinot.visible_segments(world.table) == names
    assert world.read_sessions()[-1].outcome is Outcome.NOOP
    (touched,) = (f for uri, f in world.read_snapshot().ledger.items() if uri.endswith("F1"))
    assert touched.fingerprint.mtime_us == 1_000_000_000 * 1_000_000
    assert world.run().result is TriggerResult.NOTHING
    world.assert_settled()


def test_e03_a_touched_file_of_a_swap_keeps_the_ledger_and_later_swaps_know_it(make_world: Any) -> None:
    """E3, R20: what is published stays whole, through every kind of trigger that follows."""
    world = make_world("swap")
    world.write("F1", "F2")
    (world.source / "E").write_text("v\n")
    world.run()
    before, segments = world.read_ledger(), world.pinot.visible_segments(world.table)
    first = world.read_snapshot()
    for seconds in (1_000_000_000, 1_000_000_001):
        os.utime(world.source / "F1", (seconds, seconds))
        assert world.run().result is TriggerResult.NOOP
    assert world.read_ledger().keys() == before.keys()
    assert world.read_snapshot().segments == first.segments
    assert (world.read_snapshot().lineage_entry_id, world.read_snapshot().parent) == (
        first.lineage_entry_id,
        first.parent,
    )
    assert (world.builds, world.pinot.visible_segments(world.table)) == (1, segments)
    world.write("F3")  # with a file more, all of them are built again, as ever
    os.utime(world.source / "F2", (1_000_000_000, 1_000_000_000))
    assert world.run().result is TriggerResult.STAGED
    assert world.visible == ["F1", "F2", "F3"]
    assert world.pinot.visible_segments(world.table).isdisjoint(segments)
    for name in ("F1", "F2", "F3", "E"):
        (world.source / name).unlink()
    world.run()
    assert world.visible == []
    world.assert_settled()


def test_e03_a_driver_that_dies_while_a_swap_only_remembers_takes_no_row_away(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world("swap")
    world.write("F1", "F2")
    world.run()
    os.utime(world.source / "F1", (1_000_000_000, 1_000_000_000))
    with monkeypatch.context() as patched:
        patched.setattr(Staging, "put_snapshot", lambda *_: world.die())
        world.dies()
    assert world.visible == ["F1", "F2"]
    world.run()
    assert world.visible == ["F1", "F2"]
    assert world.run().result is TriggerResult.NOTHING
    world.assert_settled()


def test_e03_a_touched_file_of_a_swap_whose_spec_changed_is_swapped_in(make_world: Any) -> None:
    world = make_world("swap")
    world.write("F1", "F2")
    world.run()
    os.utime(world.source / "F1", (1_000_000_000, 1_000_000_000))
    world.options["maxNumRecordsPerSegment"] = "7"
    assert world.run().result is TriggerResult.STAGED
    assert world.builds == 2
    world.assert_settled()


def test_e05_r20_an_empty_file_is_done_without_a_segment(world: Any) -> None:
    """E5, R20: and it wakes no session at every tick."""
    (world.source / "E1").write_text("v\n")
    assert world.run().result is TriggerResult.NOOP
    assert world.visible == []
    assert world.run().result is TriggerResult.NOTHING
    (world.source / "E2").touch()
    world.write("F1")
    assert world.run().result is TriggerResult.STAGED
    assert world.visible == ["F1"]
    assert set(world.read_ledger()) == {"E1", "E2", "F1"}
    assert world.run().result is TriggerResult.NOTHING
    world.assert_settled()


def test_a_file_that_becomes_empty_loses_its_rows_in_sync_where_that_is_allowed(synced: Any) -> None:
    synced.audit_block.append({"check": "emptied_files", "severity": "warn"})
    (synced.source / "P1").write_text("v\n")
    synced.run()
    assert synced.visible == ["P2"]
    assert synced.run().result is TriggerResult.NOTHING
    synced.assert_settled()


def test_a_failed_file_that_is_as_published_again_is_forgotten(make_world: Any) -> None:
    """Built again, append would show its rows twice."""
    world = make_world("append")
    world.write("F1")
    world.run()
    version = (world.source / "F1").stat()
    world.write("F2", F1="F1.1")
    world.builder.failing = {"F1"}
    world.run()
    world.write("F1")
    os.utime(world.source / "F1", ns=(version.st_atime_ns, version.st_mtime_ns))
    world.builder.failing = set()
    world.run()
    assert world.visible == ["F1", "F2"]
    world.assert_settled()


def test_e25_a_file_that_returns_after_it_was_dropped_is_built_anew(scene: Any) -> None:
    """E25: a new row with a new ordinal; names are never used twice."""
    world = scene.world
    world.remove("F1")
    world.builder.failing = {"F5"}
    world.run()
    world.write("F1")
    world.builder.failing = set()
    world.run()
    assert "F1" in world.built
    assert world.visible == scene.after("F1", "F2", "F3", "F4", "F5")
    assert len(world.shown) == 2
    world.assert_settled()


# --- an empty source (E2) ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_e02_an_empty_source_is_believed_at_the_second_look(make_world: Any, mode: str) -> None:
    world = make_world(mode)
    world.write("P1", "P2")
    world.run()
    world.slept.clear()
    world.remove("P1", "P2")
    world.run()
    assert world.slept == [30.0]
    assert world.visible == []
    assert world.shown == [(), ("P1", "P2"), ()]
    assert world.run().result is TriggerResult.NOTHING
    world.assert_settled()


def test_e02_append_removes_nothing_and_waits_for_nothing(make_world: Any) -> None:
    world = make_world("append", emptySourceAction="REFUSE")
    world.write("P1")
    world.run()
    world.slept.clear()
    world.remove("P1")
    assert world.run().result is TriggerResult.NOTHING
    assert (world.visible, world.slept) == (["P1"], [])


def test_e02_a_source_that_is_full_again_at_the_second_look_changes_nothing(synced: Any) -> None:
    synced.remove("P1", "P2")
    synced.on_sleep = lambda: synced.write("P1")
    with pytest.raises(ListingFailed, match="then 1"):
        synced.run()
    _assert_untouched(synced)


def test_e02_an_empty_source_is_refused_where_the_spec_says_so(make_world: Any) -> None:
    world = make_world("sync", emptySourceAction="REFUSE")
    world.write("P1", "P2")
    world.run()
    world.remove("P1", "P2")
    with pytest.raises(ListingFailed, match="REFUSE"):
        world.run()
    _assert_untouched(world)


def test_e02_a_missing_directory_is_not_an_empty_one(synced: Any) -> None:
    synced.source.rename(synced.folder / "unmounted")
    with pytest.raises(ListingFailed, match="does not exist"):
        synced.run()
    _assert_untouched(synced)


def _assert_untouched(world: Any) -> None:
    assert world.visible == ["P1", "P2"]
    assert world.shown == [(), ("P1", "P2")]
    assert world.read_pointer().active_session == ""
    assert len(world.read_sessions()) == 1


# --- the gate ------------------------------------------------------------------------------------


def test_nothing_is_published_without_an_audit(world: Any) -> None:
    with pytest.raises(SnapshotIncomplete, match="no session is open"):
        world.publish()
    world.write("F1")
    world.trigger()
    with pytest.raises(SnapshotIncomplete, match="has not been audited"):
        world.publish()
    assert world.visible == []
    _, findings = world.audit()
    assert all(f.passed for f in findings)
    world.publish()
    assert world.visible == ["F1"]
    world.assert_settled()


def test_a_pass_for_another_switch_opens_nothing(world: Any) -> None:
    world.write("F1")
    world.trigger()
    world.audit()
    world.write("F2")
    world.trigger()
    with pytest.raises(SnapshotIncomplete, match="audit"):
        world.publish()
    assert world.visible == []


def test_a_pass_from_before_files_failed_opens_nothing(world: Any) -> None:
    world.write("F1")
    world.trigger()
    world.audit()
    world.write("F2")
    world.builder.failing = {"F2"}
    assert world.trigger().result is TriggerResult.FAILED
    with pytest.raises(SnapshotIncomplete):
        world.publish()
    _, findings = world.audit()
    assert [f.name for f in findings if not f.passed] == ["files_built"]
    assert (findings[0].expected, findings[0].found) == (2, 1)
    assert "F2: UNREADABLE: as the test wants it" in findings[0].message
    with pytest.raises(SnapshotIncomplete):
        world.publish()
    assert world.visible == []
    world.builder.failing = set()
    world.run()
    assert world.visible == ["F1", "F2"]
    assert world.shown == [(), ("F1", "F2")]
    world.assert_settled()


def test_a_pass_from_before_the_plan_moved_on_opens_nothing(world: Any) -> None:
    """The driver died while it built for the next switch; a re-executed check must not pass the old one."""
    world.write("F1", "F2")
    world.trigger()
    world.audit()
    world.write("F3")
    world.remove("F1")
    world.builder.die_after = 0
    world.dies()
    with pytest.raises(SnapshotIncomplete, match="newest plan"):
        world.audit()
    with pytest.raises(SnapshotIncomplete, match="newest plan"):
        world.publish()
    assert world.visible == []
    world.run()
    assert world.visible == ["F2", "F3"]
    world.assert_settled()


def test_r14_a_failed_audit_keeps_the_old_set_and_its_file_is_built_again(scene: Any) -> None:
    world = scene.world
    world.builder.failing = set()
    world.trigger()
    staged = sorted(world.pinot.all_segments(world.table) - world.pinot.visible_segments(world.table))
    world.pinot.break_replica(world.table, staged[0])
    session, findings = world.audit()
    assert [f.name for f in findings if not f.passed] == ["replicas_online"]
    assert staged[0] in session.last_error
    with pytest.raises(SnapshotIncomplete, match="is ERROR on"):
        world.publish()
    assert world.shown == [tuple(scene.before)]
    assert world.read_session().state is State.SWITCH
    (broken,) = world.builder.rows[staged[0]]
    world.run()
    assert world.built == [broken]
    assert world.read_sessions()[-1].retry_count == 2
    assert staged[0] not in world.pinot.all_segments(world.table)
    assert len(world.shown) == 2
    world.assert_settled()


def test_an_audit_that_fails_for_ever_uses_up_the_retries(make_world: Any) -> None:
    world = make_world("sync", consistentPushMaxRetries=1)
    world.write("F1")
    for _ in range(2):
        world.trigger()
        (broken,) = world.pinot.all_segments(world.table)
        world.pinot.break_replica(world.table, broken)
        first = world.read_session().id
        world.audit()
    assert (world.read_session().retry_count, world.builds) == (1, 2)
    world.run()
    assert [s.outcome for s in world.read_sessions()] == [Outcome.ABANDONED_RETRIES, Outcome.PUBLISHED]
    assert not any(first in name for name in world.pinot.all_segments(world.table))
    assert world.visible == ["F1"]
    assert world.shown == [(), ("F1",)]
    world.assert_settled()


def test_e30_the_audit_waits_for_slow_servers(make_world: Any) -> None:
    world = make_world("append")
    world.write("F1")
    world.trigger()
    (segment,) = world.pinot.all_segments(world.table)
    world.pinot._tables[world.table].loading[segment] = 5
    _, findings = world.audit()
    assert all(f.passed for f in findings)
    assert sum(world.slept) > 0


def test_r05_r08_a_switch_whose_sources_went_is_made_anew(synced: Any) -> None:
    """R5, R8: a source that was deleted after W1."""
    world = synced
    world.write(P1="P1.1")
    world.trigger()
    world.audit()
    old = next(s for s in world.pinot.visible_segments(world.table) if world.builder.rows[s] == ("P1",))
    world.pinot.delete_segments(world.table, [old])
    with pytest.raises(SwitchConflict, match="are missing"):
        world.publish()
    world.run()
    assert world.visible == ["P1.1", "P2"]
    world.assert_settled()


def test_what_was_staged_is_withdrawn_when_nothing_is_wanted_any_more(make_world: Any) -> None:
    """I14: nothing of ours stays hidden in Pinot once the session has ended."""
    world = make_world("sync")
    world.write("F1")
    world.trigger()
    world.remove("F1")
    assert world.run().result is TriggerResult.NOOP
    assert world.pinot.all_segments(world.table) == frozenset()
    world.assert_settled()


def test_r07_a_deaf_broker_is_told_before_the_session_is_done(synced: Any) -> None:
    """R7: a lost rebuild message keeps an idle broker on the old set."""
    world = synced
    broker = world.pinot.brokers(world.table)[1]
    world.pinot.deafen_broker(broker)
    world.write("P3")
    world.run()
    assert world.pinot.broker_visible_segments(broker, world.table) == set(world.read_snapshot().segments)


def test_r07_a_broker_that_still_routes_to_dropped_segments_is_waited_for(
    synced: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R7: for a moment it answers with Pinot's 235, segments missing; that is no failed switch."""
    world = synced
    look, answers = world.pinot.broker_visible_segments, iter([PinotError("235 ServerSegmentMissing")] * 2)

    def late(broker: str, table: str) -> frozenset[str]:
        if error := next(answers, None):
            raise error
        return look(broker, table)  # type: ignore[no-any-return]

    monkeypatch.setattr(world.pinot, "broker_visible_segments", late)
    world.write("P3")
    world.run()
    assert next(answers, None) is None
    assert look(world.pinot.brokers(world.table)[0], world.table) == set(world.read_snapshot().segments)


# --- one owner -----------------------------------------------------------------------------------


def test_e10_a_second_trigger_is_paused(synced: Any) -> None:
    world = synced
    with world.driver() as mine:
        mine.trigger()
        with pytest.raises(SessionHeld, match="held by run-"):
            world.run()
    assert world.run().result is TriggerResult.NOTHING


def test_r02_a_dead_owners_last_call_is_waited_out_before_the_first_write(synced: Any) -> None:
    world = synced
    world.slept.clear()
    world.write("P3")
    world.builder.die_after = 0
    world.dies()
    world.run()
    assert len(world.slept) == 1
    assert 15 < world.slept[0] <= 20


# --- what must not be there ----------------------------------------------------------------------


def test_r02_strays_of_ours_are_deleted_and_reported(synced: Any) -> None:
    """R2: visible names of ours that no snapshot knows; foreign segments are left alone."""
    world = synced
    output = next(iter(world.read_snapshot().segments.values()))
    fake = world.pinot._tables[world.table]
    stray = f"{world.table}__cp1-00000a_0_0_0"
    for name in (stray, "somebody_elses"):
        fake.segments[name] = output
    assert world.run().result is TriggerResult.NOTHING
    assert world.pinot.all_segments(world.table) == {*world.read_snapshot().segments, "somebody_elses"}
    assert any(stray in note for note in world.notes)


def test_r18_a_lost_pointer_is_not_an_empty_ledger(synced: Any) -> None:
    """R18: visible segments of ours, and ZooKeeper knows of no snapshot."""
    world = synced
    with world.store() as store:
        store.zk.delete(store.path, recursive=True)
    assert world.run().result is TriggerResult.NOTHING
    assert world.visible == ["P1", "P2"]
    assert world.builds == 1


def test_r18_a_lost_snapshot_object_stops_the_table(synced: Any) -> None:
    world = synced
    world.write("P3")
    world.staging.store.delete(world.read_pointer().current_snapshot.key)
    with pytest.raises(SnapshotCorrupt, match="cannot be read"):
        world.run()
    assert world.visible == ["P1", "P2"]
    assert world.builds == 1


def test_r18_a_changed_snapshot_object_stops_the_table(synced: Any) -> None:
    world = synced
    key = world.read_pointer().current_snapshot.key
    data = world.staging.store.read(key)
    world.staging.store.delete(key)
    world.staging.store.put_if_absent(key, data.replace(b'"rows"', b'"rowz"'))
    with pytest.raises(SnapshotCorrupt, match="hash"):
        world.run()


def test_drift_is_refused(synced: Any) -> None:
    world = synced
    world.write("P3")
    schema = world.pinot.get_schema(world.table)
    world.pinot.put_schema(
        {
            **schema,
            "dimensionFieldSpecs": [{"name": "v", "dataType": "STRING"}, {"name": "w", "dataType": "INT"}],
        }
    )
    with pytest.raises(SpecDrift):
        world.run()
    assert world.visible == ["P1", "P2"]
    assert world.builds == 1


def test_e22_somebody_elses_open_replacement_is_never_forced_away(synced: Any) -> None:
    """E22: paused with its names."""
    world = synced
    mine = sorted(world.pinot.visible_segments(world.table))
    foreign = world.pinot.start_replace_segments(world.table, mine, ["merged_1"])
    world.write(P1="P1.1")
    for _ in range(2):
        with pytest.raises(SwitchConflict, match="merged_1"):
            world.run()
    assert world.visible == ["P1", "P2"]
    entry = world.pinot.lineage(world.table).get(foreign)
    assert entry is not None
    assert entry.state.value == "IN_PROGRESS"
    world.pinot.force_revert_replace_segments(world.table, foreign)
    world.run()
    assert world.built == ["P1"]
    assert world.visible == ["P1.1", "P2"]
    world.assert_settled()


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_r05_segments_that_somebody_merged_pause_sync_and_not_append(make_world: Any, mode: str) -> None:
    """R5."""
    world = make_world(mode)
    world.write("P1", "P2")
    world.run()
    mine = sorted(world.pinot.visible_segments(world.table))
    foreign = world.pinot.start_replace_segments(world.table, mine, ["merged_1"])
    output = next(iter(world.read_snapshot().segments.values()))
    world.pinot._tables[world.table].segments["merged_1"] = output
    world.pinot.end_replace_segments(world.table, foreign)
    world.write("P3")
    if mode == "sync":
        with pytest.raises(SwitchConflict, match="another program replaced"):
            world.run()
        assert world.visible == ["merged_1"]
    else:
        world.run()
        assert world.visible == ["P3", "merged_1"]


# --- giving up -----------------------------------------------------------------------------------


def test_e14_another_config_abandons_the_open_session(scene: Any) -> None:
    """E14."""
    world = scene.world
    world.options["maxNumRecordsPerSegment"] = 7
    world.builder.failing = set()
    world.run()
    assert world.built[:5] == ["F1", "F2", "F3", "F4", "F5"]
    assert [s.outcome for s in world.read_sessions()] == [Outcome.ABANDONED_CONFIG, Outcome.PUBLISHED]
    assert len(world.shown) == 2
    world.assert_settled()


def test_r18_clear_drops_the_open_session_and_keeps_what_is_published(scene: Any) -> None:
    world = scene.world
    world.builder.failing = set()
    world.trigger()
    first = world.read_session()
    ledger, epoch = world.read_pointer().current_snapshot, world.read_pointer().epoch
    assert world.clear().id == first.id
    assert world.clear() is None
    assert world.shown == [tuple(scene.before)]
    assert world.read_pointer().current_snapshot == ledger
    assert world.read_pointer().epoch > epoch
    assert world.read_sessions()[-1].outcome is Outcome.CLEARED
    assert world.pinot.all_segments(world.table) >= world.pinot.visible_segments(world.table)
    assert not any(first.id in name for name in world.pinot.all_segments(world.table))
    world.run()
    assert world.built[:5] == ["F1", "F2", "F3", "F4", "F5"]
    assert world.read_sessions()[-1].seq > first.seq
    world.assert_settled()


def test_the_clear_parameter_acts_once(make_world: Any) -> None:
    world = make_world("sync")
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    world.run()
    first = world.read_session().id
    world.options["clearConsistentPushState"] = True
    world.run()
    second = world.read_session().id
    assert second != first
    world.run()
    assert world.read_session().id == second
    assert world.read_session().retry_count == 1


def test_r17_a_session_number_is_never_used_again(make_world: Any) -> None:
    """R17: the pointer was lost, and Pinot still holds a (hidden) name of ours."""
    world = make_world("append")
    names = [f"{world.table}__cp41-00000a_0_0_0"]
    world.pinot.start_replace_segments(world.table, [], names)
    output = Output(names[0], 1, 1, "file:///x", 1, "", "file:///x")
    world.pinot._tables[world.table].segments[names[0]] = output
    world.write("F1")
    world.run()
    assert world.read_sessions()[-1].seq == 42
    assert world.visible == ["F1"]


def test_e17_an_unreadable_file_is_left_out_where_the_user_wants_it_until_it_changes(make_world: Any) -> None:
    """E17: never by default, and never a file whose former version is published."""
    world = make_world("sync", skipFileIfFailToInitReader="true")
    world.write("P1", "F1")
    world.builder.failing = {"F1"}
    assert world.run().result is TriggerResult.STAGED
    assert world.visible == ["P1"]
    assert world.run().result is TriggerResult.NOTHING
    world.builder.failing = set()
    world.write(F1="F1.1")
    world.run()
    assert world.visible == ["F1.1", "P1"]
    world.builder.failing = {"P1"}
    world.write(P1="P1.1")
    assert world.trigger().result is TriggerResult.FAILED
    assert world.visible == ["F1.1", "P1"]
