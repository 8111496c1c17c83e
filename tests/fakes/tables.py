"""Table specs of tests: their documents, and a small one on disk: a text column, csv in `<folder>/source`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.table_spec import TableSpec, load_table

SYNC = {"consistentPushEnabled": "true", "ingestionMode": "sync"}
APPEND = {"consistentPushEnabled": "true", "ingestionMode": "append"}
SWAP = {"consistentPushSwapEnabled": "true"}


PARTITIONS = {"columnPartitionMap": {"v": {"functionName": "HashCode", "numPartitions": 2}}}
"""Of the column of `write_table`: texts that end with an odd and with an even digit are apart."""


def document(name: str, dimensions: Mapping[str, str], ingestion: JsonMapping, **metrics: str) -> JsonObject:
    """What the YAML of an OFFLINE table with two replicas holds.

    :param dimensions: names of columns, each with its data type; as are the metrics.
    """
    batch = {"segmentIngestionType": "REFRESH", "segmentIngestionFrequency": "DAILY"}
    schema = {"schemaName": name, "dimensionFieldSpecs": _fields(dimensions)}
    return {
        "schema": schema | ({"metricFieldSpecs": _fields(metrics)} if metrics else {}),
        "table": {
            "tableName": name,
            "tableType": "OFFLINE",
            "segmentsConfig": {"replication": "2"},
            "tenants": {},
            "tableIndexConfig": {"loadMode": "MMAP"},
            "ingestionConfig": {"batchIngestionConfig": batch},
            "metadata": {},
        },
        "fileIngestion": dict(ingestion),
    }


def _fields(types: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "dataType": kind} for name, kind in types.items()]


def on_s3(endpoint: str, source: str, staging: str) -> dict[str, str]:
    """Keys of the ingestion block: folders there, and the keys from the environment."""
    properties = {
        "region": "us-east-1",
        "endpoint": endpoint,
        "accessKey": "${TABLE_ACCESS_KEY}",
        "secretKey": "${TABLE_SECRET_KEY}",
    }
    return {
        "inputDirURI": source,
        "output.segment.dir.uri": staging,
        **{f"{way}.fs.prop.{key}": value for way in ("input", "output") for key, value in properties.items()},
    }


def write_table(folder: Path, name: str, options: JsonObject | None = None) -> TableSpec:
    """Write `<folder>/tables/<name>.yaml` and the folders that it names.

    :param options: keys of the ingestion block, and `layout.…`; a sync table without.
    """
    for part in ("tables", "source", "staging"):
        (folder / part).mkdir(exist_ok=True)
    ingestion = {
        "inputDirURI": str(folder / "source"),
        "inputFormat": "csv",
        "output.segment.dir.uri": str(folder / "staging"),
        "minServer": "0.11",
        "consistentPushMaxRetries": "3",
        **(SYNC if options is None else options),
    }
    of_layout = [key for key in ingestion if key.startswith("layout.")]
    layout = {key.removeprefix("layout."): ingestion.pop(key) for key in of_layout}
    if "waitFor" in layout:
        layout["waitFor"] = {"minutes": layout["waitFor"]}
    file = folder / "tables" / f"{name}.yaml"
    spec = document(name, {"v": "STRING"}, ingestion) | ({"layout": layout} if layout else {})
    if "partition" in layout:
        spec["table"]["tableIndexConfig"]["segmentPartitionConfig"] = PARTITIONS
        spec["table"]["routing"] = {"segmentPrunerTypes": ["partition"]}
    file.write_text(yaml.safe_dump(spec, sort_keys=False))
    return load_table(file)


def write_files(folder: Path, **values: str) -> None:
    """Files in `<folder>/source`: `F1="a b"` is `F1.csv` with two rows."""
    for name, text in values.items():
        (folder / "source" / f"{name}.csv").write_text("\n".join(["v", *text.split()]) + "\n")
