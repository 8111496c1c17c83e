"""The sensor of a REALTIME table: its look as events, and a repair where one is allowed and of use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest
from fakes.realtime.memory import FakeRealtime
from fakes.realtime.specs import write_realtime_table

from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.assets.realtime import realtime_jobs
from pinot_assets.assets.runs import WHY_TAG
from pinot_assets.errors import SessionError
from pinot_assets.realtime.health.all_checks import CHECKS, RealtimeView, examine_state
from pinot_assets.resources import PinotResource
from pinot_assets.sensors.health import realtime_sensor
from pinot_assets.session.values.state import Owner
from pinot_assets.table_spec import RealtimeTableSpec

PINOT = PinotResource(controller_url="http://controller:9000", zookeeper="127.0.0.1:1")


class Remembered:
    """What repairs remember, or a ZooKeeper that is away."""

    def __init__(self) -> None:
        self.text = ""
        self.away = False
        self.held_by: Owner | None = None

    def recall(self, subject: str) -> str:
        assert subject == "repair"
        return self.text

    def holder(self) -> Owner | None:
        return self.held_by

    @contextmanager
    def opened(self, _settings: object, table: str) -> Iterator[Remembered]:
        assert table == "clicks_REALTIME"
        if self.away:
            raise SessionError("ZooKeeper does not answer")
        yield self


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> Remembered:
    made = Remembered()
    monkeypatch.setattr("pinot_assets.sensors.health.open_operations", made.opened)
    return made


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, remembered: Remembered) -> FakeRealtime:
    """A table with one segment that only servers have, for which the deep store is there again."""
    made = FakeRealtime()
    made.segment(sequence=0, url="")
    made.segment(sequence=1, status="IN_PROGRESS", start=100, end=200)

    def seen(*_: object) -> RealtimeView:
        state = made.look()
        return RealtimeView(state, examine_state(state))

    monkeypatch.setattr("pinot_assets.sensors.health.view_of", seen)
    return made


def tick(spec: RealtimeTableSpec, instance: dg.DagsterInstance) -> dg.SensorResult:
    context = dg.build_sensor_context(instance=instance, resources={"pinot": PINOT})
    result = realtime_sensor(spec)(context)
    assert isinstance(result, dg.SensorResult)
    return result


@pytest.mark.parametrize(
    ("limit", "words"), [(3, "starts at most 3 steps of a repair at a look"), (0, "repairs nothing")]
)
def test_it_says_what_it_may_repair(tmp_path: Path, limit: int, words: str) -> None:
    table = write_realtime_table(tmp_path, dagster={"repairLimit": limit})
    assert words in (realtime_sensor(table).description or "")


def test_a_look_is_one_observation_and_every_check(tmp_path: Path, fake: FakeRealtime) -> None:
    spec = write_realtime_table(tmp_path)
    with dg.DagsterInstance.ephemeral() as instance:
        result = tick(spec, instance)
        for event in result.asset_events:  # as the sensor daemon does
            instance.report_runless_asset_event(event)
        assert len(instance.fetch_observations(dg.AssetKey("clicks_realtime"), limit=9).records) == 1
    assert len(result.asset_events) == 1 + len(CHECKS)
    assert not result.run_requests
    assert result.skip_reason is not None
    assert "download_urls" in str(result.skip_reason.skip_message)


def test_a_repair_is_started_where_the_spec_allows_it(tmp_path: Path, fake: FakeRealtime) -> None:
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    with dg.DagsterInstance.ephemeral() as instance:
        result = tick(spec, instance)
    assert result.run_requests is not None
    (request,) = result.run_requests
    assert request.job_name == "clicks_realtime_repair"
    config = {"apply": True, "limit": 3}
    assert request.run_config == {"ops": {"clicks_realtime_repair_op": {"config": config}}}
    assert request.tags[TABLE_TAG] == "clicks_REALTIME"
    assert request.tags[WHY_TAG].startswith("1 step, first: upload clicks__0__0__")
    assert len(result.asset_events) == 1 + len(CHECKS)


def test_a_repair_under_way_is_left_alone(tmp_path: Path, fake: FakeRealtime) -> None:
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    with dg.DagsterInstance.ephemeral() as instance:
        repair = next(j for j in realtime_jobs(spec) if j.name == "clicks_realtime_repair")
        run = instance.create_run_for_job(repair, status=dg.DagsterRunStatus.STARTED)
        result = tick(spec, instance)
    assert not result.run_requests
    assert f"run {run.run_id} repairs already" in str(result.skip_reason)


def test_a_table_that_somebody_works_on_is_left_alone(
    tmp_path: Path, fake: FakeRealtime, remembered: Remembered
) -> None:
    """A rebalance by the command line takes hours: each tick's run would fail of its lease."""
    remembered.held_by = Owner("rebalance", "laptop", 7, 0)
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    with dg.DagsterInstance.ephemeral() as instance:
        result = tick(spec, instance)
        assert not result.run_requests
        assert "not repaired, as rebalance" in str(result.skip_reason)
        assert len(result.asset_events) == 1 + len(CHECKS)
        remembered.held_by = None
        assert tick(spec, instance).run_requests


def test_nothing_is_repaired_without_what_was_tried_before(
    tmp_path: Path, fake: FakeRealtime, remembered: Remembered
) -> None:
    remembered.away = True
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    with dg.DagsterInstance.ephemeral() as instance:
        assert not tick(spec, instance).run_requests


def test_a_healthy_table_is_not_repaired(tmp_path: Path, fake: FakeRealtime, remembered: Remembered) -> None:
    fake.nodes["clicks__0__0__20260202T0240Z"].fields["segment.download.url"] = "s3://b/d/clicks/x"
    remembered.away = True  # nobody asks
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    with dg.DagsterInstance.ephemeral() as instance:
        result = tick(spec, instance)
    assert not result.run_requests


def test_a_look_that_does_not_end_is_told_while_the_tick_still_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six brokers of Kafka behind a silent firewall take a minute; Dagster has ended the tick by then."""
    monkeypatch.setattr("pinot_assets.sensors.health.LOOK_S", 0.1)
    end = threading.Event()
    monkeypatch.setattr("pinot_assets.sensors.health.view_of", lambda *_: end.wait(60))
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    with dg.DagsterInstance.ephemeral() as instance:
        result = tick(spec, instance)
    end.set()
    assert len(result.asset_events) == len(CHECKS)
    for event in result.asset_events:
        assert isinstance(event, dg.AssetCheckEvaluation)
        assert not event.passed
        assert "the look at clicks_REALTIME does not come to its end" in (event.description or "")


def test_without_a_pinot_it_tells_and_does_not_raise(tmp_path: Path) -> None:
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    half_set = PinotResource(controller_url="http://127.0.0.1:1")
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance=instance, resources={"pinot": half_set})
        result = realtime_sensor(spec)(context)
    assert isinstance(result, dg.SensorResult)
    assert len(result.asset_events) == len(CHECKS)
    assert not result.run_requests
    sensor = realtime_sensor(spec)
    assert sensor.default_status is dg.DefaultSensorStatus.STOPPED
    assert sensor.minimum_interval_seconds == spec.dagster.health_interval_sec
