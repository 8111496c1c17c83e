"""Who asked for a switch, a retry or a rollback stands in the session and in its snapshot."""

from __future__ import annotations

import json
import logging

import pytest

from pinot_assets.core.decision_log import JsonLines

pytestmark = pytest.mark.integration


def test_the_newest_attempt_the_snapshot_and_a_rollback_say_who_asked(
    request: pytest.FixtureRequest,
) -> None:
    world = request.getfixturevalue("make_world")("sync", consistentPushMaxRetries=3)
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    with world.driver(asked_by="ann@host") as driver:
        driver.trigger()
    assert world.read_session().asked_by == "ann@host"
    world.builder.failing = set()
    with world.driver(asked_by="sensor t_files, Dagster run 7") as driver:
        driver.trigger()
        driver.audit()
        snapshot = driver.publish()
    assert snapshot.asked_by == world.read_sessions()[-1].asked_by == "sensor t_files, Dagster run 7"
    world.write("F3")
    world.run()
    with world.driver(asked_by="bob@host") as driver:
        assert driver.rollback().asked_by == "bob@host"
    assert world.read_sessions()[-1].asked_by == "bob@host"
    with world.driver(asked_by="eve@host") as driver:
        assert driver.hold_ended() is None
        assert driver.resume()
        ended = driver.hold_ended()
    assert ended is not None
    assert (ended.seq, ended.asked_by) == (world.read_sessions()[-1].seq, "eve@host")


def test_each_step_and_each_effect_is_one_line_of_json(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    world = request.getfixturevalue("make_world")("sync")
    world.write("F1")
    with (
        caplog.at_level(logging.INFO, logger="pinot_assets.decisions"),
        world.driver(asked_by="ann") as driver,
    ):
        driver.trigger()
        driver.audit()
        driver.publish()
    session = world.read_sessions()[-1].id
    said = [
        json.loads(JsonLines().format(record)) for record in caplog.records if hasattr(record, "decision")
    ]
    steps = [line for line in said if line["event"] == "step"]
    assert [(line["step"], line["result"]) for line in steps] == [
        ("trigger", "STAGED"),
        ("audit", "PASSED"),
        ("publish", "PUBLISHED"),
    ]
    effects = [line["effect"] for line in said if line["event"] == "effect"]
    assert effects == ["start_replace_segments", "push", "end_replace_segments"]
    for line in said:
        assert (line["table"], line["asked_by"], line["run"]) == (f"{world.table}_OFFLINE", "ann", "run-0")
    assert {line["session"] for line in said if "session" in line} == {session}
