"""`rollbackWindow`: how many generations of a table Pinot holds, and when the oldest goes; room for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pinot_assets.errors import PushRefused, SwitchStateUnknown
from pinot_assets.session.checks import capacity
from pinot_assets.session.values.state import Outcome, State

pytestmark = pytest.mark.integration


def swapped_twice(make_world: Any, **options: Any) -> Any:
    """A1, replaced by B1, which is published; C1 is listed."""
    world = make_world("swap", **options)
    for old, new in (("A1", "B1"), ("B1", "C1")):
        world.write(old)
        world.run()
        world.remove(old)
        world.write(new)
    world.watch_anew()
    return world


def held(world: Any) -> list[str]:
    """Values of all segments in Pinot, hidden ones too."""
    return sorted(v for s in world.pinot.all_segments(world.table) for v in world.builder.rows[s])


def test_the_generation_before_stays_until_the_new_one_is_known_to_be_good(make_world: Any) -> None:
    world = swapped_twice(make_world)
    world.trigger()
    assert held(world) == ["A1", "B1", "C1"]
    before, _ = world.audit()
    assert held(world) == ["A1", "B1", "C1"]
    world.publish()
    assert held(world) == ["B1", "C1"]
    assert world.shown == [("B1",), ("C1",)]
    assert world.read_sessions()[-1].audit == before.audit  # R8: the same lists under another entry
    world.assert_settled()
    world.rollback()
    assert world.visible == ["B1"]


def test_no_broker_works_on_an_older_change_when_a_replacement_ends(make_world: Any) -> None:
    world = swapped_twice(make_world)
    world.run()
    changes = {
        "start_replace_segments", "force_start_replace_segments", "delete_segments", "push",
        "settle_brokers", "end_replace_segments",
    }  # fmt: skip
    calls = [call for call in world.pinot.calls if call in changes]
    ends = [n for n, call in enumerate(calls) if call == "end_replace_segments"]
    assert len(ends) == 3  # A1's first push replaces nothing, by an entry all the same
    assert {calls[n - 1] for n in ends} == {"settle_brokers"}
    assert calls[ends[-1] - 2] == "force_start_replace_segments"  # which deleted A1


def test_with_pinots_default_it_goes_at_the_start(make_world: Any) -> None:
    world = swapped_twice(make_world, rollbackWindow="pinotDefault")
    world.trigger()
    assert held(world) == ["B1", "C1"]
    world.audit()
    world.publish()
    assert world.shown == [("B1",), ("C1",)]
    world.assert_settled()


def test_a_sync_that_replaces_everything_lets_the_generation_before_go(make_world: Any) -> None:
    world = make_world("sync")
    for version in ("1", "2", "3"):
        world.write(P1=version)
        world.run()
    assert held(world) == ["2", "3"]
    world.assert_settled()


def test_a_sync_that_replaces_a_part_lets_nothing_go(make_world: Any) -> None:
    """As Pinot has it: only where what is replaced is all that an earlier switch showed."""
    world = make_world("sync")
    for version in ("1", "2"):
        world.write(P1=version, P2=f"{version}b")
        world.run()
    world.write(P1="3")
    world.run()
    assert held(world) == ["1", "1b", "2", "2b", "3"]
    assert world.pinot.calls.count("force_start_replace_segments") == 0


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_driver_that_dies_at_the_second_start_is_gone_on_for(make_world: Any, point: str) -> None:
    world = swapped_twice(make_world)
    getattr(world.pinot, point)("force_start_replace_segments", world.die)
    world.dies()
    builds = world.builds
    world.run()
    assert (held(world), world.builds) == (["B1", "C1"], builds)
    assert world.shown == [("B1",), ("C1",)]
    world.assert_settled()


def test_a_second_start_that_answers_late_is_read_from_the_lineage(make_world: Any) -> None:
    """As up to 0.11, where it answers when the servers have dropped what it deletes."""
    world = swapped_twice(make_world)
    world.pinot.lose_reply("force_start_replace_segments")
    world.run()
    assert held(world) == ["B1", "C1"]
    world.assert_settled()


def test_a_second_start_that_never_arrives_leaves_everything_as_it_is(make_world: Any) -> None:
    world = swapped_twice(make_world)
    world.pinot.lose_call("force_start_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        world.run()
    assert (held(world), world.visible) == (["A1", "B1", "C1"], ["B1"])
    world.run()
    assert held(world) == ["B1", "C1"]
    world.assert_settled()


@pytest.mark.parametrize(("window", "fits"), [("keepUntilSwitch", False), ("pinotDefault", True)])
def test_room_is_looked_for_as_many_generations_as_will_be_there(
    make_world: Any, window: str, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = swapped_twice(make_world, rollbackWindow=window)
    size = max(o.tar_bytes for o in world.read_snapshot().segments.values())
    spec = world.read_spec()
    spec = replace(spec, table_json={**spec.table_json, "quota": {"storage": str(int(size * 2.5))}})
    monkeypatch.setattr(type(world), "read_spec", lambda _: spec)
    world.pinot.update_table(spec.table_json)
    if fits:
        world.run()
        assert world.visible == ["C1"]
    else:
        with pytest.raises(PushRefused, match="pinotDefault keeps one generation less"):
            world.run()
        assert world.read_session().state is State.IN_PROGRESS
        assert world.visible == ["B1"]


def test_a_switch_whose_lineage_would_be_too_big_is_refused_before_it_starts(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world("sync", maxNumRecordsPerSegment=1)
    world.write(F1=" ".join(map(str, range(20))))
    monkeypatch.setattr(capacity, "LINEAGE_BYTES", 600)
    with pytest.raises(PushRefused, match="does not fit into its lineage"):
        world.run()
    assert (world.builds, world.pinot.all_segments(world.table)) == (1, frozenset())
    assert "start_replace_segments" not in world.pinot.calls
    monkeypatch.undo()
    world.run()
    assert (world.builds, len(world.visible), world.read_sessions()[-1].retry_count) == (1, 20, 0)


def test_a_session_that_could_never_be_switched_builds_nothing(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world("sync")
    world.write(*(f"F{n}" for n in range(20)))
    monkeypatch.setattr(capacity, "LINEAGE_BYTES", 600)
    with pytest.raises(PushRefused, match="too many for one switch"):
        world.run()
    assert (world.builds, world.read_sessions()) == (0, [])
    monkeypatch.undo()
    world.run()
    assert world.read_sessions()[-1].outcome is Outcome.PUBLISHED
