"""The preflight of a pauseless table of 1.5.1 that commits, and its spec, compared and applied."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from fakes.pauseless.servers import PauselessCluster
from fakes.pauseless.table import rows_table
from fakes.realtime.kafka_table import schema

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.realtime.model.state import SegmentStatus
from pinot_assets.realtime.preflight.facts import Aim
from pinot_assets.realtime.preflight.gather import gather
from pinot_assets.realtime.preflight.judge import run_rules, verdict
from pinot_assets.table_spec import RealtimeTableSpec, load_tables
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply

pytestmark = pytest.mark.integration


def test_what_commits_showed_is_judged(whole: PauselessCluster) -> None:
    with rows_table(whole, **{"realtime.segment.flush.threshold.rows": "2000"}) as rows:
        rows.send(10_000)
        rows.until(lambda state: sum(s.status is SegmentStatus.DONE for s in state.segments) >= 8)
        with whole.pinot() as pinot:
            config = pinot.table_config(rows.table)
            assert config is not None
            facts = gather(pinot, rows.table, config)
    assert facts.aims == set(Aim)
    assert facts.cluster.version == whole.release
    assert facts.cluster.segment_store == {server.name: whole.deep_store.as_uri() for server in whole.servers}
    assert facts.commit_times is not None
    assert facts.commit_times.late == 0
    assert 0 <= (facts.commit_times.seconds or 0) < 60
    assert facts.commit_start is not None
    assert facts.retention is not None
    assert set(facts.admin_ports.values()) == {None}
    answers = {answer.name: answer for answer in run_rules(facts)}
    assert [rule for rule, one in answers.items() if one.blocks] == []
    assert "the slowest commit" in answers["build_and_upload"].message
    assert "300 s" in answers["hanging_store"].message
    assert verdict(answers["stuck_commits"]) == "warn"
    assert not answers["servers_come_back"].blocks


@pytest.mark.usefixtures("code_allowed")
def test_a_spec_is_compared_and_applied(whole: PauselessCluster, tmp_path: Path) -> None:
    def spec(name: str, config: JsonObject, **block: str) -> RealtimeTableSpec:
        whole = {
            "schema": schema(name),
            "table": {**config, "tenants": {}, "metadata": {}},
            "realtime": block,
        }
        (tmp_path / "table.yaml").write_text(yaml.safe_dump(whole))
        return load_tables(tmp_path).realtime[name]

    with rows_table(whole) as rows, HttpPinotClient(PinotConnection(whole.controller_url)) as store:
        held = store.get_realtime_config(rows.name)
        assert held is not None
        assert plan_apply(spec(rows.name, held), store).changes_nothing
        ingestion = held["ingestionConfig"]["streamIngestionConfig"]
        ingestion.pop("disasterRecoveryMode", None)  # Pinot writes out what it takes for granted
        ingestion["streamConfigMaps"][0].pop("realtime.segment.flush.threshold.rows", None)
        new_spec = spec(rows.name, held, flushThresholdSegmentSize="64M", disasterRecoveryMode="ALWAYS")
        plan = plan_apply(new_spec, store)
        assert {difference.path.rsplit(".", 1)[-1] for difference in plan.table.differences} >= {
            "disasterRecoveryMode",
            "size",
        }
        apply_plan(plan, store)
        assert plan_apply(new_spec, store).changes_nothing
        # Somebody takes it back in Pinot: what the spec does not say is a difference, too.
        assert not plan_apply(spec(rows.name, held), store).changes_nothing
