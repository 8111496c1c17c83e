"""Differences between the spec of a REALTIME table and what Pinot holds."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.table_spec import load_tables
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply
from pinot_assets.table_spec.tables.difference import SpecDifference, diff_table
from pinot_assets.table_spec.tables.drift import drift

STREAMS = "table.ingestionConfig.streamIngestionConfig.streamConfigMaps"


@pytest.fixture
def spec(folder):
    folder.realtime(
        {"peerSegmentDownloadScheme": "http", "flushThresholdRows": "5"},
        change=lambda whole: whole["realtime"]["stream"].update({"sasl.jaas.config": "${TABLE_JAAS}"}),
    )
    return load_tables(folder.path).realtime["flights"]


def held(spec) -> JsonObject:
    """The config as 1.5 gives it back: the suffix, and its own environment filled in."""
    config = copy.deepcopy(spec.table_json)
    config["tableName"] = "flights_REALTIME"
    ingestion = config["ingestionConfig"]["streamIngestionConfig"]
    ingestion |= {"pauselessConsumptionEnabled": False, "disasterRecoveryMode": "DEFAULT"}
    ingestion["streamConfigMaps"][0]["sasl.jaas.config"] = 'password="hunter2"'
    return config


def test_what_pinot_makes_of_it_is_no_difference(spec):
    assert diff_table(spec.table_json, held(spec)) == []


def test_a_stream_at_its_former_place_is_no_difference(spec):
    config = held(spec)
    (stream,) = config["ingestionConfig"].pop("streamIngestionConfig")["streamConfigMaps"]
    config["tableIndexConfig"]["streamConfigs"] = stream
    assert diff_table(spec.table_json, config) == []


def test_a_setting_of_the_stream_is_a_difference(spec):
    config = held(spec)
    stream = config["ingestionConfig"]["streamIngestionConfig"]["streamConfigMaps"][0]
    stream["realtime.segment.flush.threshold.rows"] = "6"
    path = f"{STREAMS}[0].realtime.segment.flush.threshold.rows"
    assert diff_table(spec.table_json, config) == [SpecDifference(path, "5", "6")]


def test_another_number_of_streams_is_a_difference_without_their_secrets(spec):
    config = held(spec)
    streams = config["ingestionConfig"]["streamIngestionConfig"]["streamConfigMaps"]
    streams.append({"streamType": "kafka", "sasl.jaas.config": 'password="hunter2"'})
    (difference,) = diff_table(spec.table_json, config)
    assert difference.path == STREAMS
    assert "hunter2" not in str(difference)
    assert "(hidden)" in str(difference)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("segmentsConfig", "peerSegmentDownloadScheme"), "http"),
        (("ingestionConfig", "streamIngestionConfig", "pauselessConsumptionEnabled"), True),
        (("ingestionConfig", "streamIngestionConfig", "disasterRecoveryMode"), "ALWAYS"),
    ],
)
def test_what_somebody_switched_on_in_pinot_is_a_difference(folder, path, value):
    folder.realtime()
    wanted = load_tables(folder.path).realtime["flights"].table_json
    config = copy.deepcopy(wanted)
    inner = config
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    assert diff_table(wanted, config) == [SpecDifference(".".join(("table", *path)), None, value)]


def test_a_peer_scheme_of_an_offline_table_is_nobodys_business(folder):
    folder.spec()
    wanted = load_tables(folder.path)["flights"].table_json
    config = copy.deepcopy(wanted)
    config["segmentsConfig"]["peerSegmentDownloadScheme"] = "http"
    assert diff_table(wanted, config) == []


class Store:
    def __init__(self) -> None:
        self.schemas: JsonObject = {}
        self.configs: JsonObject = {}

    def get_schema(self, name: str) -> JsonObject | None:
        return self.schemas.get(name)

    def put_schema(self, schema: Any) -> None:
        self.schemas[schema["schemaName"]] = schema

    def delete_schema(self, name: str) -> None:
        del self.schemas[name]

    def validate_table(self, schema: Any, config: Any) -> None:
        pass

    def get_table_config(self, table: str) -> JsonObject | None:
        raise AssertionError(f"the OFFLINE half of {table} is another table")

    def get_realtime_config(self, table: str) -> JsonObject | None:
        return self.configs.get(table)

    def create_table(self, config: Any) -> None:
        self.configs[config["tableName"]] = config

    update_table = create_table


def test_applying_makes_the_realtime_table(spec):
    store = Store()
    assert [str(d.path) for d in drift(spec, store)] == ["schema", "table"]
    apply_plan(plan_apply(spec, store), store)
    assert store.configs["flights"]["tableType"] == "REALTIME"
    assert plan_apply(spec, store).changes_nothing
