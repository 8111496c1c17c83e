"""What a change of the table spec does to an open session, and settings that consistent push overrules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SourceError
from pinot_assets.session.values.state import Outcome

pytestmark = pytest.mark.integration

Make = Callable[..., Any]


@pytest.fixture
def failed(make_world: Make) -> Any:
    """F1 is built, F2 has failed."""
    world = make_world("sync")
    world.write("P1")
    world.run()
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    world.run()
    world.builder.failing = set()
    return world


@pytest.mark.parametrize(
    "options",
    [
        {"ingestionMode": "append"},
        {"consistentPushSwapEnabled": True},
        {"consistentPushEnabled": False},
        {"consistentPushEnabled": False, "enableAtomicUpload": True},
        {"includeFileNamePattern": "glob:**/*[0-9]"},
        {"excludeFileNamePattern": "glob:**/*.bak"},
        {"recordReader.prop.nullStringValue": "NULL"},
        {"skipFileIfFailToInitReader": True},
        {"maxNumRecordsPerSegment": 10},
        {"minServer": "1.0"},
    ],
    ids=lambda options: ",".join(options),
)
def test_r28_what_shapes_the_outputs_abandons_the_open_session(failed: Any, options: JsonObject) -> None:
    opened = failed.read_session()
    failed.options.update(options)
    failed.run()
    assert failed.read_sessions()[0].id == opened.id
    assert failed.read_sessions()[0].outcome is Outcome.ABANDONED_CONFIG
    assert failed.read_sessions()[1].outcome is Outcome.PUBLISHED  # in the same trigger
    assert {"F1", "F2"} <= set(failed.built)
    failed.assert_settled()


@pytest.mark.parametrize(
    "options",
    [
        {"consistentPushMaxRetries": 7},
        {"schedule": "0 0 4 * * ?"},
        {"push.mode": "TAR"},
        {"tableMaxNumTasks": "1"},
        {"sensorRetries": True},
        {"rollbackWindow": "pinotDefault"},
        {"emptySourceAction": "REFUSE"},
        {"settleSeconds": 60},
    ],
    ids=lambda options: ",".join(options),
)
def test_e14_what_does_not_leaves_the_session_alone(failed: Any, options: JsonObject) -> None:
    opened = failed.read_session()
    failed.options.update(options)
    failed.run()
    assert failed.built == ["F2"]
    assert (failed.read_sessions()[-1].id, failed.read_sessions()[-1].outcome) == (
        opened.id,
        Outcome.PUBLISHED,
    )
    failed.assert_settled()


def test_r28_the_driver_tries_staging_before_the_first_session(make_world: Make) -> None:
    world = make_world("sync")
    world.write("F1")
    staging = world.folder / "staging"
    staging.rmdir()
    staging.write_text("a file where the staging area should be")
    with pytest.raises(SourceError):
        world.run()
    assert world.read_sessions() == []
    assert world.builds == 0


@pytest.mark.parametrize(("budget", "outcome"), [(0, Outcome.ABANDONED_RETRIES), (2, Outcome.PUBLISHED)])
def test_e13_the_budget_is_read_at_the_trigger(failed: Any, budget: int, outcome: Outcome) -> None:
    failed.options["consistentPushMaxRetries"] = 1
    failed.builder.failing = {"F2"}
    failed.run()
    opened = failed.read_session()
    assert opened.retry_count == 1
    failed.options["consistentPushMaxRetries"] = budget
    failed.builder.failing = set()
    failed.run()
    assert next(s for s in failed.read_sessions() if s.id == opened.id).outcome is outcome
    assert failed.built == (["F2"] if outcome is Outcome.PUBLISHED else ["F1", "F2"])
    assert failed.visible == ["F1", "F2", "P1"]


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_e17_files_that_cannot_be_read_keep_the_push_back(make_world: Make, mode: str) -> None:
    """StarTree skips them by default, which would break all-or-none in silence."""
    world = make_world(mode)
    world.write("F1", "F2")
    world.builder.failing = {"F2"}  # UNREADABLE
    world.run()
    assert world.visible == []
    assert world.read_session().counts["failed"] == 1


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_e17_unless_the_user_says_that_they_may_be_left_out(make_world: Make, mode: str) -> None:
    world = make_world(mode, skipFileIfFailToInitReader=True)
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    world.run()
    assert world.visible == ["F1"]
    assert world.read_ledger() == {"F1": ("F1",), "F2": ()}
    assert any("skipped" in note and "F2" in note for note in world.notes)


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_e18_a_session_is_never_cut_into_two_publications(make_world: Make, mode: str) -> None:
    world = make_world(mode, tableMaxNumTasks="1")
    world.write("F1", "F2", "F3")
    world.run()
    assert world.shown == [(), ("F1", "F2", "F3")]
    assert len(world.read_sessions()) == 1
