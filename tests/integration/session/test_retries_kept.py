"""Rule R26: a run that nobody asked for spends no retry and abandons nothing, whenever it gets its turn."""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.errors import SnapshotIncomplete
from pinot_assets.session.values.report import TriggerReport, TriggerResult

pytestmark = pytest.mark.integration

MODES = ("append", "sync", "swap")


@pytest.fixture(params=MODES)
def world(request: pytest.FixtureRequest, make_world: Any) -> Any:
    return make_world(request.param)


def sensor_run(world: Any) -> tuple[TriggerReport, bool]:
    """The whole job as a sensor starts it: the report, and whether it published."""
    with world.driver() as driver:
        report = driver.trigger_without_retry()
        published = False
        if report.result in (TriggerResult.STAGED, TriggerResult.FAILED):
            _, findings = driver.audit()
            if published := all(f.passed for f in findings):
                driver.publish()
        return report, published


def test_r26_two_runs_of_sensors_one_after_the_other_spend_nothing(world: Any) -> None:
    world.write("F1", "F2", "F3")
    world.builder.failing = {"F3"}
    first, _ = sensor_run(world)
    before = world.read_session()
    second, published = sensor_run(world)
    assert [first.result, second.result, published] == [TriggerResult.FAILED, TriggerResult.FAILED, False]
    assert [f.uri.rsplit("/", 1)[-1] for f in second.failed] == ["F3"]
    assert world.read_session() == before
    assert (before.retry_count, world.builds) == (0, 1)
    assert world.visible == []


def test_r26_the_last_retry_is_not_followed_by_an_end(make_world: Any) -> None:
    world = make_world("sync", consistentPushMaxRetries=0)
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    world.run()
    before = world.read_session()
    for _ in range(2):
        assert sensor_run(world)[0].result is TriggerResult.FAILED
    assert (world.read_session(), world.read_sessions()) == (before, [before])


def test_r26_a_failed_file_that_was_repaired_waits_for_whoever_may_retry(world: Any) -> None:
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    world.run()
    world.builder.failing = set()
    assert sensor_run(world)[0].result is TriggerResult.FAILED
    assert world.run().result is TriggerResult.STAGED
    assert world.read_sessions()[-1].retry_count == 1
    world.assert_settled()


def test_r26_a_sensor_that_may_retry_does(make_world: Any) -> None:
    world = make_world("sync", sensorRetries="true")
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    sensor_run(world)
    assert sensor_run(world)[0].result is TriggerResult.FAILED
    assert (world.read_session().retry_count, world.builds) == (1, 2)


def test_a_driver_that_died_is_gone_on_for(world: Any) -> None:
    world.write("F1", "F2", "F3")
    world.builder.die_after = 1
    world.dies()
    report, published = sensor_run(world)
    assert (report.result, report.kept, published) == (TriggerResult.STAGED, 1, True)
    assert world.read_sessions()[-1].retry_count == 0
    world.assert_settled()


def test_r10_r26_a_session_that_came_no_further_is_gone_on_for_too(world: Any) -> None:
    world.write("F1", "F2")
    for _ in range(3):
        world.builder.die_after = 0
        world.dies()
    report, published = sensor_run(world)
    assert (report.result, published) == (TriggerResult.STAGED, True)
    assert world.read_sessions()[-1].retry_count == 0
    assert world.visible == ["F1", "F2"]
    world.assert_settled()


def test_r26_a_failed_audit_waits_for_whoever_may_retry(make_world: Any) -> None:
    world = make_world("sync")
    world.write("F1", "F2")
    world.trigger()
    name = min(world.pinot.all_segments(world.table))
    world.pinot.break_replica(world.table, name)
    world.audit()
    before = world.read_session()
    report, published = sensor_run(world)
    assert (report.result, [f.code for f in report.failed]) == (TriggerResult.FAILED, ["AUDIT"])
    assert not published
    assert (world.read_session().retry_count, world.read_session().attempt) == (0, before.attempt)


def test_what_was_staged_for_another_spec_is_neither_switched_nor_dropped(make_world: Any) -> None:
    world = make_world("sync")
    world.write("F1", "F2")
    world.trigger()
    world.audit()
    before = world.read_session()
    assert before.gate_open
    world.options["includeFileNamePattern"] = "glob:**/F1"
    report, published = sensor_run(world)
    assert (report.result, published) == (TriggerResult.PAUSED, False)
    assert "another table spec" in report.summary
    assert (world.read_session(), world.visible) == (before, [])
    world.run()
    assert world.visible == ["F1"]
    with pytest.raises(SnapshotIncomplete):
        world.publish()
