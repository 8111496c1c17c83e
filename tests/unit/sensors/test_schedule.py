"""The schedule of a table, and what it starts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from fakes.tables import SYNC, write_table

from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.assets.table import table_assets
from pinot_assets.sensors.schedule import table_schedule


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(
        str(tmp_path), overrides={"telemetry": {"enabled": False}}
    ) as instance:
        yield instance


def scheduled(folder: Path, **options: Any) -> dg.ScheduleDefinition:
    schedule = table_schedule(table_assets(write_table(folder, "my-table", {**SYNC, **options})))
    assert schedule is not None
    return schedule


def tick(schedule: dg.ScheduleDefinition, instance: dg.DagsterInstance) -> Any:
    with dg.build_schedule_context(instance, datetime(2026, 11, 21, tzinfo=UTC)) as context:
        return schedule(context)


def test_a_table_without_a_schedule_has_none(tmp_path: Path) -> None:
    assert table_schedule(table_assets(write_table(tmp_path, "t"))) is None


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


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED])
def test_while_a_run_of_the_table_is_under_way_it_starts_nothing(
    tmp_path: Path, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    schedule = scheduled(tmp_path, schedule="0 0 */4 * * ?")
    instance.add_run(dg.DagsterRun("other", run_id="a", tags={TABLE_TAG: "other"}, status=status))
    assert isinstance(tick(schedule, instance), dg.RunRequest)
    instance.add_run(dg.DagsterRun("ingest", run_id="b", tags={TABLE_TAG: "my-table"}, status=status))
    skipped = tick(schedule, instance)
    assert isinstance(skipped, dg.SkipReason)
    words = status.value.lower().replace("_", " ")
    assert skipped.skip_message == f"run b of my-table is {words}"


def test_a_run_that_has_ended_stands_in_nobodys_way(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    schedule = scheduled(tmp_path, schedule="0 0 */4 * * ?")
    for n, status in enumerate([dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]):
        instance.add_run(dg.DagsterRun("i", run_id=str(n), tags={TABLE_TAG: "my-table"}, status=status))
    assert isinstance(tick(schedule, instance), dg.RunRequest)
