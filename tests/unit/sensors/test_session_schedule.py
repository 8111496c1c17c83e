"""The schedule of a table, and what it starts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from fakes.tables import SYNC, write_table

from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.assets.runs import SENSOR_TAG, TO_START
from pinot_assets.core.json_object import JsonObject
from pinot_assets.sensors.session import table_schedule


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(
        str(tmp_path), overrides={"telemetry": {"enabled": False}}
    ) as instance:
        yield instance


def scheduled(folder: Path, **options: Any) -> dg.ScheduleDefinition:
    schedule = table_schedule(write_table(folder, "my-table", {**SYNC, **options}))
    assert schedule is not None
    return schedule


def tick(schedule: dg.ScheduleDefinition, instance: dg.DagsterInstance) -> Any:
    with dg.build_schedule_context(instance, datetime(2026, 11, 21, tzinfo=UTC)) as context:
        return schedule(context)


def test_a_table_without_a_schedule_has_none(tmp_path: Path) -> None:
    assert table_schedule(write_table(tmp_path, "t")) is None


def test_it_is_pinots_in_unix_cron(tmp_path: Path) -> None:
    schedule = scheduled(tmp_path, schedule="0 30 */4 ? * 2-6", scheduleTimezone="Europe/Berlin")
    assert schedule.name == "my_table_schedule"
    assert schedule.cron_schedule == "30 */4 * * 1-5"
    assert schedule.execution_timezone == "Europe/Berlin"
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED


def test_a_tick_starts_the_tables_job(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    request = tick(scheduled(tmp_path, schedule="0 0 */4 * * ?"), instance)
    assert isinstance(request, dg.RunRequest)
    assert request.tags[TABLE_TAG] == "my-table"


def waits(instance: dg.DagsterInstance, name: str, status: dg.DagsterRunStatus, **more: Any) -> None:
    """A run of one of the table's jobs."""
    tags = {TABLE_TAG: "my-table", **more.pop("tags", {})}
    name = f"my_table_{name}"
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("location"), "repository")
    origin = RemoteJobOrigin(repository, name)
    run = dg.DagsterRun(
        name, run_id=f"{name}-run", tags=tags, status=status, remote_job_origin=origin, **more
    )
    instance.add_run(run)


@pytest.mark.parametrize("status", TO_START)
def test_a_run_like_its_own_that_waits_is_enough(
    tmp_path: Path, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    schedule = scheduled(tmp_path, schedule="0 0 */4 * * ?")
    instance.add_run(dg.DagsterRun("other_ingest", run_id="a", tags={TABLE_TAG: "other"}))
    assert isinstance(tick(schedule, instance), dg.RunRequest)
    waits(instance, "ingest", status)
    skipped = tick(schedule, instance)
    assert isinstance(skipped, dg.SkipReason)
    words = status.value.lower().replace("_", " ")
    assert skipped.skip_message == f"run my_table_ingest-run of my-table is {words}"


@pytest.mark.parametrize(
    "run",
    [
        {"name": "ingest", "status": dg.DagsterRunStatus.STARTED},  # it has listed the files already
        {"name": "ingest", "status": dg.DagsterRunStatus.QUEUED, "tags": {SENSOR_TAG: "true"}},
        {
            "name": "ingest",
            "status": dg.DagsterRunStatus.QUEUED,
            "parent_run_id": "dead",
            "root_run_id": "dead",
        },
        {"name": "rollback", "status": dg.DagsterRunStatus.QUEUED},
    ],
)
def test_no_other_run_costs_a_tick_its_retry(
    tmp_path: Path, instance: dg.DagsterInstance, run: JsonObject
) -> None:
    """None of these spends one, and a schedule is the way in which they are spent."""
    waits(instance, **run)
    assert isinstance(tick(scheduled(tmp_path, schedule="0 0 */4 * * ?"), instance), dg.RunRequest)


def test_a_run_that_has_ended_stands_in_nobodys_way(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    schedule = scheduled(tmp_path, schedule="0 0 */4 * * ?")
    for n, status in enumerate([dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]):
        run = dg.DagsterRun("my_table_ingest", run_id=str(n), tags={TABLE_TAG: "my-table"}, status=status)
        instance.add_run(run)
    assert isinstance(tick(schedule, instance), dg.RunRequest)
