"""The scenes of the guide, in append, sync and swap, on a fake Pinot and a real one.

Source: docs/guides/consistent-push.md#how-all-scenes-begin and #it-fails-again, which is scene x.

With the real one, threads query both brokers all the while: they may see the set before and the set after,
and nothing else. There the first scene and the failures that follow it are those of scene x.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome, State

pytestmark = pytest.mark.integration

WORLDS = {"fake": "make_world", "pinot": "make_real_world"}
MODES = ("append", "sync", "swap")
on_both = pytest.mark.parametrize("scene", [*product(MODES, WORLDS)], indirect=True, ids="-".join)


@pytest.fixture(params=[(mode, "fake") for mode in MODES], ids="-".join)
def scene(request: pytest.FixtureRequest, at_noon: Callable[[Any, str], Any]) -> Any:
    """Like the fixture that it hides, on either Pinot."""
    mode, pinot = request.param
    return at_noon(request.getfixturevalue(WORLDS[pinot])(mode), mode)


def test_scene_1_what_was_built_stays_hidden(scene: Any) -> None:
    world = scene.world
    expected = {"append": ["F1", "F2", "F3", "F4", "F5"], "swap": ["F1", "F2", "F3", "F4", "F5", "P1"]}
    assert world.built == expected.get(scene.mode, expected["append"])
    assert world.visible == scene.before
    assert world.shown == [tuple(scene.before)]
    session = world.read_session()
    assert (session.state, session.retry_count) == (State.IN_PROGRESS, 0)
    # Late start: nothing of the session is in Pinot before all of it is built.
    assert world.pinot.all_segments(world.table) == world.pinot.visible_segments(world.table)


@on_both
def test_scene_2_a_file_is_added(scene: Any) -> None:
    world = scene.world
    world.write("F6")
    world.builder.failing = set()
    world.run()
    assert world.built == ["F3", "F4", "F5", "F6"]
    after = scene.after("F1", "F2", "F3", "F4", "F5", "F6")
    assert world.visible == after
    assert world.shown == [tuple(scene.before), tuple(after)]
    last = world.read_sessions()[-1]
    assert (last.state, last.outcome, last.retry_count) == (State.DONE, Outcome.PUBLISHED, 1)
    world.assert_settled()


@on_both
def test_scene_3_an_unprocessed_file_is_rewritten(scene: Any) -> None:
    world = scene.world
    world.write(F3="F3.1")
    world.builder.failing = set()
    world.run()
    assert world.built == ["F3", "F4", "F5"]
    after = scene.after("F1", "F2", "F3.1", "F4", "F5")
    assert world.visible == after
    assert world.shown == [tuple(scene.before), tuple(after)]
    world.assert_settled()


@on_both
def test_scene_4_a_processed_file_is_rewritten(scene: Any) -> None:
    world = scene.world
    world.write(F1="F1.1")
    world.builder.failing = set()
    world.run()
    assert world.built == ["F3", "F4", "F5"]
    after = scene.after("F1", "F2", "F3", "F4", "F5")
    assert world.visible == after
    world.run()  # 20:00
    if scene.mode == "swap":
        assert world.built == ["F1", "F2", "F3", "F4", "F5", "P1"]
    else:
        assert world.built == ["F1"]
    later = scene.after("F1.1", "F2", "F3", "F4", "F5", *(["F1"] if scene.mode == "append" else []))
    assert world.visible == later
    assert world.shown == [tuple(scene.before), tuple(after), tuple(later)]
    world.assert_settled()


@on_both
def test_scene_5_a_processed_file_is_deleted(scene: Any) -> None:
    world = scene.world
    world.remove("F1")
    world.builder.failing = set()
    world.run()
    assert world.built == ["F3", "F4", "F5"]
    after = scene.after("F2", "F3", "F4", "F5")
    assert world.visible == after
    assert world.shown == [tuple(scene.before), tuple(after)]
    assert set(world.read_ledger()) == {"P1", "F2", "F3", "F4", "F5"}
    world.assert_settled()


@on_both
def test_scene_6_an_unprocessed_file_is_deleted(scene: Any) -> None:
    world = scene.world
    world.remove("F3")
    world.builder.failing = set()
    world.run()
    assert world.built == ["F4", "F5"]
    after = scene.after("F1", "F2", "F4", "F5")
    assert world.visible == after
    assert world.shown == [tuple(scene.before), tuple(after)]
    world.assert_settled()


@pytest.mark.parametrize("what", ["add F6", "rewrite F3", "rewrite F1", "delete F1", "delete F3"])
def test_scenes_2_to_6_while_a_file_fails_again(scene: Any, what: str) -> None:
    world = scene.world
    _do(world, what)
    world.builder.failing = {"F5"}
    world.run()
    assert world.visible == scene.before
    assert world.shown == [tuple(scene.before)]
    session = world.read_session()
    assert (session.state, session.retry_count) == (State.IN_PROGRESS, 1)
    world.builder.failing = set()
    world.run()
    assert world.built == ["F5"]
    assert world.read_sessions()[-1].retry_count == 2
    assert len(world.shown) == 2
    world.assert_settled()


def _do(world: Any, what: str) -> None:
    match what.split():
        case "add", name:
            world.write(name)
        case "rewrite", name:
            world.write(**{name: f"{name}.1"})
        case "delete", name:
            world.remove(name)


@on_both
def test_scene_x_the_retries_are_used_up(scene: Any) -> None:
    world = scene.world
    first = world.read_session().id
    world.builder.failing = {"F5"}
    for hours in (16, 20, 24):
        world.run()
        assert world.read_session().id == first, hours
        assert world.visible == scene.before
        assert world.pinot.all_segments(world.table) == world.pinot.visible_segments(world.table)
        world.later(4)
    assert world.read_session().retry_count == 3
    world.run()  # 04:00
    assert world.read_session().id != first
    assert world.read_session().retry_count == 0
    assert world.built[:5] == ["F1", "F2", "F3", "F4", "F5"]
    assert world.shown == [tuple(scene.before)]
    assert [s.outcome for s in world.read_sessions()] == [Outcome.ABANDONED_RETRIES, Outcome.OPEN]
    # What the first session had staged is gone, its receipts first.
    assert list(world.staging.store.list(f"sessions/{first}/files")) == []
    assert not any(first in info.key for info in world.staging.store.list("segments"))


@on_both
def test_scene_d_no_retries(scene: Any) -> None:
    world = scene.world
    first = world.read_session().id
    world.options["consistentPushMaxRetries"] = 0
    world.builder.failing = set()
    report = world.run()
    assert report.result is TriggerResult.STAGED
    assert world.built[:5] == ["F1", "F2", "F3", "F4", "F5"]
    after = scene.after("F1", "F2", "F3", "F4", "F5")
    assert world.visible == after
    assert world.shown == [tuple(scene.before), tuple(after)]
    assert [(s.outcome, s.retry_count) for s in world.read_sessions()] == [
        (Outcome.ABANDONED_RETRIES, 0),
        (Outcome.PUBLISHED, 0),
    ]
    assert world.read_sessions()[-1].id != first
    world.assert_settled()


def test_e13_more_retries_save_a_session(scene: Any) -> None:
    """The budget is read at the trigger (edge case E13)."""
    world = scene.world
    first = world.read_session().id
    world.options["consistentPushMaxRetries"] = 1
    world.run()
    world.options["consistentPushMaxRetries"] = 2
    world.builder.failing = set()
    world.run()
    assert world.built == ["F3", "F4", "F5"]
    assert world.read_sessions()[-1].id == first
    assert world.read_sessions()[-1].outcome is Outcome.PUBLISHED
