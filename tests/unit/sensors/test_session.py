"""What a tick of the session sensor does with Dagster; what it decides is tested beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from fakes.tables import write_table

from pinot_assets.assets.keys import TABLE_TAG, keys_of
from pinot_assets.assets.runs import SENSOR_TAG
from pinot_assets.errors import SessionError
from pinot_assets.resources import PinotResource
from pinot_assets.scheduling.stalled_session import DEAD_S, PATIENCE_S
from pinot_assets.sensors import session as module
from pinot_assets.session.context.context import WRITER_VERSION
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.state import Mode, ObjectRef, Owner, Pointer, Session, State
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef

NOW = 1_800_000_000


class Sensor:
    """The sensor of a table whose session's driver died."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch) -> None:
        self.instance = instance
        self.spec = write_table(folder, "t")
        self.now_s = NOW
        self.cursor: str | None = None
        fingerprint = self.spec.config_fingerprint(WRITER_VERSION)
        session = Session("cp2-bbbbbb", 2, Mode.SYNC, fingerprint, 0, ObjectRef("k", "0"), State.IN_PROGRESS)
        pointer = Pointer("cp2", epoch=5, owner=Owner("dead-run", "host", 7, 0))
        self.seen = Observation(pointer, session, (), {}, None, None, NO_HOLD)
        patch.setattr(module, "open_session_store", lambda spec, settings: nullcontext())
        patch.setattr(module, "observe", lambda store, staging: self.look())
        patch.setattr(module, "time", SimpleNamespace(time=lambda: self.now_s))

    def look(self) -> Observation:
        return self.seen

    def tick(self) -> Any:
        pinot = PinotResource(controller_url="http://127.0.0.1:1", zookeeper="127.0.0.1:1")
        with dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"pinot": pinot}
        ) as context:
            data = module.session_sensor(self.spec).evaluate_tick(context)
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
    assert (request.tags[TABLE_TAG], request.tags[SENSOR_TAG]) == ("t", "true")
    assert "cp2-bbbbbb (IN_PROGRESS, attempt 0) has stood still" in request.tags["pinot/tick"]
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


def test_a_zookeeper_that_is_away_is_said_and_changes_nothing(sensor: Sensor) -> None:
    sensor.tick()
    before = sensor.cursor

    def away() -> Observation:
        raise SessionError("ZooKeeper does not answer")

    sensor.look = away  # type: ignore[method-assign]
    sensor.now_s += PATIENCE_S
    assert sensor.tick().skip_message == "ZooKeeper does not answer"
    assert sensor.cursor == before


class PublicationWithoutFiles:
    """A publication of a snapshot without files; something happens while its partitions are told."""

    def __init__(self, sensor: Sensor, meanwhile: Callable[[], None]) -> None:
        self.keys = keys_of(sensor.spec)
        self.meanwhile = meanwhile
        ref, snapshot = SnapshotRef("k", "0"), Snapshot(1, "t", "cp1", "SYNC", "e", None, "", "", 0, ())
        pointer = replace(sensor.seen.pointer, current_snapshot=ref)
        sensor.seen = replace(sensor.seen, pointer=pointer, session=None, snapshot=snapshot)

    def events(self, history: Any) -> PublicationWithoutFiles:
        return self

    def publications(self, history: Any) -> Iterator[dg.AssetMaterialization]:
        yield dg.AssetMaterialization(self.keys.segments, partition="F1.csv")
        self.meanwhile()

    def event(self, key: dg.AssetKey) -> dg.AssetMaterialization:
        return dg.AssetMaterialization(key)


@pytest.mark.parametrize(
    ("meanwhile", "is_told"), [("nothing", True), ("a run comes up", False), ("it is published anew", False)]
)
def test_an_older_snapshot_is_not_told_after_a_newer_one(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch, meanwhile: str, is_told: bool
) -> None:
    def happens() -> None:
        if meanwhile == "a run comes up":
            started = dg.DagsterRunStatus.STARTED
            sensor.instance.add_run(dg.DagsterRun("t_ingest", "r", tags={TABLE_TAG: "t"}, status=started))
        if meanwhile == "it is published anew":
            pointer = replace(sensor.seen.pointer, current_snapshot=SnapshotRef("newer", "1"))
            sensor.seen = replace(sensor.seen, pointer=pointer)

    shown = PublicationWithoutFiles(sensor, happens)
    store = SimpleNamespace(pointer=lambda: sensor.seen.pointer)
    monkeypatch.setattr(module, "open_session_store", lambda spec, settings: nullcontext(store))
    monkeypatch.setattr(module, "publication", lambda *_: shown)
    sensor.tick()
    for key, expected in ((shown.keys.segments, True), (shown.keys.snapshot, is_told)):
        assert bool(sensor.instance.get_latest_materialization_event(key)) is expected
    assert bool(sensor.instance.get_latest_materialization_event(shown.keys.table)) is is_told


def test_a_cursor_of_a_newer_release_is_left_to_it(sensor: Sensor) -> None:
    newer = '{"epoch": 5, "format": 9, "needs": "7.5.0"}'
    sensor.cursor = newer
    data = sensor.tick()
    assert "upgrade pinot-assets here to 7.5.0" in data.skip_message
    assert (data.run_requests, sensor.cursor) == ([], newer)
