"""What a switch replaces, and what others do to the table meanwhile: rule R5, edge case E22."""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.errors import SwitchConflict
from pinot_assets.pinot import LineageState
from pinot_assets.session.values.report import TriggerResult

pytestmark = pytest.mark.integration


@pytest.fixture
def synced(make_world: Any) -> Any:
    """P1, P2 and P3 are published, in sync."""
    world = make_world("sync")
    world.write("P1", "P2", "P3")
    world.run()
    world.watch_anew()
    return world


def segment_of(world: Any, value: str) -> str:
    name: str = next(s for s in world.read_snapshot().segments if world.builder.rows[s] == (value,))
    return name


def put_foreign(world: Any, name: str) -> None:
    """A plain segment that somebody else pushes."""
    fake = world.pinot._tables[world.table]
    fake.segments[name] = next(iter(world.read_snapshot().segments.values()))


def test_r05_only_what_is_visible_is_replaced(synced: Any) -> None:
    """A published segment was deleted by hand, long before."""
    world = synced
    world.pinot.delete_segments(world.table, [segment_of(world, "P1")])
    world.write(P1="P1.1", P2="P2.1")
    world.run()
    assert world.visible == ["P1.1", "P2.1", "P3"]
    world.assert_settled()


def test_r05_a_source_that_is_missing_at_the_start_makes_a_new_switch(synced: Any) -> None:
    world = synced
    lost = segment_of(world, "P1")
    world.write(P1="P1.1", P2="P2.1")
    world.pinot.before("start_replace_segments", lambda: world.pinot.delete_segments(world.table, [lost]))
    assert world.run().result is TriggerResult.STAGED
    assert world.read_sessions()[-1].switch == 2
    assert world.visible == ["P1.1", "P2.1", "P3"]
    assert any(lost in note and "a new switch" in note for note in world.notes)
    world.assert_settled()


def test_r05_sources_that_somebody_merged_pause_the_table_with_their_names(synced: Any) -> None:
    world = synced
    mine = [segment_of(world, "P1"), segment_of(world, "P2")]
    merged = world.pinot.start_replace_segments(world.table, mine, ["merged_1"])
    put_foreign(world, "merged_1")
    world.pinot.end_replace_segments(world.table, merged)
    world.write("P4")
    before = world.visible
    for _ in range(2):
        with pytest.raises(SwitchConflict, match="another program replaced") as caught:
            world.run()
    assert all(name in str(caught.value) for name in mine)
    assert world.visible == before
    assert world.read_session().retry_count == 0


def test_e22_somebody_elses_open_entry_over_our_sources_is_never_forced_away(synced: Any) -> None:
    world = synced
    foreign = world.pinot.start_replace_segments(world.table, [segment_of(world, "P1")], ["merged_1"])
    world.write(P1="P1.1")
    world.pinot.calls.clear()
    for _ in range(2):
        with pytest.raises(SwitchConflict, match="merged_1"):
            world.run()
    assert "force_start_replace_segments" not in world.pinot.calls
    assert world.pinot.lineage(world.table).get(foreign).state is LineageState.IN_PROGRESS
    assert world.read_session().retry_count == 0
    world.pinot.force_revert_replace_segments(world.table, foreign)
    world.run()
    assert world.built == ["P1"]
    assert world.visible == ["P1.1", "P2", "P3"]
    world.assert_settled()


def test_e22_nor_where_every_start_is_a_forced_one(make_world: Any) -> None:
    world = make_world("sync", rollbackWindow="pinotDefault")
    world.write("P1")
    world.run()
    foreign = world.pinot.start_replace_segments(world.table, [segment_of(world, "P1")], ["merged_1"])
    world.write(P1="P1.1")
    with pytest.raises(SwitchConflict, match="merged_1"):
        world.run()
    assert world.pinot.lineage(world.table).get(foreign).state is LineageState.IN_PROGRESS
