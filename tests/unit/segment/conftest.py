"""A table with every supported type, small enough to read."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.segment import Segment, SegmentSpec, build_segment

SCHEMA: JsonObject = {
    "schemaName": "t",
    "dimensionFieldSpecs": [
        {"name": "absent", "dataType": "STRING"},
        {"name": "b", "dataType": "BOOLEAN"},
        {"name": "d", "dataType": "DOUBLE"},
        {"name": "f", "dataType": "FLOAT"},
        {"name": "i", "dataType": "INT", "defaultNullValue": 7},
        {"name": "j", "dataType": "JSON"},
        {"name": "s", "dataType": "STRING", "maxLength": 5},
    ],
    "metricFieldSpecs": [{"name": "m", "dataType": "LONG"}],
    "dateTimeFieldSpecs": [
        {
            "name": "ts",
            "dataType": "TIMESTAMP",
            "format": "1:MILLISECONDS:TIMESTAMP",
            "granularity": "1:MILLISECONDS",
        }
    ],
}
TABLE_CONFIG: JsonObject = {
    "tableName": "t_OFFLINE",
    "tableType": "OFFLINE",
    "segmentsConfig": {"replication": "1", "timeColumnName": "ts"},
    "tenants": {},
    "tableIndexConfig": {"nullHandlingEnabled": True},
    "metadata": {},
}
CREATED = 1_790_000_000_000
TIME = 1_600_000_000_000
TABLE = pa.table(
    {
        "b": [True, False, None, True],
        "d": [2e23, -0.0, float("nan"), 0.1],
        "f": pa.array([1.1, None, 3e38, -2.5], pa.float32()),
        "i": pa.array([3, None, 1, 2], pa.int32()),
        "j": ['{"a": 1.10, "b": [1e3]}', "not json", None, ""],
        "m": pa.array([5, 5, None, 6], pa.int64()),
        "s": ["a, b", " é", "abcd\U0001f600", None],
        "ts": pa.array([TIME, TIME + 5, TIME + 5, TIME + 9], pa.timestamp("ms", "UTC")),
        "not in the schema": [1, 2, 3, 4],
    }
)


@dataclass(frozen=True)
class Golden:
    """The table above and a way to build it."""

    schema: JsonObject
    table_config: JsonObject
    table: pa.Table
    created: int

    def build(
        self,
        table: pa.Table | None = None,
        *,
        write_for: str = "1.5",
        name: str = "t_0",
        now_ms: int = CREATED,
        custom: Mapping[str, str] | None = None,
    ) -> Segment:
        return build_segment(
            self.table if table is None else table,
            SegmentSpec.from_pinot(self.schema, self.table_config, write_for=write_for),
            name=name,
            table_name="t",
            creation_time_ms=CREATED,
            now_ms=now_ms,
            custom=custom,
        )


@pytest.fixture
def golden() -> Golden:
    return Golden(copy.deepcopy(SCHEMA), TABLE_CONFIG, TABLE, CREATED)
