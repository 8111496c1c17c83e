"""The table for one audit: what it takes over from the real one, and how it is known again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from fakes.pinot.memory import FakePinot

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError
from pinot_assets.pinot.shadow_table import (
    is_shadow,
    left_shadow,
    lone_schema,
    shadow_config,
    shadow_schema,
    shadow_tables,
)

CONFIG: JsonObject = {
    "tableName": "orders_OFFLINE",
    "tableType": "OFFLINE",
    "tenants": {"broker": "gold", "server": "gold"},
    "segmentsConfig": {
        "schemaName": "orders",
        "replication": "3",
        "timeColumnName": "ts",
        "retentionTimeUnit": "DAYS",
        "retentionTimeValue": "30",
        "peerSegmentDownloadScheme": "http",
    },
    "tableIndexConfig": {
        "loadMode": "MMAP",
        "invertedIndexColumns": ["carrier"],
        "tierOverwrites": {"cold": {}},
    },
    "fieldConfigList": [{"name": "carrier", "encodingType": "DICTIONARY", "tierOverwrites": {"cold": {}}}],
    "quota": {"storage": "1G", "maxQueriesPerSecond": "1"},
    "query": {"timeoutMs": 60000},
    "task": {"taskTypeConfigsMap": {"PurgeTask": {}}},
    "routing": {"instanceSelectorType": "strictReplicaGroup"},
    "instanceAssignmentConfigMap": {"OFFLINE": {"replicaGroupPartitionConfig": {"numReplicaGroups": 3}}},
    "tierConfigs": [{"name": "cold"}],
    "isDimTable": True,
    "ingestionConfig": {
        "batchIngestionConfig": {"segmentIngestionType": "APPEND", "consistentDataPush": True},
        "transformConfigs": [{"columnName": "d", "transformFunction": "a"}],
    },
    "metadata": {"customConfigs": {"owner": "me"}},
}


def test_it_has_the_tables_indexes_and_tenants_and_nothing_that_moves_or_limits_it() -> None:
    assert shadow_config(CONFIG, "orders") == {
        "tableName": "orders_audit_shadow",
        "tableType": "OFFLINE",
        "tenants": CONFIG["tenants"],
        "segmentsConfig": {"schemaName": "orders_audit_shadow", "replication": "1", "timeColumnName": "ts"},
        "tableIndexConfig": {"loadMode": "MMAP", "invertedIndexColumns": ["carrier"]},
        "fieldConfigList": [{"name": "carrier", "encodingType": "DICTIONARY"}],
        "query": {"timeoutMs": 60000},
        "ingestionConfig": {
            "batchIngestionConfig": {"segmentIngestionType": "REFRESH", "segmentIngestionFrequency": "DAILY"},
            "transformConfigs": CONFIG["ingestionConfig"]["transformConfigs"],
        },
        "metadata": {"customConfigs": {"pinotAssets.shadowOf": "orders"}},
    }


SCHEMA = {"schemaName": "orders", "dimensionFieldSpecs": [{"name": "v", "dataType": "STRING"}]}


def test_the_schema_is_the_same_under_another_name_with_a_mark() -> None:
    marked = {**SCHEMA, "schemaName": "orders_audit_shadow", "primaryKeyColumns": ["v", "v"]}
    assert shadow_schema(SCHEMA, "orders") == marked
    keyed = {**SCHEMA, "primaryKeyColumns": ["a", "b"]}
    assert shadow_schema(keyed, "orders")["primaryKeyColumns"] == ["a", "b", "a"]


@pytest.mark.parametrize("keys", [None, [], ["v"], ["v", "w"]])
def test_a_schema_without_the_mark_is_somebody_elses(keys: list[str] | None) -> None:
    pinot = FakePinot()
    pinot.put_schema({**SCHEMA, "primaryKeyColumns": keys})
    assert not lone_schema(pinot, "orders")


def test_a_schema_that_a_table_uses_is_not_alone() -> None:
    pinot, name = FakePinot(), "orders_audit_shadow"
    pinot.put_schema(shadow_schema(SCHEMA, "orders"))
    assert lone_schema(pinot, name)
    assert left_shadow(pinot, "orders") == name
    assert left_shadow(pinot, "flights") == ""
    pinot.realtime[name] = {"tableName": f"{name}_REALTIME"}
    assert not lone_schema(pinot, name)
    assert left_shadow(pinot, "orders") == ""


def test_a_table_that_hides_rows_of_its_own_has_no_shadow() -> None:
    with pytest.raises(PinotError, match="would give other answers"):
        shadow_config({**CONFIG, "upsertConfig": {"mode": "FULL"}}, "orders")


def marked(table: str) -> JsonObject:
    return {"metadata": {"customConfigs": {"pinotAssets.shadowOf": table}}}


def test_only_its_mark_makes_it_ours() -> None:
    assert is_shadow("orders_audit_shadow", marked("orders"))
    assert not is_shadow("orders_audit_shadow", {"metadata": {"customConfigs": None}})
    assert not is_shadow("orders_audit_shadow", None)
    assert not is_shadow("copy_audit_shadow", marked("orders"))  # somebody made theirs from a config of ours


def test_those_of_a_cluster_are_named_and_no_other_table_is_looked_at() -> None:
    configs = {"orders_audit_shadow": marked("orders"), "mine_audit_shadow": {"metadata": {}}}
    pinot = SimpleNamespace(get_table_config=lambda name: configs[name])
    assert shadow_tables(pinot, ["orders", "orders_audit_shadow", "mine_audit_shadow"]) == (
        "orders_audit_shadow",
    )
