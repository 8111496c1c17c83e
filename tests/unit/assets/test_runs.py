"""Which runs work on a table, by tag and by pool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from fakes.tables import write_table

from pinot_assets.assets.keys import TABLE_TAG, pool_of
from pinot_assets.assets.runs import job_tags, runs_under_way, works_on
from pinot_assets.spec import TableSpec


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
    mine = [created(instance, None, job_tags(spec)), created(instance, pool_of(spec))]
    created(instance, None)
    created(instance, "pinot_table_other")
    created(instance, None, {TABLE_TAG: "other"})
    assert {run.run_id for run in runs_under_way(instance, spec)} == set(mine)


def test_runs_that_have_ended_are_not_under_way(spec: TableSpec, instance: dg.DagsterInstance) -> None:
    for status in (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED):
        run = dg.DagsterRun("job", run_id=status.value, tags=job_tags(spec), status=status)
        instance.add_run(run)
        assert works_on(run, spec)
    assert runs_under_way(instance, spec) == []
