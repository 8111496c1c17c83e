"""A driver that dies at any point of its way, and replies that get lost: the next triggers converge (I8).

At every step queries see exactly the set before or the set after (I1).
"""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.core.connections import Waits
from pinot_assets.errors import SwitchStateUnknown
from pinot_assets.session.lineage import switch
from pinot_assets.session.stores.session_store import Lease
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome, State

pytestmark = pytest.mark.integration


# Where the driver dies: before or after which call to Pinot.
POINTS = {
    "W1, before start": ("before", "start_replace_segments"),
    "W2, start not yet written down": ("after", "start_replace_segments"),
    "W2, before the push": ("before", "push"),
    "W3, in the push": ("after", "push"),
    "W4, before the audit's end": ("before", "rows_on_servers"),
    "W5, end not sent": ("before", "end_replace_segments"),
    "W5, end happened": ("after", "end_replace_segments"),
    "W5, before the brokers were looked at": ("before", "rebuild_routing"),
}


@pytest.mark.parametrize("point", list(POINTS))
def test_a_driver_dies_on_its_way_and_the_next_trigger_goes_on(
    scene: Any, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch, "MOST", 2)
    world = scene.world
    world.builder.failing = set()
    when, method = POINTS[point]
    getattr(world.pinot, when)(method, world.die)
    world.dies()
    session = world.read_session()
    assert session.state is State.SWITCH
    report = world.run()
    # Files that were built are not built again, and what was no failure is no retry.
    assert world.built == ["F3", "F4", "F5"]
    after = scene.after("F1", "F2", "F3", "F4", "F5")
    assert world.visible == after
    assert world.shown == [tuple(scene.before), tuple(after)]
    published = world.read_sessions()[-1]
    assert (published.id, published.outcome) == (session.id, Outcome.PUBLISHED)
    assert published.retry_count == 1
    assert report.result in (TriggerResult.STAGED, TriggerResult.NOTHING)
    world.assert_settled()
    # A dead owner's last call may still be on its way; the new one waits for that once, before it writes.
    assert all(0 < s <= Waits().pinot_write for s in world.slept)


def test_a_driver_dies_while_it_builds(scene: Any) -> None:
    world = scene.world
    world.builder.failing = set()
    world.builder.die_after = 1
    world.dies()
    assert (world.read_session().state, world.read_session().retry_count) == (State.IN_PROGRESS, 1)
    world.run()
    assert world.built == ["F4", "F5"]
    assert world.read_sessions()[-1].retry_count == 1
    assert len(world.shown) == 2
    world.assert_settled()


def test_r27_a_driver_dies_in_init(make_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """INIT found by a trigger: the plan is refreshed (R27)."""
    world = make_world("sync")
    world.write("F1", "F2")
    with monkeypatch.context() as patch:
        patch.setattr(Lease, "prune", lambda lease: world.die())
        world.dies()
    assert world.read_session().state is State.INIT
    world.write("F3")
    world.remove("F1")
    world.run()
    assert world.built == ["F2", "F3"]
    assert world.visible == ["F2", "F3"]
    world.assert_settled()


def test_e11_a_driver_dies_between_snapshot_object_and_its_transaction(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = scene.world
    world.builder.failing = set()
    put = Staging.put_snapshot

    def put_and_die(staging: Staging, snapshot: Any) -> None:
        put(staging, snapshot)
        world.die()

    with monkeypatch.context() as patch:
        patch.setattr(Staging, "put_snapshot", put_and_die)
        world.dies()
    after = scene.after("F1", "F2", "F3", "F4", "F5")
    assert world.visible == after
    world.run()
    assert world.shown == [tuple(scene.before), tuple(after)]
    assert world.read_sessions()[-1].outcome is Outcome.PUBLISHED
    world.assert_settled()


def test_a_driver_dies_after_its_audit_and_the_source_changes(scene: Any) -> None:
    """The switch that was audited is not the one that is wanted now: a new one, audited again."""
    world = scene.world
    world.builder.failing = set()
    world.trigger()
    world.audit()
    world.write("F6")
    world.remove("F2")
    world.run()
    assert world.built == ["F6"]
    after = scene.after("F1", "F3", "F4", "F5", "F6")
    assert world.visible == after
    assert world.shown == [tuple(scene.before), tuple(after)]
    assert len(world.read_sessions()) == 2
    world.assert_settled()
    assert world.pinot.all_segments(world.table) >= world.pinot.visible_segments(world.table)
    assert not [s for s in world.pinot.all_segments(world.table) if world.builder.rows.get(s) == ("F2",)]


def test_a_driver_dies_in_a_second_switch_of_its_session(scene: Any) -> None:
    """Between the start over its own entry and the write of the new entry's id."""
    world = scene.world
    world.builder.failing = set()
    world.trigger()
    first = world.read_session()
    world.write("F6")
    world.pinot.after("force_start_replace_segments", world.die)
    world.dies()
    assert world.read_session().switch == first.switch + 1
    world.run()
    assert world.built == ["F6"]
    assert world.read_sessions()[-1].id == first.id
    assert world.visible == scene.after("F1", "F2", "F3", "F4", "F5", "F6")
    assert len(world.shown) == 2
    world.assert_settled()


def test_a_removal_dies_unrecorded_and_more_is_removed(make_world: Any) -> None:
    """An entry without outputs cannot be told by its names; it must still be known as ours."""
    world = make_world("sync")
    world.write("P1", "P2", "P3")
    world.run()
    world.watch_anew()
    world.remove("P2")
    world.pinot.after("start_replace_segments", world.die)
    world.dies()
    world.remove("P3")
    world.run()
    assert world.visible == ["P1"]
    assert world.shown == [("P1", "P2", "P3"), ("P1",)]
    world.assert_settled()


# --- lost calls and replies ----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["start_replace_segments", "end_replace_segments"])
def test_a_lost_reply_is_looked_up(scene: Any, method: str) -> None:
    world = scene.world
    world.builder.failing = set()
    world.pinot.lose_reply(method)
    world.run()
    after = scene.after("F1", "F2", "F3", "F4", "F5")
    assert world.visible == after
    assert world.shown == [tuple(scene.before), tuple(after)]
    assert world.pinot.calls.count(method) == 2  # one to publish P1 or A1..A3, one now
    world.assert_settled()


@pytest.mark.parametrize("method", ["start_replace_segments", "end_replace_segments"])
def test_a_lost_call_is_never_guessed_to_have_happened(scene: Any, method: str) -> None:
    world = scene.world
    world.builder.failing = set()
    world.pinot.lose_call(method)
    with pytest.raises(SwitchStateUnknown):
        world.run()
    assert world.shown == [tuple(scene.before)]
    assert world.read_session().state is State.SWITCH
    retries = world.read_session().retry_count
    world.run()
    assert world.built == ["F3", "F4", "F5"]
    after = scene.after("F1", "F2", "F3", "F4", "F5")
    assert world.shown == [tuple(scene.before), tuple(after)]
    assert world.read_sessions()[-1].retry_count == retries
    world.assert_settled()


def test_an_end_that_completes_late_is_found_completed(scene: Any) -> None:
    """The controller goes on when its caller has gone (W5); the source has changed meanwhile."""
    world = scene.world
    world.builder.failing = set()
    world.pinot.lose_call("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        world.run()
    entry = world.read_session().lineage_entry_id
    world.write(F1="F1.1")
    world.pinot.end_replace_segments(world.table, entry)  # now it arrives
    world.run()
    outcomes = [s.outcome for s in world.read_sessions()]
    assert outcomes == [Outcome.PUBLISHED, Outcome.PUBLISHED]
    assert "F1.1" in world.visible
    assert len(world.shown) == 3
    world.assert_settled()


def test_an_end_under_way_is_ended_before_the_source_is_looked_at(scene: Any) -> None:
    """It may complete at any moment, so nothing else is started in between (W5: IN_PROGRESS, end again)."""
    world = scene.world
    world.builder.failing = set()
    world.pinot.before("end_replace_segments", world.die)
    world.dies()
    world.write("F6", F1="F1.1")
    world.run()
    assert world.visible == scene.after("F1", "F2", "F3", "F4", "F5")
    world.run()
    assert "F6" in world.visible
    assert "F1.1" in world.visible
    assert len(world.shown) == 3
    world.assert_settled()


def test_e09_a_completed_entry_that_was_reaped_is_completed(make_world: Any) -> None:
    """Pinot forgets a switch that replaced nothing at its next clean-up."""
    world = make_world("append")
    world.write("F1", "F2")
    world.pinot.after("end_replace_segments", world.die)
    world.dies()
    world.pinot._tables[world.table].entries.clear()
    world.run()
    assert world.builds == 1
    assert world.read_sessions()[-1].outcome is Outcome.PUBLISHED
    world.assert_settled()


def test_a_reaped_switch_survives_the_loss_of_some_of_its_segments(make_world: Any) -> None:
    """Time retention took one of them meanwhile: reported, and the rest is not taken away."""
    world = make_world("append")
    world.write("F1", "F2")
    world.pinot.after("end_replace_segments", world.die)
    world.dies()
    world.pinot._tables[world.table].entries.clear()
    lost = next(s for s, rows in world.builder.rows.items() if rows == ("F1",))
    world.pinot.delete_segments(world.table, [lost])
    world.run()
    assert world.visible == ["F2"]
    assert world.read_sessions()[-1].outcome is Outcome.PUBLISHED
    assert any(
        "1 segment of" in note and "deleted or replaced after its switch, not by pinot-assets" in note
        for note in world.notes
    )


def test_r02_r03_an_old_entry_is_renewed_before_anything_is_pushed_under_it_or_ended(scene: Any) -> None:
    """R2, R3: Pinot's reaper works from lists that are hours old."""
    world = scene.world
    world.builder.failing = set()
    world.trigger()
    first = world.read_session()
    world.audit()
    world.later(21)
    world.publish()
    published = world.read_sessions()[-1]
    assert published.id == first.id
    assert published.lineage_entry_id != first.lineage_entry_id
    assert world.built == ["F3", "F4", "F5"]
    assert len(world.shown) == 2
    world.assert_settled()
