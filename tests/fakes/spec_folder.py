"""A folder of table specs being written, each good unless a test changes it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import yaml

from pinot_assets.core.json_object import JsonObject
from pinot_assets.table_spec import AnyTableSpec, Note, Problem, TableSpec, check_tables, load_tables
from pinot_assets.table_spec.blocks.ingestion import FileIngestion, model_input

SCHEMA: JsonObject = {
    "schemaName": "flights",
    "dimensionFieldSpecs": [{"name": "carrier", "dataType": "STRING"}, {"name": "flight", "dataType": "INT"}],
    "metricFieldSpecs": [{"name": "distance", "dataType": "DOUBLE"}],
    "dateTimeFieldSpecs": [
        {"name": "time_hour", "dataType": "TIMESTAMP", "format": "TIMESTAMP", "granularity": "1:HOURS"}
    ],
}
TABLE: JsonObject = {
    "tableName": "flights",
    "tableType": "OFFLINE",
    "segmentsConfig": {"timeColumnName": "time_hour", "replication": "2"},
    "tenants": {},
    "tableIndexConfig": {"nullHandlingEnabled": True},
    "ingestionConfig": {"batchIngestionConfig": {"segmentIngestionType": "REFRESH"}},
    "metadata": {},
}
BLOCK: JsonObject = {
    "inputDirURI": "s3://flights-in/2013",
    "inputFormat": "csv",
    "output.segment.dir.uri": "s3://flights-staging/flights",
    "consistentPushEnabled": "true",
}


STREAM: JsonObject = {
    "streamType": "kafka",
    "stream.kafka.topic.name": "flights",
    "stream.kafka.broker.list": "127.0.0.1:9092",
}
REALTIME_TABLE: JsonObject = {
    "tableName": "flights",
    "tableType": "REALTIME",
    "segmentsConfig": {"timeColumnName": "time_hour", "replication": "2"},
    "tenants": {},
    "tableIndexConfig": {"loadMode": "MMAP"},
    "metadata": {},
}


Change = Callable[[JsonObject], object]


def unchanged(whole: JsonObject) -> None:
    """The spec as it is."""


class Folder:
    """A folder of table specs being written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def text(self, text: str, name: str = "flights.yaml") -> Path:
        file = self.path / name
        file.write_text(text)
        return file

    def spec(
        self,
        block: JsonObject | None = None,
        *,
        change: Change = unchanged,
        name: str = "flights.yaml",
    ) -> Path:
        """Write a good spec, with `block` laid over its ingestion (None as a value removes a key)."""
        laid = {**BLOCK, **(block or {})}
        whole = copy.deepcopy(
            {
                "schema": SCHEMA,
                "table": TABLE,
                "fileIngestion": {k: v for k, v in laid.items() if v is not None},
            }
        )
        change(whole)
        return self.text(yaml.safe_dump(whole, sort_keys=False), name)

    def realtime(
        self,
        block: JsonObject | None = None,
        *,
        change: Change = unchanged,
        name: str = "flights-realtime.yaml",
    ) -> Path:
        """Write a good spec of a REALTIME table, with `block` laid over its realtime block."""
        laid = {"stream": STREAM, **(block or {})}
        whole = copy.deepcopy(
            {
                "schema": SCHEMA,
                "table": REALTIME_TABLE,
                "realtime": {k: v for k, v in laid.items() if v is not None},
            }
        )
        change(whole)
        return self.text(yaml.safe_dump(whole, sort_keys=False), name)

    def load(
        self,
        block: JsonObject | None = None,
        *,
        change: Change = unchanged,
        name: str = "flights.yaml",
    ) -> TableSpec:
        self.spec(block, change=change, name=name)
        return load_tables(self.path)["flights"]

    def unchecked(self, block: dict[str, str]) -> TableSpec:
        """A spec whose ingestion block no rule and no policy has seen."""
        ingestion = FileIngestion.model_validate(model_input({**BLOCK, **block}))
        return replace(self.load(), ingestion=ingestion)

    def check(self) -> tuple[list[AnyTableSpec], list[Problem], list[Note]]:
        return check_tables(self.path)

    def problems(
        self,
        block: JsonObject | None = None,
        *,
        change: Change = unchanged,
        name: str = "flights.yaml",
    ) -> list[Problem]:
        self.spec(block, change=change, name=name)
        return self.check()[1]

    def notes(
        self,
        block: JsonObject | None = None,
        *,
        change: Change = unchanged,
        name: str = "flights.yaml",
    ) -> dict[str, str]:
        """Notes by key, of a spec that must be free of problems."""
        self.spec(block, change=change, name=name)
        _, problems, notes = self.check()
        assert problems == []
        return {note.key: note.text for note in notes}
