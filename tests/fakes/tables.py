"""A small table spec on disk: one text column, csv files in `<folder>/source`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from pinot_assets.spec import TableSpec, load_table

SYNC = {"consistentPushEnabled": "true", "ingestionMode": "sync"}
APPEND = {"consistentPushEnabled": "true", "ingestionMode": "append"}
SWAP = {"consistentPushSwapEnabled": "true"}


def write_table(folder: Path, name: str, options: dict[str, Any] | None = None) -> TableSpec:
    """Write `<folder>/tables/<name>.yaml` and the folders that it names.

    :param options: keys of the ingestion block; a sync table without.
    """
    for part in ("tables", "source", "staging"):
        (folder / part).mkdir(exist_ok=True)
    document = {
        "schema": {"schemaName": name, "dimensionFieldSpecs": [{"name": "v", "dataType": "STRING"}]},
        "table": {
            "tableName": name,
            "tableType": "OFFLINE",
            "segmentsConfig": {"replication": "2"},
            "tenants": {},
            "tableIndexConfig": {"loadMode": "MMAP"},
            "ingestionConfig": {
                "batchIngestionConfig": {
                    "segmentIngestionType": "REFRESH",
                    "segmentIngestionFrequency": "DAILY",
                }
            },
            "metadata": {},
        },
        "fileIngestion": {
            "inputDirURI": str(folder / "source"),
            "inputFormat": "csv",
            "output.segment.dir.uri": str(folder / "staging"),
            "minServer": "0.11",
            "consistentPushMaxRetries": "3",
            **(SYNC if options is None else options),
        },
    }
    file = folder / "tables" / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return load_table(file)


def write_files(folder: Path, **values: str) -> None:
    """Files in `<folder>/source`: `F1="a b"` is `F1.csv` with two rows."""
    for name, text in values.items():
        (folder / "source" / f"{name}.csv").write_text("\n".join(["v", *text.split()]) + "\n")
