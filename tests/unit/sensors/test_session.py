"""What a tick of the sensor of all sessions does with Dagster; what it decides is tested beside it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from fakes.tables import write_table

from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.assets.runs import SENSOR_TAG
from pinot_assets.errors import SessionError
from pinot_assets.resources import PinotResource
from pinot_assets.scheduling.rounds import SessionsCursor
from pinot_assets.scheduling.stalled_session import DEAD_S, PATIENCE_S
from pinot_assets.sensors import session as module
from pinot_assets.session.context.context import WRITER_VERSION
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.state import Mode, ObjectRef, Owner, Pointer, Session, State
from pinot_assets.table_spec import TableSpec

NOW = 1_800_000_000


class Sensor:
    """The sensor of all sessions: the driver of the table `t` has died, `u` has no session."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch) -> None:
        self.instance = instance
        self.spec, self.other = write_table(folder, "t"), write_table(folder, "u")
        self.now_s = NOW
        self.cursor: str | None = None
        self.on = ["t", "u"]
        self.opened: list[str] = []
        fingerprint = self.spec.config_fingerprint(WRITER_VERSION)
        session = Session("cp2-bbbbbb", 2, Mode.SYNC, fingerprint, 0, ObjectRef("k", "0"), State.IN_PROGRESS)
        pointer = Pointer("cp2", epoch=5, owner=Owner("dead-run", "host", 7, 0))
        self.seen = Observation(pointer, session, (), {}, None, None, NO_HOLD)
        patch.setattr(module, "open_session_stores", self.stores)
        patch.setattr(module, "observe", lambda store, staging: self.look())
        patch.setattr(module, "switched_on", lambda context, specs: self.on)
        patch.setattr(module, "time", SimpleNamespace(time=lambda: self.now_s))
        self.definition = module.sessions_sensor([self.spec, self.other])

    def stores(self, specs: Sequence[TableSpec], _: object) -> Any:
        return nullcontext(
            {spec.name: SimpleNamespace(pointer=partial(self.pointer, spec)) for spec in specs}
        )

    def pointer(self, spec: TableSpec) -> Pointer:
        self.opened.append(spec.name)
        return self.seen.pointer if spec.name == "t" else Pointer()

    def look(self) -> Observation:
        return self.seen

    def tick(self) -> Any:
        pinot = PinotResource(controller_url="http://127.0.0.1:1", zookeeper="127.0.0.1:1")
        with dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"pinot": pinot}
        ) as context:
            data = self.definition.evaluate_tick(context)
        self.cursor = data.cursor
        return data


@pytest.fixture
def sensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sensor]:
    quiet = {"telemetry": {"enabled": False}}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=quiet) as instance:
        yield Sensor(tmp_path, instance, monkeypatch)


def test_it_starts_the_tables_job_once(sensor: Sensor) -> None:
    assert sensor.tick().run_requests == []
    sensor.now_s += PATIENCE_S
    (request,) = sensor.tick().run_requests
    assert (request.job_name, request.tags[TABLE_TAG], request.tags[SENSOR_TAG]) == ("t_ingest", "t", "true")
    assert "cp2-bbbbbb (IN_PROGRESS, attempt 0) has made no progress" in request.tags["pinot/tick"]
    assert sensor.tick().run_requests == []


def test_a_run_that_ends_between_the_two_looks_counts_as_under_way(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = dg.DagsterRun("t_ingest", "dead-run", tags={TABLE_TAG: "t"}, status=dg.DagsterRunStatus.STARTED)
    sensor.instance.add_run(run)
    sensor.tick()
    sensor.now_s += PATIENCE_S

    def ends_meanwhile() -> Observation:
        sensor.instance.report_run_canceled(run)
        return sensor.seen

    with monkeypatch.context() as patch:
        patch.setattr(sensor, "look", ends_meanwhile)
        assert sensor.tick().run_requests == []
    assert len(sensor.tick().run_requests) == 1  # by then it has gone, and its session is still there


def test_a_dead_run_is_marked_as_failed_and_then_its_session_goes_on(sensor: Sensor) -> None:
    run = dg.DagsterRun("t_ingest", "dead-run", tags={TABLE_TAG: "t"}, status=dg.DagsterRunStatus.STARTED)
    sensor.instance.add_run(run)
    sensor.tick()
    sensor.now_s += DEAD_S
    assert "marked as failed" in sensor.tick().skip_message
    stored = sensor.instance.get_run_by_id("dead-run")
    assert stored is not None
    assert stored.status is dg.DagsterRunStatus.FAILURE
    assert len(sensor.tick().run_requests) == 1


def test_a_run_that_works_on_is_left_alone(sensor: Sensor) -> None:
    run = dg.DagsterRun("t_ingest", "dead-run", tags={TABLE_TAG: "t"}, status=dg.DagsterRunStatus.STARTED)
    sensor.instance.add_run(run)
    sensor.seen = replace(sensor.seen, holder=sensor.seen.pointer.owner)
    for _ in range(3):
        assert "paused: session cp2-bbbbbb held by dead-run" in sensor.tick().skip_message
        sensor.now_s += DEAD_S
    stored = sensor.instance.get_run_by_id("dead-run")
    assert stored is not None
    assert stored.status is dg.DagsterRunStatus.STARTED


def test_a_zookeeper_that_is_away_is_said_and_changes_nothing(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor.tick()
    before = sensor.cursor

    def away(*_: object) -> Any:
        raise SessionError("ZooKeeper does not answer")

    monkeypatch.setattr(module, "open_session_stores", away)
    sensor.now_s += PATIENCE_S
    assert sensor.tick().skip_message == "ZooKeeper does not answer"
    assert sensor.cursor == before


def test_a_broken_table_keeps_its_cursor_and_the_others_have_their_turn(sensor: Sensor) -> None:
    sensor.tick()
    kept = SessionsCursor.read(sensor.cursor or "").tables

    def broken() -> Observation:
        raise SessionError("the session cannot be read")

    vars(sensor)["look"] = broken
    sensor.opened.clear()
    assert "t: the session cannot be read" in sensor.tick().skip_message
    assert sensor.opened == ["t", "u"]
    assert SessionsCursor.read(sensor.cursor or "").tables == kept


def test_a_table_that_does_not_answer_keeps_no_other_one_waiting(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TABLE_S", 0.1)
    end = threading.Event()
    vars(sensor)["look"] = lambda: end.wait(60) and sensor.seen
    assert "t: ZooKeeper, or the staging area, does not answer" in sensor.tick().skip_message
    assert sensor.opened == ["t", "u"]
    assert "an earlier call still waits" in sensor.tick().skip_message
    end.set()


def test_a_tick_without_time_goes_on_at_the_next_one(sensor: Sensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_S", 0.0)
    for names in (["t"], ["t", "u"], ["t", "u", "t"]):
        message = sensor.tick().skip_message
        assert sensor.opened == names
        assert "1 table at the next tick" in message


def test_a_table_that_nobody_switched_on_is_left_to_those_who_drive_it(sensor: Sensor) -> None:
    sensor.on = []
    sensor.tick()
    sensor.now_s += PATIENCE_S
    assert sensor.tick().skip_message == "no table's files sensor or schedule is on"
    assert sensor.opened == []


def test_a_table_is_on_by_its_sensor_its_schedule_or_its_conditions(tmp_path: Path) -> None:
    names = ("files", "timed", "conditions", "off")
    specs = {name: write_table(tmp_path, name) for name in names}
    settings = specs["conditions"].dagster.model_copy(update={"automation": True})
    specs["conditions"] = replace(specs["conditions"], dagster=settings)
    running = [("files_files", True), ("timed_schedule", True), ("off_files", False)]
    states = [
        SimpleNamespace(origin=SimpleNamespace(instigator_name=name)) for name, is_on in running if is_on
    ]
    instance = SimpleNamespace(all_instigator_state=lambda instigator_statuses: states)
    context: Any = SimpleNamespace(instance=instance, code_location_origin=None)
    assert module.switched_on(context, specs) == ["files", "timed", "conditions"]


def test_the_cursor_holds_only_tables_with_something_open(sensor: Sensor) -> None:
    sensor.tick()
    assert [*SessionsCursor.read(sensor.cursor or "").tables] == ["t"]
    sensor.seen = replace(sensor.seen, session=None, pointer=Pointer(epoch=5))
    sensor.tick()
    assert not SessionsCursor.read(sensor.cursor or "").tables


def test_a_cursor_of_a_newer_release_is_left_to_it(sensor: Sensor) -> None:
    newer = '{"format": 9, "needs": "7.5.0"}'
    sensor.cursor = newer
    data = sensor.tick()
    assert "upgrade pinot-assets here to 7.5.0" in data.skip_message
    assert (data.run_requests, sensor.cursor) == ([], newer)
