"""The sensor that repairs REALTIME tables: where a repair is allowed and of use, and none beside another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.tags import PARTITION_NAME_TAG
from fakes.realtime.memory import FakeRealtime
from fakes.realtime.specs import write_realtime_table

from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.assets.location_jobs import TableChoice, run_config
from pinot_assets.assets.realtime import realtime_jobs
from pinot_assets.assets.runs import WHY_TAG
from pinot_assets.errors import SessionError
from pinot_assets.realtime.health.all_checks import RealtimeView, examine_state
from pinot_assets.resources import PinotResource
from pinot_assets.sensors.repairs import repairs_sensor
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
    monkeypatch.setattr("pinot_assets.sensors.repairs.open_operations", made.opened)
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

    monkeypatch.setattr("pinot_assets.sensors.repairs.view_of", seen)
    return made


def tick(spec: RealtimeTableSpec, instance: dg.DagsterInstance) -> dg.SensorResult:
    sensor = repairs_sensor([spec])
    assert sensor is not None
    context = dg.build_sensor_context(instance=instance, resources={"pinot": PINOT})
    result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    return result


def test_it_says_what_it_may_repair_and_is_not_there_where_that_is_nothing(tmp_path: Path) -> None:
    table = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    sensor = repairs_sensor([table])
    assert sensor is not None
    assert "clicks_REALTIME 3" in (sensor.description or "")
    assert sensor.default_status is dg.DefaultSensorStatus.STOPPED
    assert repairs_sensor([write_realtime_table(tmp_path)]) is None


def test_a_repair_is_started_where_the_spec_allows_it(tmp_path: Path, fake: FakeRealtime) -> None:
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    with dg.DagsterInstance.ephemeral() as instance:
        result = tick(spec, instance)
    assert result.run_requests is not None
    (request,) = result.run_requests
    assert request.job_name == "pinot_realtime_repair"
    config = {"table": "clicks_REALTIME", "apply": True, "limit": 3}
    assert request.run_config == {"ops": {"pinot_realtime_repair_op": {"config": config}}}
    assert request.tags[PARTITION_NAME_TAG] == "clicks_REALTIME"
    assert request.tags[TABLE_TAG] == "clicks_REALTIME"
    assert request.tags[WHY_TAG].startswith("1 step, first: upload clicks__0__0__")
    assert not result.asset_events


def test_a_repair_under_way_is_left_alone(tmp_path: Path, fake: FakeRealtime) -> None:
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    with dg.DagsterInstance.ephemeral() as instance:
        repair = next(j for j in realtime_jobs(TableChoice([spec])) if j.name == "pinot_realtime_repair")
        config = run_config("realtime_repair", "clicks")
        started, tags = dg.DagsterRunStatus.STARTED, {TABLE_TAG: "clicks_REALTIME"}
        run = instance.create_run_for_job(repair, run_config=config, status=started, tags=tags)
        result = tick(spec, instance)
    assert not result.run_requests
    assert f"run {run.run_id} already repairs it" in str(result.skip_reason)


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


def test_a_look_that_does_not_end_repairs_nothing_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six brokers of Kafka behind a silent firewall take a minute; Dagster has ended the tick by then."""
    monkeypatch.setattr("pinot_assets.sensors.repairs.TABLE_S", 0.1)
    end = threading.Event()
    monkeypatch.setattr("pinot_assets.sensors.repairs.view_of", lambda *_: end.wait(60))
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    with dg.DagsterInstance.ephemeral() as instance:
        result = tick(spec, instance)
    end.set()
    assert not result.run_requests
    assert "(not known)" in str(result.skip_reason)


def test_a_table_is_looked_at_when_its_time_has_come(tmp_path: Path, fake: FakeRealtime) -> None:
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    sensor = repairs_sensor([spec])
    assert sensor is not None
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance=instance, resources={"pinot": PINOT})
        first, second = sensor(context), sensor(context)
    assert isinstance(first, dg.SensorResult)
    assert isinstance(second, dg.SensorResult)
    assert first.run_requests
    assert "no look is due" in str(second.skip_reason)


def test_without_a_pinot_it_tells_and_does_not_raise(tmp_path: Path) -> None:
    spec = write_realtime_table(tmp_path, dagster={"repairLimit": 3})
    sensor = repairs_sensor([spec])
    assert sensor is not None
    half_set = PinotResource(controller_url="http://127.0.0.1:1")
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance=instance, resources={"pinot": half_set})
        result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    assert not result.run_requests
