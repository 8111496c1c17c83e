"""A REALTIME table spec on a real Pinot with Kafka: judged, applied, read back, judged again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from fakes.realtime.kafka_table import Clicks, schema, table_config
from fakes.realtime.kafka_topic import create_topic

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PreflightRefused
from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.pinot.versions import release
from pinot_assets.realtime.preflight.facts import Aim, Facts
from pinot_assets.realtime.preflight.gather import gather
from pinot_assets.realtime.preflight.judge import refuse_unless_safe, run_rules
from pinot_assets.realtime.preflight.rules_settings import PAUSELESS_SINCE
from pinot_assets.realtime.read.stream import StreamRetention
from pinot_assets.settings.local_stack import StackState
from pinot_assets.table_spec import RealtimeTableSpec, load_tables
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply

pytestmark = pytest.mark.integration
WEEK = StreamRetention(7 * 86_400_000)


def refused(facts: Facts) -> set[str]:
    return {answer.name for answer in run_rules(facts) if answer.blocks}


def test_a_table_that_bypasses_the_deep_store(clicks: Clicks) -> None:
    config = clicks.pinot.table_config(clicks.table)
    assert config is not None
    facts = gather(clicks.pinot, clicks.table, config)
    assert facts.aims == {Aim.BYPASS}
    assert facts.unread == {}
    assert facts.cluster.unread == {}
    assert facts.retention == WEEK
    assert len(facts.admin_ports) == 2
    assert set(facts.admin_ports.values()) == {None}
    assert facts.commit_start is not None
    assert refused(facts) == set()


def test_pauseless_consumption_needs_a_newer_pinot(clicks: Clicks) -> None:
    config = clicks.pinot.table_config(clicks.table)
    assert config is not None
    facts = gather(clicks.pinot, clicks.table, config, Aim.PAUSELESS)
    if release(facts.cluster.version) < PAUSELESS_SINCE:
        assert "version" in refused(facts)
        with pytest.raises(PreflightRefused, match="version"):
            refuse_unless_safe(facts.table, run_rules(facts))
    else:
        assert "version" not in refused(facts)


@pytest.fixture
def spec(kafka_stack: StackState, tmp_path: Path) -> Iterator[RealtimeTableSpec]:
    """The spec of a table to be made, whose topic is there."""
    name = f"visits{uuid.uuid4().hex[:8]}"
    create_topic(str(kafka_stack.kafka_bootstrap), name, partitions=1)
    config = table_config(name, kafka_stack.kafka_bootstrap)
    streams: list[JsonObject] = config["ingestionConfig"].pop("streamIngestionConfig")["streamConfigMaps"]
    scheme = config["segmentsConfig"].pop("peerSegmentDownloadScheme")
    whole = {
        "schema": schema(name),
        "table": {"tableType": "REALTIME", "tenants": {}, "metadata": {}, **config, "tableName": name},
        "realtime": {"stream": streams[0], "peerSegmentDownloadScheme": scheme},
    }
    (tmp_path / "visits.yaml").write_text(yaml.safe_dump(whole))
    yield load_tables(tmp_path).realtime[name]
    with httpx.Client(base_url=kafka_stack.controller_url, timeout=30, trust_env=False) as controller:
        controller.delete(f"/tables/{name}", params={"type": "realtime"})


def test_a_table_is_judged_made_and_found_as_it_was_written(
    kafka_stack: StackState, spec: RealtimeTableSpec
) -> None:
    connection = PinotConnection(kafka_stack.controller_url)
    with HttpPinotClient(connection) as store, RealtimePinot(connection) as pinot:
        before = gather(pinot, spec.name, spec.table_json)
        assert before.held is None
        assert before.unread == {}
        assert len(before.admin_ports) == 2
        assert refused(before) == set()
        plan = plan_apply(spec, store)
        assert plan.table.action == "create"
        apply_plan(plan, store)
        assert plan_apply(spec, store).changes_nothing
        after = gather(pinot, spec.name, spec.table_json)
        assert after.held == after.target
        assert after.retention == WEEK
