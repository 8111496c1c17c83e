"""The health sensor: evaluations from the tick itself, kept as the checks' history; it never raises."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import dagster as dg
import pytest
from fakes.tables import SYNC, write_table

from pinot_assets.assets.health import evaluations, health_job, table_health
from pinot_assets.assets.keys import keys_of
from pinot_assets.core.check_result import unknown
from pinot_assets.health import CHECKS, CheckResult, Severity, source
from pinot_assets.resources import PinotResource
from pinot_assets.sensors.health import health_sensor
from pinot_assets.table_spec import TableSpec

HALF_SET = PinotResource(controller_url="http://127.0.0.1:1")  # refused before anything is asked


@pytest.fixture
def spec(tmp_path: Path) -> TableSpec:
    return write_table(tmp_path, "t", SYNC)


def tick(spec: TableSpec, instance: dg.DagsterInstance) -> dg.SensorResult:
    context = dg.build_sensor_context(instance=instance, resources={"pinot": HALF_SET})
    result = health_sensor(spec)(context)
    assert isinstance(result, dg.SensorResult)
    return result


def message(result: dg.SensorResult) -> str:
    assert result.skip_reason is not None
    return result.skip_reason.skip_message or ""


def test_it_is_off_until_somebody_wants_it(spec: TableSpec) -> None:
    sensor = health_sensor(spec)
    assert sensor.name == "t_health"
    assert sensor.default_status is dg.DefaultSensorStatus.STOPPED
    assert sensor.minimum_interval_seconds == spec.dagster.health_interval_sec


def test_a_look_that_does_not_end_is_told_while_the_tick_still_counts(
    spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinot_assets.sensors.health.LOOK_S", 0.1)
    end = threading.Event()
    monkeypatch.setattr("pinot_assets.health.examine_table", lambda *_: end.wait(60))
    with dg.DagsterInstance.ephemeral() as instance:
        result = tick(spec, instance)
    end.set()
    assert len(result.asset_events) == len(CHECKS)
    for event in result.asset_events:
        assert isinstance(event, dg.AssetCheckEvaluation)
        assert not event.passed
        assert "the look at t does not come to its end" in (event.description or "")


def test_every_tick_becomes_history_of_the_checks_without_a_run(
    spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(failing: str) -> tuple[CheckResult, ...]:
        return tuple(
            CheckResult(c.name, c.name != failing, 0, 7, "m", "do this", Severity.ERROR, {"n": 1})
            for c in CHECKS
        )

    table = keys_of(spec).table
    with dg.DagsterInstance.ephemeral() as instance:
        instance.report_runless_asset_event(dg.AssetMaterialization(table))
        for failing in ("", "orphans"):
            found = answers(failing)
            monkeypatch.setattr("pinot_assets.health.examine_table", lambda *_: found)  # noqa: B023
            result = tick(spec, instance)
            for event in result.asset_events:  # as the sensor daemon does
                instance.report_runless_asset_event(event)
        assert message(result) == f"{len(CHECKS)} checks, 1 failed: orphans"
        assert not result.run_requests
        history = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(table, "orphans"), limit=10
        )
        assert [record.status.value for record in history] == ["FAILED", "SUCCEEDED"]
        evaluation = history[0].event.dagster_event.asset_check_evaluation_data  # type: ignore[union-attr]
        assert evaluation.severity is dg.AssetCheckSeverity.ERROR
        assert evaluation.description == "m\n→ do this"
        assert evaluation.metadata["found"] == dg.IntMetadataValue(7)
        assert evaluation.target_materialization_data is not None
        assert instance.get_runs_count() == 0


def test_without_a_pinot_it_tells_and_does_not_raise(spec: TableSpec) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        result = tick(spec, instance)
    assert len(result.asset_events) == len(CHECKS)
    assert "failed: snapshot_equals_source (not known)" in message(result)


def test_a_look_that_fails_does_not_turn_an_error_that_lasts_into_a_warning(spec: TableSpec) -> None:
    """Its next look would do so every ten minutes, and the table would be red half of the time."""
    name, now_ms = source.NAME, time.time_ns() // 1_000_000
    key = dg.AssetCheckKey(keys_of(spec).table, name)

    def look() -> list[tuple[str, str]]:
        """By the sensor, then by the job."""
        for event in tick(spec, instance).asset_events:
            instance.report_runless_asset_event(event)
        job = definitions.resolve_job_def("t_health")
        assert job.execute_in_process(instance=instance).success
        found = instance.event_log_storage.get_asset_check_execution_history(key, limit=2)
        evaluations = [record.evaluation for record in found]
        return [(e.severity.value, e.description or "") for e in evaluations if e is not None]

    definitions = dg.Definitions(
        asset_checks=[table_health(spec)], jobs=[health_job(spec)], resources={"pinot": HALF_SET}
    )
    with dg.DagsterInstance.ephemeral() as instance:
        assert {severity for severity, _ in look()} == {"WARN"}
        lasting = source.lasts(unknown(name, "no listing", ""), now_ms - 72 * 60_000, now_ms)
        (event,) = evaluations(instance, spec, (lasting,))
        instance.report_runless_asset_event(event)
        again = look()
        assert {severity for severity, _ in again} == {"ERROR"}
        assert all("; for 1.2 h, since " in description for _, description in again)
        (event,) = evaluations(instance, spec, (source.seen_again(now_ms - 72 * 60_000, now_ms, "seen"),))
        instance.report_runless_asset_event(event)
        assert {severity for severity, _ in look()} == {"WARN"}


def test_it_stands_beside_the_job_of_the_same_name(spec: TableSpec) -> None:
    @dg.asset(key=keys_of(spec).table)
    def table() -> None: ...

    definitions = dg.Definitions(
        assets=[table],
        asset_checks=[table_health(spec)],
        jobs=[health_job(spec)],
        sensors=[health_sensor(spec)],
        resources={"pinot": HALF_SET},
    )
    dg.Definitions.validate_loadable(definitions)
