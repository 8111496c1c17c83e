"""The plan as a job in Dagster: a page on the switch, a log, and nothing that keeps a run waiting."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster_pyspark import LazyPySparkResource
from fakes.tables import SYNC, write_table
from model.world.lives import lived, planned

from pinot_assets.assets.keys import keys_of
from pinot_assets.assets.location_jobs import TableChoice, run_config
from pinot_assets.assets.operations import plan_job
from pinot_assets.assets.runs import works_on
from pinot_assets.resources import ConsistentPushResource, PinotResource
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.table_spec import TableSpec


@pytest.fixture
def spec(tmp_path: Path) -> TableSpec:
    return write_table(tmp_path, "web-logs", SYNC)


@pytest.fixture
def plan() -> PlanReport:
    return planned(lived("sync", "a new, a rewritten, a deleted"))


def test_the_job_shows_the_plan_and_holds_up_nobody(
    spec: TableSpec, plan: PlanReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver: Any = SimpleNamespace(plan=lambda: plan)  # whatever else it did would fail
    monkeypatch.setattr(ConsistentPushResource, "driver", lambda *_: driver)
    push = ConsistentPushResource(
        pinot=PinotResource(controller_url="http://127.0.0.1:1", zookeeper="127.0.0.1:1"),
        spark=LazyPySparkResource(spark_config={}),
    )
    job = plan_job(TableChoice([spec]))
    assert job.name == "pinot_plan"
    with dg.DagsterInstance.ephemeral() as instance:
        config = run_config("plan", "web-logs")
        assert not works_on(instance.create_run_for_job(job, run_config=config), spec)
        result = job.execute_in_process(instance=instance, resources={"push": push}, run_config=config)
        log = "\n".join(entry.user_message for entry in instance.all_logs(result.run_id))
    (observed,) = [
        event.asset_observation_data.asset_observation
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.ASSET_OBSERVATION
    ]
    assert observed.asset_key == keys_of(spec).snapshot
    assert observed.metadata["plan_hash"].value == plan.planned.plan_basis.hash
    for text in (
        "a new session builds 2 files",
        "segments: 2 → about 2",
        "+ ",
        "mode swap: builds 2 files",
        "(this table's mode)",
    ):
        assert text in log
