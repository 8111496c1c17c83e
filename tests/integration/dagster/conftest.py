"""A table of the code location on a real ZooKeeper and a real Pinot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from fakes.builder import InProcessBuilder
from fakes.locations.code_location import LocationTable

from pinot_assets.pinot import HttpPinotClient
from pinot_assets.resources import consistent_push
from pinot_assets.settings.environment import load_settings
from pinot_assets.settings.local_stack import StackState
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply


@pytest.fixture
def environment(stack: StackState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOT_CONTROLLER_URL", stack.controller_url)
    monkeypatch.setenv("PINOT_ZOOKEEPER", stack.zookeeper)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Its database is in memory: a file for each run would take as long as the run."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def spark_table(environment: None, tmp_path: Path, instance: dg.DagsterInstance) -> Iterator[LocationTable]:
    """As the code location is shipped: builds on Spark."""
    with HttpPinotClient(load_settings().pinot) as pinot:
        table = LocationTable(tmp_path, pinot, instance)
        apply_plan(plan_apply(table.spec, pinot), pinot)
        deadline = time.monotonic() + 60
        while len(pinot.brokers(table.name)) < 2:
            assert time.monotonic() < deadline, "the brokers do not take the table"
            time.sleep(0.1)
        yield table
        pinot.delete_table(table.name)
        pinot.delete_schema(table.name)


@pytest.fixture
def table(spark_table: LocationTable, monkeypatch: pytest.MonkeyPatch) -> LocationTable:
    """The same tasks in this process, without Spark."""
    monkeypatch.setattr(consistent_push, "SparkBuilder", lambda *_: InProcessBuilder())
    return spark_table
