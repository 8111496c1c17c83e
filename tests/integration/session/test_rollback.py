"""The way back, and what it holds until `resume` (rules R21 to R23)."""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.errors import RollbackRefused, SessionError, SwitchConflict
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Mode, Outcome

pytestmark = pytest.mark.integration

MODES = ("append", "sync", "swap")


@pytest.fixture(params=MODES)
def world(request: pytest.FixtureRequest, make_world: Any) -> Any:
    """Two snapshots: P1, P2 and then F1 in addition."""
    return published(make_world(request.param))


@pytest.fixture
def synced(make_world: Any) -> Any:
    return published(make_world("sync"))


def published(world: Any) -> Any:
    world.write("P1", "P2")
    world.run()
    world.write("F1")
    world.run()
    world.watch_anew()
    return world


def test_a_rollback_brings_the_former_snapshot_back_at_once(world: Any) -> None:
    world.rollback()
    assert world.visible == ["P1", "P2"]
    assert world.shown == [("F1", "P1", "P2"), ("P1", "P2")]
    assert set(world.read_ledger()) == {"P1", "P2"}
    last = world.read_sessions()[-1]
    assert (last.mode, last.outcome) == (Mode.ROLLBACK, Outcome.PUBLISHED)
    world.assert_settled()


def test_what_was_rolled_back_is_held_until_resume(world: Any) -> None:
    world.rollback()
    builds = world.builds
    for _ in range(2):
        assert world.run().result is TriggerResult.HELD
    assert world.builds == builds
    assert world.visible == ["P1", "P2"]
    assert world.resume() is True
    assert world.resume() is False
    world.run()
    assert world.visible == ["F1", "P1", "P2"]
    world.assert_settled()


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_another_version_of_a_held_file_is_taken(make_world: Any, mode: str) -> None:
    world = published(make_world(mode))
    world.rollback()
    world.write("F2", F1="F1.1")
    world.run()
    assert world.built == ["F1", "F2"]
    assert world.visible == ["F1.1", "F2", "P1", "P2"]
    world.assert_settled()


def test_swap_holds_everything_until_resume(make_world: Any) -> None:
    world = published(make_world("swap"))
    world.rollback()
    world.write("F2")
    assert world.run().result is TriggerResult.HELD
    assert world.visible == ["P1", "P2"]
    world.resume()
    world.run()
    assert world.visible == ["F1", "F2", "P1", "P2"]


def test_a_removal_that_was_rolled_back_is_held(make_world: Any) -> None:
    world = make_world("sync")
    world.write("P1", "P2")
    world.run()
    world.remove("P2")
    world.write(P1="P1.1")
    world.run()
    world.rollback()
    assert world.visible == ["P1", "P2"]
    assert world.run().result is TriggerResult.HELD
    assert world.visible == ["P1", "P2"]
    world.resume()
    world.run()
    assert world.visible == ["P1.1"]
    world.assert_settled()


def test_a_second_rollback_goes_one_further(world: Any) -> None:
    world.write("G1")
    world.run()
    world.rollback()
    assert world.visible == ["F1", "P1", "P2"]
    world.rollback()
    assert world.visible == ["P1", "P2"]
    assert world.run().result is TriggerResult.HELD
    with pytest.raises(RollbackRefused, match="first snapshot"):
        world.rollback()
    world.resume()
    world.run()
    assert world.visible == ["F1", "G1", "P1", "P2"]
    world.assert_settled()


def test_a_rollback_leads_past_a_snapshot_that_switched_nothing(synced: Any) -> None:
    (synced.source / "E1").write_text("v\n")
    assert synced.run().result is TriggerResult.NOOP
    synced.rollback()
    assert synced.visible == ["P1", "P2"]
    assert synced.run().result is TriggerResult.HELD


def test_an_unpublished_table_has_no_way_back(make_world: Any) -> None:
    world = make_world("sync")
    with pytest.raises(RollbackRefused, match="never been published"):
        world.rollback()
    world.write("F1")
    world.run()
    with pytest.raises(RollbackRefused, match="first snapshot"):
        world.rollback()
    assert world.visible == ["F1"]


def test_a_rollback_is_refused_in_a_switch(synced: Any) -> None:
    synced.write("F2")
    synced.trigger()
    with pytest.raises(RollbackRefused, match="is in its switch"):
        synced.rollback()
    assert synced.visible == ["F1", "P1", "P2"]


def test_a_rollback_drops_a_failed_session(synced: Any) -> None:
    """At most one session is open (I3), and its plan was made beside the snapshot that goes."""
    synced.write("F2", "F3")
    synced.builder.failing = {"F3"}
    synced.run()
    failed = synced.read_session().id
    synced.rollback()
    assert synced.visible == ["P1", "P2"]
    assert [s.outcome for s in synced.read_sessions()] == [Outcome.CLEARED, Outcome.PUBLISHED]
    assert synced.read_sessions()[0].id == failed
    synced.builder.failing = set()
    synced.run()
    assert synced.visible == ["F2", "F3", "P1", "P2"]
    synced.assert_settled()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_driver_dies_in_a_rollback_and_the_next_trigger_finishes_it(world: Any, when: str) -> None:
    getattr(world.pinot, when)("revert_replace_segments", world.die)
    with pytest.raises(BaseException, match=r"^$"), world.driver() as driver:
        driver.rollback()
    assert world.read_session().mode is Mode.ROLLBACK
    assert world.run().result is TriggerResult.HELD
    assert world.visible == ["P1", "P2"]
    assert world.shown == [("F1", "P1", "P2"), ("P1", "P2")]
    world.assert_settled()


def test_a_lost_reply_to_a_revert_is_looked_up(world: Any) -> None:
    world.pinot.lose_reply("revert_replace_segments")
    world.rollback()
    assert world.visible == ["P1", "P2"]
    world.assert_settled()


def test_a_lost_revert_is_sent_again_by_the_next_trigger(world: Any) -> None:
    world.pinot.lose_call("revert_replace_segments")
    with pytest.raises(SessionError, match="could not be rolled back"):
        world.rollback()
    assert world.visible == ["F1", "P1", "P2"]
    assert world.run().result is TriggerResult.HELD
    assert world.visible == ["P1", "P2"]
    world.assert_settled()


def test_a_rollback_that_pinot_refuses_can_be_cleared(synced: Any) -> None:
    def refuse() -> None:
        raise SwitchConflict("not now")

    synced.pinot.before("revert_replace_segments", refuse)
    with pytest.raises(SessionError, match="not now"):
        synced.rollback()
    assert synced.clear().mode is Mode.ROLLBACK
    assert synced.read_pointer().hold is None
    assert synced.run().result is TriggerResult.NOTHING
    assert synced.visible == ["F1", "P1", "P2"]
    synced.assert_settled()


def test_a_restored_segment_that_is_gone_does_not_keep_the_table_waiting(synced: Any) -> None:
    """Pinot's time retention, or a hand, deletes a segment that the switch left alone."""
    (published_p1,) = [f for f in synced.read_snapshot().files if f.uri.endswith("P1")]
    lost = [o.segment for o in published_p1.outputs]
    synced.pinot.delete_segments(synced.table, lost)
    synced.watch_anew()
    synced.rollback()
    assert synced.visible == ["P2"]
    assert synced.run().result is TriggerResult.HELD
