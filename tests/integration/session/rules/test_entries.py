"""Lineage entries that are late, old, lost or somebody's: rules R1, R3, R4, R6, R8, R16, edge case E9."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from pinot_assets.errors import PinotError, SpecDrift, SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot import LineageEntry, LineageState
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome, State

pytestmark = pytest.mark.integration

MODES = ("append", "sync", "swap")


@pytest.fixture(params=MODES)
def world(request: pytest.FixtureRequest, make_world: Any) -> Any:
    """P1 and P2 are published."""
    world = make_world(request.param)
    world.write("P1", "P2")
    world.run()
    world.watch_anew()
    return world


@pytest.fixture
def synced(make_world: Any) -> Any:
    world = make_world("sync")
    world.write("P1", "P2")
    world.run()
    world.watch_anew()
    return world


def staged_names(world: Any) -> frozenset[str]:
    """Names of ours that Pinot has and no query sees."""
    names: frozenset[str] = world.pinot.all_segments(world.table) - set(world.read_snapshot().segments)
    return names


def entry_of(world: Any, state: LineageState) -> LineageEntry:
    """The newest entry in that state."""
    entry: LineageEntry = world.pinot.lineage(world.table).in_state(state)[-1]
    return entry


def land_late(world: Any) -> None:
    """The forced start of the newest switch, held up in a controller, lands after its end."""
    ended = entry_of(world, LineageState.COMPLETED)
    late = LineageEntry(
        "late", ended.segments_from, ended.segments_to, LineageState.IN_PROGRESS, ended.timestamp_ms + 1
    )
    world.pinot.put_entry(world.table, late)


# --- R1 --------------------------------------------------------------------------------------------


def test_r01_a_start_that_lands_after_our_end_is_undone_before_the_snapshot(world: Any) -> None:
    world.write("P3")
    world.pinot.after("end_replace_segments", lambda: land_late(world))
    world.run()
    assert world.visible == ["P1", "P2", "P3"]
    world.assert_settled()
    assert "force_revert_replace_segments" not in world.pinot.calls
    assert world.run().result is TriggerResult.NOTHING


def test_r01_a_start_that_lands_when_the_session_is_recorded_is_undone_by_the_next_trigger(
    world: Any,
) -> None:
    world.write("P3")
    world.run()
    segments = world.pinot.all_segments(world.table)
    land_late(world)
    assert world.visible != ["P1", "P2", "P3"]
    assert world.run().result is TriggerResult.NOTHING
    assert world.visible == ["P1", "P2", "P3"]
    assert world.pinot.all_segments(world.table) == segments
    assert any("delayed start" in note for note in world.notes)
    world.assert_settled()


def test_r01_is_undone_although_the_spec_has_drifted(synced: Any) -> None:
    synced.write("P3")
    synced.run()
    land_late(synced)
    config = synced.pinot.get_table_config(synced.table)
    changed = {**config["segmentsConfig"], "replication": "7"}
    synced.pinot.update_table({**config, "segmentsConfig": changed})
    with pytest.raises(SpecDrift):
        synced.run()
    assert synced.visible == ["P1", "P2", "P3"]
    assert set(synced.read_snapshot().segments) == synced.pinot.visible_segments(synced.table)


def test_r01_a_start_that_lands_while_the_next_session_builds_is_undone_before_its_own_start(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks like an entry that this session left open; reverted as such, what is published would go."""
    world.write("P3")
    world.run()
    build = world.builder.build

    def build_meanwhile(*arguments: Any) -> None:
        build(*arguments)
        land_late(world)

    world.write("P4")
    with monkeypatch.context() as patch:
        patch.setattr(world.builder, "build", build_meanwhile)
        world.run()
    assert world.visible == ["P1", "P2", "P3", "P4"]
    world.assert_settled()
    assert world.run().result is TriggerResult.NOTHING


def test_r01_a_start_that_lands_right_before_our_own_is_not_taken_for_stale(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("P3")
    world.run()
    put_switch = Staging.put_switch

    def put_meanwhile(*arguments: Any) -> Any:
        monkeypatch.undo()
        land_late(world)
        return put_switch(*arguments)

    world.write("P4")
    monkeypatch.setattr(Staging, "put_switch", put_meanwhile)
    with suppress(SwitchConflict):  # a swap replaces what is hidden, and so starts anew at once
        world.run()
    world.run()
    assert world.visible == ["P1", "P2", "P3", "P4"]
    world.assert_settled()


def test_r01_sources_that_are_in_sight_again_are_replaced_with_what_is_shown_again(synced: Any) -> None:
    """Pinot had forgotten the switch already, and what it replaced was still there."""
    synced.write(P1="P1.1")
    synced.run()
    land_late(synced)
    ended = entry_of(synced, LineageState.COMPLETED)
    del synced.pinot._tables[synced.table].entries[ended.id]
    synced.watch_anew()
    assert synced.visible == ["P1", "P2"]
    synced.run()
    assert synced.visible == ["P1.1", "P2"]
    shown = [{*values} for history in synced._shown.values() for values in history]
    assert not any({"P1", "P1.1"} <= values for values in shown)
    synced.assert_settled()


def test_r01_what_a_late_start_names_beside_is_deleted(synced: Any) -> None:
    """It was of an earlier switch of the session: F2 was dropped since."""
    world = synced
    world.write("F1", "F2")
    world.trigger()
    first = entry_of(world, LineageState.IN_PROGRESS)
    world.remove("F2")
    world.run()
    world.pinot.put_entry(world.table, first)
    world.run()
    assert world.visible == ["F1", "P1", "P2"]
    assert staged_names(world) == frozenset()
    world.assert_settled()


# --- R3, R8 ----------------------------------------------------------------------------------------


def test_r03_the_end_is_written_down_before_it_is_sent(world: Any) -> None:
    world.write("P3")
    world.pinot.before("end_replace_segments", world.die)
    world.dies()
    session = world.read_session()
    assert session.end_sent
    assert session.end_issued == entry_of(world, LineageState.IN_PROGRESS).id
    world.run()
    assert world.visible == ["P1", "P2", "P3"]


def test_r03_r08_an_old_entry_is_renewed_before_its_end_and_keeps_its_audit(world: Any) -> None:
    world.write("P3")
    world.trigger()
    before, _ = world.audit()
    world.pinot.age_entry(world.table, before.lineage_entry_id, 21)
    world.publish()
    after = world.read_sessions()[-1]
    assert (after.outcome, after.audit, after.switch) == (Outcome.PUBLISHED, before.audit, 1)
    assert after.lineage_entry_id != before.lineage_entry_id
    assert world.shown[1:] == [("P1", "P2", "P3")]
    world.assert_settled()


def test_r03_an_old_entry_is_renewed_by_the_next_trigger(world: Any) -> None:
    world.write("P3")
    world.trigger()
    old = world.read_session().lineage_entry_id
    world.pinot.age_entry(world.table, old, 21)
    world.trigger()
    assert world.read_session().lineage_entry_id != old
    assert world.pinot.lineage(world.table).get(old) is None
    assert world.read_session().switch == 1
    world.run()
    assert world.builds == 2
    world.assert_settled()


def test_r03_an_end_under_way_of_an_old_entry_finds_nothing_to_end(world: Any) -> None:
    """It waits in a controller while the entry grows old; the young one is ended by us alone."""
    world.write("P3")
    world.pinot.before("end_replace_segments", world.die)
    world.dies()
    old = world.read_session().lineage_entry_id
    world.pinot.age_entry(world.table, old, 21)
    world.trigger()
    assert not world.read_session().end_sent
    with pytest.raises(SwitchConflict):
        world.pinot.end_replace_segments(world.table, old)
    world.run()
    assert world.shown[1:] == [("P1", "P2", "P3")]
    world.assert_settled()


def test_r08_a_source_that_goes_before_the_end_is_sent_makes_a_new_switch(synced: Any) -> None:
    world = synced
    world.write(P1="P1.1")
    world.trigger()
    world.audit()
    old = next(s for s in world.read_snapshot().segments if world.builder.rows[s] == ("P1",))
    world.pinot.delete_segments(world.table, [old])
    with pytest.raises(SwitchConflict, match="are missing"):
        world.publish()
    assert not world.read_session().end_sent
    world.run()
    assert world.read_sessions()[-1].switch == 2
    assert world.visible == ["P1.1", "P2"]
    world.assert_settled()


def test_r08_what_completes_while_it_is_ended_again_needs_no_second_audit(world: Any) -> None:
    """Its sources are hidden by then, which is no fault."""
    world.write("P3")
    world.pinot.lose_call("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        world.run()
    world.pinot.after("all_segments", lambda: None)
    world.trigger()
    world.pinot.end_replace_segments(
        world.table, world.read_session().lineage_entry_id
    )  # the lost one arrives
    _, findings = world.audit()
    assert all(f.passed for f in findings)
    world.publish()
    assert world.visible == ["P1", "P2", "P3"]
    world.assert_settled()


def lost_revert(world: Any) -> Callable[[], None]:
    """`clear` whose revert does not arrive, and gives up; returns what lets that revert arrive after all."""
    entry = world.read_session().lineage_entry_id
    world.pinot.lose_call("force_revert_replace_segments")
    with pytest.raises(SwitchConflict, match="could not be reverted"):
        world.clear()

    def arrive() -> None:
        with suppress(PinotError):
            world.pinot.force_revert_replace_segments(world.table, entry)

    return arrive


def test_r19_a_revert_that_arrives_too_late_takes_nothing_published_back(world: Any) -> None:
    world.write("F1")
    world.trigger()
    arrive = lost_revert(world)
    builds = world.builds
    assert world.run().result is TriggerResult.STAGED
    assert world.builds == builds
    arrive()
    assert world.visible == ["F1", "P1", "P2"]
    world.assert_settled()
    assert world.run().result is TriggerResult.NOTHING


def test_r19_nor_of_a_switch_that_only_removes(synced: Any) -> None:
    synced.remove("P1")
    synced.trigger()
    arrive = lost_revert(synced)
    synced.run()
    arrive()
    assert synced.visible == ["P2"]
    synced.assert_settled()


def test_r19_an_entry_whose_revert_was_sent_is_not_ended(world: Any) -> None:
    """What the gate let through is not published by itself: the next trigger takes new names."""
    world.write("F1")
    world.trigger()
    world.audit()
    arrive = lost_revert(world)
    with pytest.raises(SwitchConflict, match="may still arrive"):
        world.publish()
    arrive()
    world.run()
    assert world.visible == ["F1", "P1", "P2"]
    world.assert_settled()


def test_r19_an_end_and_a_revert_on_their_way_meet_in_any_order(world: Any) -> None:
    world.write("F1")
    world.pinot.lose_call("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        world.run()
    entry = world.read_session().lineage_entry_id
    arrive = lost_revert(world)
    with suppress(PinotError):
        world.pinot.end_replace_segments(world.table, entry)
    arrive()
    world.run()
    arrive()
    assert world.visible == ["F1", "P1", "P2"]
    world.assert_settled()


def test_r03_the_entry_of_an_earlier_switch_is_not_ended_for_the_one_that_stands(make_world: Any) -> None:
    """The driver died between W1 and W2: the switch is written, its entry is still the former one."""
    world = make_world("swap")
    world.write("P1")
    world.run()
    world.write("F1")
    world.trigger()
    segments = world.pinot._tables[world.table].segments
    segments["foreign"] = next(iter(segments.values()))
    world.pinot.before("force_start_replace_segments", world.die)
    world.dies()
    world.audit()
    with pytest.raises(SwitchConflict, match="is not the entry of switch 2"):
        world.publish()
    world.run()
    assert world.visible == ["F1", "P1"]
    world.assert_settled()


# --- R4, R6 ----------------------------------------------------------------------------------------


def test_r04_an_open_entry_that_shares_no_name_is_reverted_before_the_new_start(world: Any) -> None:
    """A forced start that overlaps nothing would leave it alive."""
    world.write("F1")
    world.remove("P1", "P2")
    world.trigger()
    first = world.read_session().lineage_entry_id
    world.remove("F1")
    world.write("F2")
    world.pinot.calls.clear()
    world.trigger()
    calls = [c for c in world.pinot.calls if "replace" in c or c == "lineage"]
    reverted, started = (
        calls.index("force_revert_replace_segments"),
        max(i for i, c in enumerate(calls) if "start" in c),
    )
    assert "lineage" in calls[reverted:started]
    assert reverted < started
    assert world.pinot.lineage(world.table).get(first).state is LineageState.REVERTED
    world.run()
    assert "F1" not in world.visible
    assert "F2" in world.visible
    world.assert_settled()


def test_r06_a_first_entry_that_another_controller_overwrites_is_found_before_the_push(
    make_world: Any,
) -> None:
    world = make_world("sync")
    world.write("F1")
    world.on_sleep = lambda: world.pinot._tables[world.table].entries.clear()
    with pytest.raises(SwitchStateUnknown, match="lost entry"):
        world.run()
    assert world.pinot.all_segments(world.table) == frozenset()
    world.on_sleep = lambda: None
    world.run()
    assert (world.visible, world.builds) == (["F1"], 1)
    world.assert_settled()


def test_r06_only_the_first_entry_of_a_table_is_waited_for(synced: Any) -> None:
    synced.slept.clear()
    synced.write("P3")
    synced.run()
    assert synced.slept == []


# --- R16, E9 ---------------------------------------------------------------------------------------


def revert(world: Any, entry_id: str) -> None:
    world.pinot.force_revert_replace_segments(world.table, entry_id)


def reap(world: Any, entry_id: str) -> None:
    """Pinot gives the entry up: its segments in one pass, itself in a later one."""
    world.pinot.age_entry(world.table, entry_id, 25)
    for _ in range(2):
        world.pinot.run_retention(world.table)
    assert world.pinot.lineage(world.table).get(entry_id) is None


def reap_segments(world: Any, entry_id: str) -> None:
    """The first pass alone: the entry is still there, old."""
    world.pinot.age_entry(world.table, entry_id, 25)
    world.pinot.run_retention(world.table)


LOSSES = {"reverted": revert, "reaped": reap}


@pytest.mark.parametrize("loss", list(LOSSES))
def test_r16_e09_a_lost_switch_goes_on_under_new_names(world: Any, loss: str) -> None:
    world.write("F1", "F2", F3="a b c")
    world.options["maxNumRecordsPerSegment"] = 2
    world.trigger()
    first, spent, orders = world.read_session(), staged_names(world), list(world.builder.orders)
    LOSSES[loss](world, first.lineage_entry_id)
    report = world.run()
    assert report.result is TriggerResult.STAGED
    assert world.builder.orders == orders
    assert world.visible == sorted(["F1", "F2", "P1", "P2", "a", "b", "c"])
    published = world.read_sessions()[-1]
    assert (published.id, published.retry_count) == (first.id, first.retry_count)
    ours = {s for s in world.read_snapshot().segments if f"__{first.id}_" in s}
    assert ours.isdisjoint(spent)
    assert all(f"__{first.id}_{published.attempt}_" in name for name in ours)
    assert len(world.shown) == 2
    world.assert_settled()
    assert world.run().result is TriggerResult.NOTHING


@pytest.mark.parametrize("loss", list(LOSSES))
def test_r16_a_loss_that_is_found_at_the_end_is_said_and_redone_by_the_next_trigger(
    world: Any, loss: str
) -> None:
    world.write("F1")
    world.trigger()
    session, _ = world.audit()
    LOSSES[loss](world, session.lineage_entry_id)
    with pytest.raises(SwitchConflict, match="is lost"):
        world.publish()
    world.run()
    assert world.visible == ["F1", "P1", "P2"]
    assert world.builds == 2
    world.assert_settled()


def test_r16_a_loss_after_the_end_was_sent_is_told_from_a_switch_that_happened(world: Any) -> None:
    world.write("F1")
    world.pinot.lose_call("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        world.run()
    reap(world, world.read_session().lineage_entry_id)
    world.run()
    assert (world.visible, world.builds) == (["F1", "P1", "P2"], 2)
    assert len(world.read_sessions()) == 2
    world.assert_settled()


def test_r16_segments_that_were_reaped_under_their_entry_are_pushed_again(world: Any) -> None:
    """The reaper works in two passes; between them the entry looks open."""
    world.write("F1")
    world.trigger()
    reap_segments(world, world.read_session().lineage_entry_id)
    assert staged_names(world) == frozenset()
    world.run()
    assert (world.visible, world.builds) == (["F1", "P1", "P2"], 2)
    world.assert_settled()


def test_r16_what_nothing_hides_any_more_is_deleted_before_anything_else(world: Any) -> None:
    """The entry went, the segments stayed: visible, and not published."""
    world.write("F1", "F2")
    world.trigger()
    names = staged_names(world)
    del world.pinot._tables[world.table].entries[world.read_session().lineage_entry_id]
    world.builder.die_after = 0
    world.write("F3")
    world.dies()
    assert world.visible == ["P1", "P2"]
    world.run()
    assert world.visible == ["F1", "F2", "F3", "P1", "P2"]
    assert names.isdisjoint(world.read_snapshot().segments)
    assert world.built == ["F3"]
    world.assert_settled()


@pytest.mark.parametrize("renamed", [0, 1])
def test_r16_a_driver_that_dies_while_it_renames_is_gone_on_for(
    world: Any, renamed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("F1", "F2")
    world.trigger()
    spent = staged_names(world)
    reap(world, world.read_session().lineage_entry_id)
    put, left = Staging.put_receipt, [renamed]

    def put_and_die(staging: Staging, session: str, receipt: Any) -> str:
        if not left[0]:
            world.die()
        left[0] -= 1
        return put(staging, session, receipt)

    with monkeypatch.context() as patch:
        patch.setattr(Staging, "put_receipt", put_and_die)
        world.dies()
    world.write("E0")  # sorted before the others: it must not meet their new names
    world.run()
    assert world.visible == ["E0", "F1", "F2", "P1", "P2"]
    assert spent.isdisjoint(world.read_snapshot().segments)
    assert world.built == ["E0"]
    world.assert_settled()


@pytest.mark.parametrize("point", ["before", "after"])
def test_r16_a_driver_that_dies_at_the_new_start_is_gone_on_for(world: Any, point: str) -> None:
    world.write("F1", "F2")
    world.trigger()
    revert(world, world.read_session().lineage_entry_id)
    getattr(world.pinot, point)("start_replace_segments", world.die)
    world.dies()
    world.run()
    assert (world.visible, world.builds) == (["F1", "F2", "P1", "P2"], 2)
    assert len(world.shown) == 2
    world.assert_settled()


def test_r16_an_entry_that_is_lost_while_a_retry_builds_takes_no_row_away(world: Any) -> None:
    """Names were looked at before the build alone: what had been built before went on under the old ones,
    which the lost entry hides."""
    world.write("F1", "F2")
    world.trigger()
    broken = next(s for s in staged_names(world) if world.builder.rows[s] == ("F2",))
    world.pinot.break_replica(world.table, broken)
    world.audit()
    entry, build = world.read_session().lineage_entry_id, world.builder.build

    def build_beside(*args: Any) -> None:
        revert(world, entry)
        build(*args)

    world.builder.build = build_beside
    with pytest.raises(SwitchConflict, match="was lost while its files were built"):
        world.run()
    world.builder.build = build
    orders = list(world.builder.orders)
    world.run()
    assert world.visible == ["F1", "F2", "P1", "P2"]
    assert world.builder.orders == orders
    assert len(world.shown) == 2
    world.assert_settled()


def test_r16_a_lost_entry_spends_no_retry(make_world: Any) -> None:
    world = make_world("sync", consistentPushMaxRetries=0)
    world.write("F1")
    for _ in range(3):
        world.trigger()
        revert(world, world.read_session().lineage_entry_id)
    world.run()
    assert (world.visible, world.builds, len(world.read_sessions())) == (["F1"], 1, 1)


def test_r16_a_lost_removal_is_started_again(synced: Any) -> None:
    """It has no names to spend."""
    world = synced
    world.remove("P2")
    world.trigger()
    revert(world, world.read_session().lineage_entry_id)
    world.run()
    assert (world.visible, world.shown) == (["P1"], [("P1", "P2"), ("P1",)])
    world.assert_settled()


def test_r16_a_session_whose_entry_is_lost_can_be_given_up(world: Any) -> None:
    world.write("F1")
    world.trigger()
    first = world.read_session()
    revert(world, first.lineage_entry_id)
    world.clear()
    assert world.read_sessions()[-1].outcome is Outcome.CLEARED
    assert staged_names(world) == frozenset()
    world.run()
    assert world.visible == ["F1", "P1", "P2"]
    world.assert_settled()


def test_e09_a_switch_that_was_completed_and_reaped_is_recorded(make_world: Any) -> None:
    """Pinot forgets an append's entry at its next pass, at any age."""
    world = make_world("append")
    world.write("F1", "F2")
    world.pinot.after("end_replace_segments", world.die)
    world.dies()
    assert world.read_session().state is State.SWITCH
    world.pinot.run_retention(world.table)
    assert world.pinot.lineage(world.table).entries == ()
    world.run()
    assert (world.builds, world.read_sessions()[-1].outcome) == (1, Outcome.PUBLISHED)
    world.assert_settled()


def test_e09_a_switch_whose_outputs_somebody_replaced_since_happened(make_world: Any) -> None:
    """Completed, reaped and merged, all before its driver came back."""
    world = make_world("append")
    world.write("F1")
    world.pinot.after("end_replace_segments", world.die)
    world.dies()
    world.pinot.run_retention(world.table)
    (name,) = world.pinot.visible_segments(world.table)
    merged = world.pinot.start_replace_segments(world.table, [name], ["merged_1"])
    fake_table = world.pinot._tables[world.table]
    fake_table.segments["merged_1"] = fake_table.segments[name]
    world.pinot.end_replace_segments(world.table, merged)
    world.run()
    assert (world.builds, world.read_sessions()[-1].outcome) == (1, Outcome.PUBLISHED)
    assert name in world.pinot.all_segments(world.table)
    assert world.pinot.visible_segments(world.table) == {"merged_1"}
