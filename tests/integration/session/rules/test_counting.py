"""What spends a retry, and what does not: rules R10 and R14."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError, PushRefused, SnapshotIncomplete, SwitchStateUnknown
from pinot_assets.session.values.state import Outcome

if TYPE_CHECKING:
    from integration.session.conftest import SessionWorld

pytestmark = pytest.mark.integration


def raising(error: Exception) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


# --- R10: what is not a retry ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("push", PushRefused("quota exceeded")),
        ("start_replace_segments", PinotError("500 without a reason")),
    ],
)
def test_r10_a_refusal_of_pinots_is_no_retry(make_world: Any, method: str, error: Exception) -> None:
    world = make_world("sync", consistentPushMaxRetries=0)
    world.write("F1")
    for _ in range(3):
        world.pinot.before(method, raising(error))
        with pytest.raises(type(error)):
            world.run()
    assert world.read_session().retry_count == 0
    world.run()
    assert (world.visible, world.builds, len(world.read_sessions())) == (["F1"], 1, 1)
    world.assert_settled()


def test_r10_servers_that_still_load_are_no_retry(make_world: Any) -> None:
    world = make_world("sync", consistentPushMaxRetries=0)
    world.write("F1", "F2")
    world.trigger()
    loading = world.pinot._tables[world.table].loading
    slow = min(world.pinot.all_segments(world.table))
    loading[slow] = 10**6
    for _ in range(2):
        world.run()
        assert world.read_session().audit.waits
        with pytest.raises(SnapshotIncomplete, match="OFFLINE"):
            world.publish()
    loading[slow] = 0
    world.run()
    assert (world.visible, world.builds, len(world.read_sessions())) == (["F1", "F2"], 1, 1)
    assert world.read_sessions()[-1].retry_count == 0
    world.assert_settled()


def slow(world: Any, method: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Each such call takes so long; returns when each of them was answered, in seconds."""
    call, answered = getattr(world.pinot, method), list[float]()

    def slowly(*args: Any) -> Any:
        world.now_ms += int(seconds * 1000)
        answered.append(world.now_ms / 1000)
        return call(*args)

    monkeypatch.setattr(world.pinot, method, slowly)
    return answered


@pytest.mark.parametrize("options", [{}, {"consistentPushEnabled": False}])
def test_r10_servers_are_waited_for_as_long_as_that_takes_and_not_as_many_looks(
    make_world: Any, monkeypatch: pytest.MonkeyPatch, options: JsonObject
) -> None:
    """A controller that answered after a minute made hours of five minutes."""
    world = make_world("append", **options)
    world.write("F1")
    push = world.pinot.push

    def never_loads(table: str, outputs: Any, **more: Any) -> Any:
        for output in outputs:
            world.pinot.load_slowly(output.segment, 10**6)
        return push(table, outputs, **more)

    monkeypatch.setattr(world.pinot, "push", never_loads)
    answered = slow(world, "online_replicas", 60, monkeypatch)
    with suppress(SnapshotIncomplete):  # of a plain push, which takes it back
        world.run()
    assert world.visible == []
    assert answered[-1] - answered[0] <= world.waits.online


def test_r07_a_broker_is_waited_for_as_long_as_that_takes_and_not_as_many_looks(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world("append")
    world.write("F1")
    monkeypatch.setattr(world.pinot, "broker_visible_segments", lambda *_: frozenset())
    answered = slow(world, "broker_visible_segments", 20, monkeypatch)
    with pytest.raises(SwitchStateUnknown, match="does not show the new set"):
        world.run()
    assert answered[-1] - answered[0] <= world.waits.broker


def test_r07_a_broker_that_still_shows_the_old_segments_is_waited_for(
    make_world: Callable[[str], SessionWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would answer rows twice: the new segments alone do not make it right."""
    world = make_world("swap")
    world.write("A1")
    world.run()
    before = world.pinot.visible_segments(world.table)
    world.write("A2")
    shown, left = world.pinot.broker_visible_segments, [3]

    def late(broker: str, table: str) -> frozenset[str]:
        left[0] -= 1
        return shown(broker, table) | (before if left[0] > 0 else frozenset())

    monkeypatch.setattr(world.pinot, "broker_visible_segments", late)
    world.run()
    assert left[0] <= 0
    assert world.visible == ["A1", "A2"]
    world.assert_settled()


def test_r10_builds_that_leave_nothing_behind_are_no_retries(make_world: Any) -> None:
    """Nothing was said about a file: the session, and what it has built, is not given up for it."""
    world = make_world("sync", consistentPushMaxRetries=0)
    world.write("F1", "F2")
    for _ in range(5):
        world.builder.die_after = 0
        world.dies()
    assert world.read_session().trouble_since_ms > 0
    world.run()
    assert (world.visible, len(world.read_sessions())) == (["F1", "F2"], 1)
    assert world.read_sessions()[-1].retry_count == 0
    world.assert_settled()


# --- R10: what counts nevertheless -----------------------------------------------------------------


def fail_to_end(world: Any) -> None:
    world.pinot.lose_call("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        world.run()


def test_r10_two_failed_ends_in_a_row_count_as_one_retry(make_world: Any) -> None:
    world = make_world("sync", consistentPushMaxRetries=1)
    world.write("F1")
    fail_to_end(world)
    fail_to_end(world)
    assert (world.read_session().retry_count, world.read_session().stalls) == (0, 2)
    fail_to_end(world)
    assert (world.read_session().retry_count, world.read_session().stalls) == (1, 1)
    world.run()
    assert (world.visible, world.builds, len(world.read_sessions())) == (["F1"], 1, 1)
    world.assert_settled()


def test_r10_builds_that_died_do_not_count_among_the_ends_of_what_was_built(make_world: Any) -> None:
    world = make_world("sync", consistentPushMaxRetries=5)
    world.write("F1", "F2")
    world.trigger()
    broken = next(s for s in world.pinot.all_segments(world.table) if world.builder.rows[s] == ("F2",))
    world.pinot.break_replica(world.table, broken)
    world.audit()
    world.builder.die_after = 0
    world.dies()  # a repair, in SWITCH
    fail_to_end(world)
    assert (world.read_session().retry_count, world.read_session().stalls) == (1, 1)
    world.run()
    assert world.read_sessions()[-1].retry_count == 1
    world.assert_settled()


def test_r10_failed_ends_use_up_the_retries(make_world: Any) -> None:
    world = make_world("sync", consistentPushMaxRetries=0)
    world.write("F1")
    fail_to_end(world)
    fail_to_end(world)
    world.run()
    assert [s.outcome for s in world.read_sessions()] == [Outcome.ABANDONED_RETRIES, Outcome.PUBLISHED]
    assert world.visible == ["F1"]
    world.assert_settled()


def test_r10_builds_that_come_further_each_time_are_no_retries(make_world: Any) -> None:
    world = make_world("sync", consistentPushMaxRetries=0)
    world.write("F1", "F2", "F3", "F4", "F5")
    for _ in range(4):
        world.builder.die_after = 1
        world.dies()
    world.run()
    assert world.built == ["F5"]
    assert (world.read_sessions()[-1].retry_count, len(world.read_sessions())) == (0, 1)
    assert world.visible == ["F1", "F2", "F3", "F4", "F5"]


# --- R14 -------------------------------------------------------------------------------------------


def test_r14_only_the_files_that_the_audit_names_are_built_again(make_world: Any) -> None:
    world = make_world("sync", consistentPushMaxRetries=1)
    world.write("F1", "F2", "F3")
    world.trigger()
    broken = next(s for s in world.pinot.all_segments(world.table) if world.builder.rows[s] == ("F2",))
    world.pinot.break_replica(world.table, broken)
    session, _ = world.audit()
    (failure,) = world.staging.failures(session.failures)
    assert (failure.uri.rsplit("/", 1)[-1], failure.code) == ("F2", "AUDIT")
    assert "is ERROR on" in failure.reason
    with pytest.raises(SnapshotIncomplete, match="is ERROR on"):
        world.publish()
    world.run()
    assert world.built == ["F2"]
    assert world.read_sessions()[-1].retry_count == 1
    assert broken not in world.pinot.all_segments(world.table)
    assert world.shown == [(), ("F1", "F2", "F3")]
    world.assert_settled()


def test_r14_an_audit_that_names_no_file_ends_the_session(make_world: Any) -> None:
    """What fails is a published segment that goes along (Pinot before 1.0): no file to build again."""
    world = make_world("sync", pinot={"version": "0.11.0"}, consistentPushMaxRetries=5)
    world.write("P1", "P2", "P3")
    world.run()
    world.remove("P2")
    world.trigger()
    (carried,) = world.pinot.all_segments(world.table) - set(world.read_snapshot().segments)
    world.pinot.break_replica(world.table, carried)
    session, _ = world.audit()
    assert session.failures is None
    world.run()
    assert [s.outcome for s in world.read_sessions()] == [Outcome.ABANDONED_AUDIT, Outcome.PUBLISHED]
    assert world.visible == ["P1", "P3"]
    world.assert_settled()


def test_r14_the_failures_of_an_earlier_attempt_do_not_count_again(make_world: Any) -> None:
    world = make_world("sync", consistentPushMaxRetries=1)
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    world.run()
    world.builder.failing = set()
    world.builder.die_after = 0
    world.dies()
    assert (world.read_session().retry_count, world.read_session().failures) == (1, None)
    world.run()
    assert world.read_sessions()[-1].retry_count == 1
    assert world.visible == ["F1", "F2"]
