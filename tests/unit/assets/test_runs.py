"""Which runs work on a table, by tag and by pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from fakes.tables import write_table

from pinot_assets.assets.keys import TABLE_TAG, pool_of
from pinot_assets.assets.runs import (
    asked_by,
    is_asked_for,
    runs_under_way,
    sensor_trigger_of,
    table_job,
    trigger_of,
    works_on,
)
from pinot_assets.table_spec import TableSpec


@pytest.fixture
def spec(tmp_path: Path) -> TableSpec:
    return write_table(tmp_path, "my-table")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(
        str(tmp_path), overrides={"telemetry": {"enabled": False}}
    ) as instance:
        yield instance


def created(instance: dg.DagsterInstance, pool: str | None, tags: dict[str, str] | None = None) -> str:
    """A run of one asset, as it is stored before it starts."""

    @dg.asset(pool=pool)
    def picked() -> None: ...

    job = dg.Definitions([picked], jobs=[dg.define_asset_job("job", [picked])]).resolve_job_def("job")
    return instance.create_run_for_job(job, tags=tags).run_id


def test_runs_of_the_job_and_of_picked_assets_are_the_tables(
    spec: TableSpec, instance: dg.DagsterInstance
) -> None:
    mine = [created(instance, None, dict(table_job(spec).tags or {})), created(instance, pool_of(spec))]
    created(instance, None)
    created(instance, "pinot_table_other")
    created(instance, None, {TABLE_TAG: "other"})
    assert {run.run_id for run in runs_under_way(instance, spec)} == set(mine)


def test_runs_that_have_ended_are_not_under_way(spec: TableSpec, instance: dg.DagsterInstance) -> None:
    for status in (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED):
        run = dg.DagsterRun("job", run_id=status.value, tags=table_job(spec).tags, status=status)
        instance.add_run(run)
        assert works_on(run, spec)
    assert runs_under_way(instance, spec) == []


def run_of(instance: dg.DagsterInstance, tags: Mapping[str, str], parent: dg.DagsterRun | None = None) -> Any:
    @dg.op
    def build() -> None: ...

    @dg.job(name="t_ingest")
    def job() -> None:
        build()

    above = parent.run_id if parent else None
    return instance.create_run_for_job(job, tags=tags, parent_run_id=above, root_run_id=above)


def test_r26_only_the_schedule_and_people_may_spend_a_retry(
    spec: TableSpec, instance: dg.DagsterInstance
) -> None:
    """R26; by the tags that Dagster's retry of a run carries: its parent's, and the retry's number."""
    scheduled = run_of(instance, trigger_of(instance, spec, "schedule").tags)
    sensors = run_of(instance, sensor_trigger_of(instance, spec, "3 new").tags)
    assert is_asked_for(scheduled)
    assert not is_asked_for(sensors)
    for run in (scheduled, sensors):
        assert is_asked_for(run_of(instance, run.tags, parent=run))  # executed again by hand
        assert not is_asked_for(run_of(instance, {**run.tags, "dagster/retry_number": "1"}, parent=run))


def test_a_sensors_run_is_the_same_trigger(spec: TableSpec, instance: dg.DagsterInstance) -> None:
    ours, sensors = trigger_of(instance, spec, "x"), sensor_trigger_of(instance, spec, "x")
    assert sensors.partition_key == ours.partition_key
    assert {**sensors.tags} == {**ours.tags, "pinot/sensor": "true"}


@pytest.mark.parametrize(
    ("tags", "asker"),
    [
        ({"dagster/sensor_name": "t_files"}, "sensor t_files, Dagster run 7"),
        ({"dagster/schedule_name": "t_schedule"}, "schedule t_schedule, Dagster run 7"),
        ({"user": "ann"}, "ann, Dagster run 7"),
        ({}, "Dagster run 7"),
    ],
)
def test_a_run_knows_who_started_it(tags: dict[str, str], asker: str) -> None:
    assert asked_by(dg.DagsterRun("t_ingest", run_id="7", tags=tags)) == asker
