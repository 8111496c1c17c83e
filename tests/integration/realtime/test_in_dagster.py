"""A REALTIME table of a real Pinot in Dagster: its look, its preflight, its repair."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
import yaml
from fakes.realtime.kafka_table import Clicks, schema

from pinot_assets.assets.location_jobs import run_config
from pinot_assets.code_location import build_location_definitions, build_realtime_definitions
from pinot_assets.realtime.health.all_checks import CHECKS
from pinot_assets.realtime.model.state import Copy, SegmentStatus
from pinot_assets.resources import PinotResource
from pinot_assets.sensors.tables import tables_sensor
from pinot_assets.table_spec import RealtimeTableSpec, load_tables

pytestmark = pytest.mark.integration


@pytest.fixture
def spec(clicks: Clicks, tmp_path: Path) -> RealtimeTableSpec:
    config = clicks.pinot.table_config(clicks.table)
    assert config is not None
    whole = {
        "schema": schema(clicks.name),
        "table": {**config, "tenants": {}, "metadata": {}},
        "realtime": {},
        "dagster": {"repairLimit": 8},
    }
    (tmp_path / "clicks.yaml").write_text(yaml.safe_dump(whole))
    return load_tables(tmp_path).realtime[clicks.name]


def test_a_table_is_looked_at_and_mended(clicks: Clicks, spec: RealtimeTableSpec) -> None:
    stack = clicks.stack
    pinot = PinotResource(
        controller_url=stack.controller_url, zookeeper=stack.zookeeper, cluster=stack.cluster
    )
    definitions = dg.Definitions.merge(
        build_realtime_definitions(spec),
        build_location_definitions([spec]),
        dg.Definitions(resources={"pinot": pinot}),
    )
    clicks.send(2500)
    clicks.until(
        lambda s: (
            sum(one.status is SegmentStatus.DONE for one in s.segments) == 4
            and set(s.queryable.values()) == {2500}
        )
    )
    key = dg.AssetKey([spec.asset_name])
    with dg.DagsterInstance.ephemeral() as instance:

        def run(operation: str, **config: object) -> None:
            name = operation if operation == "health" else f"realtime_{operation}"
            ops = run_config(name, spec.name, **config)
            job = definitions.resolve_job_def(f"pinot_{name}")
            done = job.execute_in_process(run_config=ops, instance=instance)
            assert done.success

        run("health")
        run("preflight")
        run("repair")
        run("repair", apply=True, limit=8)
        run("rebalance")
        records = instance.fetch_observations(key, limit=9).records
        assert len(records) == 5
        numbers = records[0].asset_observation.metadata  # type: ignore[union-attr]
        assert numbers["committed_rows"] == dg.IntMetadataValue(2000)
        assert numbers["messages_to_consume"] == dg.IntMetadataValue(0)
        assert numbers["rows_queryable"] == dg.IntMetadataValue(2500)
        assert numbers["only_with_peers"] == dg.IntMetadataValue(0)
        context = dg.build_sensor_context(instance=instance, resources={"pinot": pinot})
        result = tables_sensor([spec])(context)
        assert isinstance(result, dg.SensorResult)
        assert len(result.asset_events) == 1 + len(CHECKS) + 2, "the overview of all tables, too"
        assert not result.run_requests
    stored = [one.copy for one in clicks.look().segments if one.status is SegmentStatus.DONE]
    assert stored == [Copy.DEEP_STORE] * 4
