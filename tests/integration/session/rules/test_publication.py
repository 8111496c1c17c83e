"""What happens around a switch: edge cases E7, E8, E10, E12, E15, E19, E31, rules R9 and R26."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fakes.waiting import until

from pinot_assets.errors import PinotAssetsError, PinotError, PushRefused, SessionHeld, SpecDrift
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome, State

pytestmark = pytest.mark.integration

Make = Callable[..., Any]


@pytest.fixture(params=["append", "sync", "swap"])
def world(request: pytest.FixtureRequest, make_world: Make) -> Any:
    """P1 is published."""
    world = make_world(request.param)
    world.write("P1")
    world.run()
    world.watch_anew()
    return world


def test_e07_files_of_one_name_in_two_folders_are_two(world: Any) -> None:
    world.write(**{"a/F": "1", "b/F": "2"})
    world.run()
    assert world.visible == ["1", "2", "P1"]
    assert len(world.read_snapshot().ledger) == 3
    assert world.run().result is TriggerResult.NOTHING


def test_e08_equal_rows_of_two_files_are_both_there(world: Any) -> None:
    world.write(F1="x", F2="x")
    world.run()
    assert world.visible == ["P1", "x", "x"]


def test_e10_of_drivers_that_race_one_goes_on_and_the_others_say_who(world: Any) -> None:
    world.write("F1")
    with world.driver() as first, world.driver() as second:
        first.trigger()
        for step in (second.trigger, second.audit, second.publish, second.clear):
            with pytest.raises(SessionHeld, match=r"held by run-\d+ on .* since 20"):
                step()
        first.audit()
        first.publish()
    assert world.shown == [("P1",), ("F1", "P1")]
    assert len(world.read_sessions()) == 2
    world.assert_settled()


def test_e12_a_table_that_is_deleted_meanwhile_stops_its_session(world: Any) -> None:
    """Nothing is pushed or built for a table that is not there; its number is never used again."""
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    world.run()
    open_session, builds = world.read_session(), world.builds
    world.pinot.delete_table(world.table)
    world.builder.failing = set()
    with pytest.raises(PinotAssetsError, match="apply"):
        world.run()
    assert (world.read_session(), world.builds) == (open_session, builds)


def test_e15_a_schema_that_grew_after_the_build_does_not_stop_the_switch(world: Any) -> None:
    """Servers fill the new column when they load; the next trigger says that spec and Pinot differ."""
    world.write("F1")
    world.trigger()
    world.audit()
    schema = world.pinot.get_schema(world.table)
    grown = [*schema["dimensionFieldSpecs"], {"name": "w", "dataType": "INT"}]
    world.pinot.put_schema({**schema, "dimensionFieldSpecs": grown})
    world.publish()
    assert world.visible == ["F1", "P1"]
    with pytest.raises(SpecDrift):
        world.run()


def test_e19_a_quota_that_is_too_small_is_told_before_the_push_and_costs_nothing(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("F1", "F2")
    held = world.pinot.all_segments(world.table)
    world.options["consistentPushMaxRetries"] = 0
    with monkeypatch.context() as patch:
        patch.setattr("pinot_assets.session.checks.capacity.quota_bytes", lambda table: 1)
        for _ in range(2):
            with pytest.raises(PushRefused, match=r"raise quota\.storage"):
                world.run()
    assert world.pinot.all_segments(world.table) == held
    assert (world.read_session().state, world.read_session().retry_count) == (State.IN_PROGRESS, 0)
    builds = world.builds
    assert world.run().result is TriggerResult.STAGED
    assert (world.builds, world.visible) == (builds, ["F1", "F2", "P1"])
    world.assert_settled()


def test_e31_what_a_switch_replaced_stays_in_pinot_until_pinot_deletes_it(make_world: Make) -> None:
    """A broker that lags still finds it; and it is the way back."""
    world = make_world("sync")
    world.write("P1")
    world.run()
    (old,) = world.pinot.all_segments(world.table)
    world.write(P1="P1.1")
    world.run()
    for _ in range(2):
        assert world.run().result is TriggerResult.NOTHING
    assert old in world.pinot.all_segments(world.table)
    assert old not in world.pinot.visible_segments(world.table)


def test_r09_tars_of_kept_snapshots_outlive_a_session_that_is_given_up(world: Any) -> None:
    world.write("F1")
    world.run()
    kept = {*world.read_snapshot().segments, *world.staging.snapshot(world.read_snapshot().parent).segments}
    world.write("F2", "F3")
    world.builder.failing = {"F3"}
    world.run()
    given_up = world.clear()
    assert given_up is not None
    assert world.read_sessions()[-1].outcome is Outcome.CLEARED
    tars = {info.key.split("/")[-1].split(".")[0] for info in world.staging.store.list("segments")}
    assert kept <= tars
    assert not any(given_up.id in name for name in tars)


def test_r26_a_step_that_is_executed_again_takes_the_lease_itself(world: Any) -> None:
    world.write("F1")
    world.trigger()
    epoch = world.read_pointer().epoch
    for number, step in enumerate((world.audit, world.audit, world.publish), 1):
        step()
        assert world.read_pointer().epoch == epoch + number
    assert world.visible == ["F1", "P1"]


@pytest.mark.parametrize(
    ("made", "emptied", "filled"),
    [("after", "table", True), ("before", "table", False), ("after", None, False)],
)
def test_e12_a_ledger_that_outlived_its_table_is_forgotten(
    world: Any, made: str, emptied: str | None, filled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a young table alone nor one without segments is a new one."""
    old = world.read_snapshot()
    if emptied:
        world.pinot.delete_table(world.table)
        world.pinot.create_table(world.read_spec().table_json)
    made_ms = old.published_ms + (1 if made == "after" else -1)
    monkeypatch.setattr(SessionStore, "table_made_ms", lambda store: made_ms)
    assert world.run().result is (TriggerResult.STAGED if filled else TriggerResult.NOTHING)
    assert (world.read_snapshot().seq > old.seq) == filled
    if filled:
        assert world.visible == ["P1"]
        assert world.read_snapshot().segments.keys().isdisjoint(old.segments)
        assert any("was deleted and created again" in note for note in world.notes)


def test_e12_on_a_real_pinot_a_table_that_is_made_again_is_filled_again(real_world: Any) -> None:
    """With a table Pinot deletes what ZooKeeper holds of its tasks, our nodes included."""
    world = real_world
    world.write("P1", "P2")
    world.run()
    old = world.read_snapshot()
    world.pinot.delete_table(world.table)
    until(lambda: world.pinot.get_table_config(world.table) is None)

    def made() -> bool:
        try:
            world.pinot.create_table(world.read_spec().table_json)
        except PinotError as refusal:  # from 1.0 on, while a server has not let go of its segments
            if "do the same again" not in str(refusal):
                raise
            return False
        return True

    until(made)
    until(lambda: len(world.brokers) == 2)
    with world.driver() as onlooker:  # the files sensor sees it too
        until(lambda: onlooker.observe().snapshot is None)
    assert world.run().result is TriggerResult.STAGED
    assert world.read_snapshot().seq > old.seq
    assert world.read_snapshot().segments.keys().isdisjoint(old.segments)
    for broker in world.brokers:
        assert world.shown_by(broker) == ["P1", "P2"]
