"""How a session ends, and what the same trigger does then: rules R19, R20 and R27."""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.errors import SwitchConflict
from pinot_assets.pinot import LineageState
from pinot_assets.session.stores.session_store import Lease
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome, State

pytestmark = pytest.mark.integration


@pytest.fixture(params=["append", "sync", "swap"])
def world(request: pytest.FixtureRequest, make_world: Any) -> Any:
    """P1 is published."""
    world = make_world(request.param)
    world.write("P1")
    world.run()
    world.watch_anew()
    return world


def staged(world: Any) -> list[str]:
    """Objects of the open or newest session that clearing deletes."""
    return [
        info.key for info in world.staging.store.list("segments") if world.read_sessions()[-1].id in info.key
    ]


def test_r19_a_session_is_closed_after_its_entry_was_seen_reverted(world: Any) -> None:
    world.write("F1")
    world.trigger()
    entry = world.read_session().lineage_entry_id
    world.pinot.lose_call("force_revert_replace_segments")
    with pytest.raises(SwitchConflict, match="could not be reverted"):
        world.clear()
    assert world.read_session().outcome is Outcome.OPEN
    assert staged(world)
    world.clear()
    assert world.pinot.lineage(world.table).get(entry).state is LineageState.REVERTED
    assert world.read_sessions()[-1].outcome is Outcome.CLEARED


def test_r19_what_was_staged_goes_after_the_outcome_is_written(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("F1")
    world.trigger()
    with monkeypatch.context() as patch:
        patch.setattr(Lease, "write", lambda lease, **what: world.die())
        with pytest.raises(BaseException, match=r"^$"), world.driver() as driver:
            driver.clear()
    assert (world.read_session().outcome, world.visible) == (Outcome.OPEN, ["P1"])
    assert staged(world)
    world.clear()
    assert staged(world) == []
    assert world.shown == [("P1",)]
    world.assert_settled()


def test_r20_what_changes_no_segment_writes_a_snapshot_too(world: Any) -> None:
    before = world.read_pointer().current_snapshot
    (world.source / "E1").write_text("v\n")
    if world.options.get("consistentPushSwapEnabled"):
        assert world.run().result is TriggerResult.STAGED  # a swap builds what is listed
    else:
        assert world.run().result is TriggerResult.NOOP
        assert world.read_sessions()[-1].state is State.DONE
    assert world.read_pointer().current_snapshot != before
    assert world.read_ledger()["E1"] == ()
    assert world.run().result is TriggerResult.NOTHING
    assert world.visible == ["P1"]


def test_r27_init_is_refreshed_and_gone_on_with(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("F1", "F2")
    with monkeypatch.context() as patch:
        patch.setattr(Lease, "prune", lambda lease: world.die())
        world.dies()
    first = world.read_session()
    assert first.state is State.INIT
    world.remove("F1")
    world.write("F3")
    world.run()
    assert "F1" not in world.built
    assert world.visible == ["F2", "F3", "P1"]
    assert world.read_sessions()[-1].id == first.id
    assert world.read_sessions()[-1].retry_count == 0
    world.assert_settled()


def test_r27_a_settled_switch_is_followed_by_a_new_session_in_the_same_trigger(world: Any) -> None:
    world.write("F1")
    world.pinot.after("end_replace_segments", world.die)
    world.dies()
    world.write("F2")
    world.run()
    assert [s.outcome for s in world.read_sessions()] == [Outcome.PUBLISHED, Outcome.PUBLISHED]
    assert world.visible == ["F1", "F2", "P1"]
    assert world.shown == [("P1",), ("F1", "P1"), ("F1", "F2", "P1")]
    world.assert_settled()
