"""Table specs of REALTIME tables, for tests of what stands on them."""

from __future__ import annotations

from pathlib import Path

import yaml

from pinot_assets.core.json_object import JsonObject
from pinot_assets.table_spec import RealtimeTableSpec, load_tables

SCHEMA: JsonObject = {
    "schemaName": "clicks",
    "dimensionFieldSpecs": [{"name": "id", "dataType": "STRING"}],
    "dateTimeFieldSpecs": [
        {"name": "at", "dataType": "TIMESTAMP", "format": "TIMESTAMP", "granularity": "1:SECONDS"}
    ],
}
TABLE: JsonObject = {
    "tableName": "clicks",
    "tableType": "REALTIME",
    "segmentsConfig": {"timeColumnName": "at", "replication": "2"},
    "tenants": {},
    "tableIndexConfig": {},
    "metadata": {},
}
BLOCK: JsonObject = {
    "stream": {
        "streamType": "kafka",
        "stream.kafka.topic.name": "t",
        "stream.kafka.broker.list": "127.0.0.1:1",
    },
    "peerSegmentDownloadScheme": "http",
    "pauselessConsumptionEnabled": True,
}


def write_realtime_table(
    folder: Path, block: JsonObject | None = None, dagster: JsonObject | None = None
) -> RealtimeTableSpec:
    """Write `tables/clicks.yaml` below a folder, and load it.

    :param block: laid over the realtime block.
    """
    tables = folder / "tables"
    tables.mkdir(exist_ok=True)
    whole = {"schema": SCHEMA, "table": TABLE, "realtime": {**BLOCK, **(block or {})}}
    if dagster is not None:
        whole["dagster"] = dagster
    (tables / "clicks.yaml").write_text(yaml.safe_dump(whole, sort_keys=False))
    return load_tables(tables).realtime["clicks"]
