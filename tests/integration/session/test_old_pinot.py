"""Removals on a Pinot before 1.0, which refuses a replacement by nothing (`add_placeholder`)."""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.errors import SwitchConflict
from pinot_assets.session.values.report import TriggerResult

pytestmark = pytest.mark.integration


@pytest.fixture
def world(make_world: Any) -> Any:
    """P1, P2 and P3 are published, in sync."""
    world = make_world("sync", pinot={"version": "0.11.0"})
    world.write("P1", "P2", "P3")
    world.run()
    world.watch_anew()
    return world


def test_a_removal_takes_one_staying_segment_along(world: Any) -> None:
    world.remove("P2")
    world.run()
    assert world.builds == 1
    assert world.shown == [("P1", "P2", "P3"), ("P1", "P3")]
    world.assert_settled()
    assert world.run().result is TriggerResult.NOTHING
    world.write(P1="P1.1", P3="P3.1")
    world.run()
    assert world.visible == ["P1.1", "P3.1"]
    world.assert_settled()


def test_a_removal_is_rolled_back(world: Any) -> None:
    world.remove("P2")
    world.run()
    world.rollback()
    assert world.shown == [("P1", "P2", "P3"), ("P1", "P3"), ("P1", "P2", "P3")]
    world.assert_settled()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["start_replace_segments", "push", "end_replace_segments"])
def test_a_driver_dies_in_a_removal(world: Any, when: str, method: str) -> None:
    world.remove("P2")
    getattr(world.pinot, when)(method, world.die)
    world.dies()
    world.run()
    assert world.shown == [("P1", "P2", "P3"), ("P1", "P3")]
    world.assert_settled()


def test_a_removal_that_is_not_wanted_any_more_leaves_the_ledger_as_it_was(world: Any) -> None:
    world.remove("P2")
    world.trigger()
    world.write("P2")
    world.run()
    assert world.shown == [("P1", "P2", "P3")]
    world.assert_settled()
    assert world.run().result is TriggerResult.NOTHING


def test_the_last_file_cannot_be_removed(world: Any) -> None:
    world.remove("P1", "P2", "P3")
    for _ in range(2):
        with pytest.raises(SwitchConflict, match="cannot be emptied"):
            world.run()
    assert world.visible == ["P1", "P2", "P3"]
    world.write("P4")
    world.run()
    assert world.visible == ["P4"]
    world.assert_settled()


def test_a_plan_tells_what_is_carried_along_with_a_removal(world: Any) -> None:
    world.write(P1="1", P2="2", P3="3")
    world.run()  # all three at once: what they replaced is what a forced start deletes
    world.remove("P1", "P2")
    with world.driver() as driver:
        plan = driver.plan()
    assert plan.switching is not None
    before = world.pinot.all_segments(world.table)
    world.run()
    entry = world.pinot.lineage(world.table).get(world.read_snapshot().lineage_entry_id)
    assert set(plan.planned.segments_from) == entry.segments_from
    assert len(plan.switching.added) == len(entry.segments_to) == 1
    assert set(plan.switching.force_cleanup_loss.segments) == before - world.pinot.all_segments(world.table)
    assert plan.switching.force_cleanup_loss.segments
    assert plan.switching.rows.after.total == world.read_snapshot().rows == 1


def test_a_plan_tells_that_the_last_file_cannot_be_removed(world: Any) -> None:
    world.remove("P1", "P2", "P3")
    with world.driver() as driver:
        refused = driver.plan().planned.refused
    with pytest.raises(SwitchConflict) as raised:
        world.run()
    assert refused is not None
    assert refused.reason == raised.value.reason
