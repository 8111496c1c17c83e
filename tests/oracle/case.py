"""One table, built by our writer and by Pinot's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.segment import Segment, SegmentSpec, build_segment

CREATED = 1_790_000_000_000
DAY_MS = 86_400_000
Columns = Mapping[str, tuple[JsonObject, list[JsonValue]]]
"""By column its field spec (plus `section`, default a dimension) and its values, in order."""


class Case:
    """One table, built by both sides."""

    def __init__(self, oracle: Any) -> None:
        self.oracle = oracle

    def same(
        self,
        data: dict[str, tuple[JsonObject, list[Any]]],
        *,
        time_column: str | None = None,
        schema: JsonObject | None = None,
        indexing: JsonObject | None = None,
        fields: list[JsonObject] | None = None,
        ingestion: JsonObject | None = None,
        custom: dict[str, str] | None = None,
        pinots_order: list[int] | None = None,
        compare: Callable[[dict[str, bytes], Mapping[str, bytes]], None] | None = None,
    ) -> Segment:
        """Build and compare; gives our segment.

        :param data: by column its field spec (plus `section`, default a dimension) and its values, in order.
        :param fields: the table config's `fieldConfigList`.
        :param ingestion: its `ingestionConfig`.
        :param pinots_order: the order of rows in which Pinot gets them, where it is another.
        :param compare: given Pinot's files and ours, where they need not be identical.
        """
        sections, config = _settings(data, time_column, schema, indexing, fields, ingestion)
        spec = SegmentSpec.from_pinot(sections, config, write_for=self.oracle.write_for)
        count = max(len(values) for _, values in data.values())
        rows = [
            {name: _cell(values[i]) for name, (_, values) in data.items() if values}
            for i in pinots_order or range(count)
        ]
        theirs = self.oracle.build(
            rows, sections, config, name="t_0", creation_time_ms=CREATED, custom=custom
        )
        ours = build_segment(
            _table(data, spec),
            spec,
            name="t_0",
            table_name="t",
            creation_time_ms=CREATED,
            now_ms=_now(theirs),
            custom=custom,
        )
        (compare or self.oracle.assert_identical)(theirs, ours.files)
        return ours

    def ours(
        self,
        data: Columns,
        *,
        time_column: str | None = None,
        ingestion: JsonObject | None = None,
    ) -> Segment:
        """Our segment alone; the arguments are those of `same`."""
        spec = SegmentSpec.from_pinot(*_settings(data, time_column, None, None, None, ingestion))
        return build_segment(
            _table(data, spec),
            spec,
            name="t_0",
            table_name="t",
            creation_time_ms=CREATED,
            now_ms=CREATED,
        )


def _settings(
    data: Columns,
    time_column: str | None,
    schema: JsonObject | None,
    indexing: JsonObject | None,
    fields: list[JsonObject] | None,
    ingestion: JsonObject | None,
) -> tuple[JsonObject, JsonObject]:
    """Schema and table config."""
    sections: JsonObject = {"schemaName": "t", **(schema or {})}
    for name, (field, _) in data.items():
        section = f"{field.get('section', 'dimension')}FieldSpecs"
        options = {key: value for key, value in field.items() if key != "section"}
        sections.setdefault(section, []).append({"name": name, **options})
    config: JsonObject = {
        "tableName": "t_OFFLINE",
        "tableType": "OFFLINE",
        "segmentsConfig": {"replication": "1", "timeColumnName": time_column},
        "tenants": {},
        "tableIndexConfig": {"nullHandlingEnabled": True, **(indexing or {})},
        "metadata": {},
        **({"ingestionConfig": ingestion} if ingestion else {}),
        "fieldConfigList": fields or [],
    }
    return sections, config


def _table(data: Columns, spec: SegmentSpec) -> pa.Table:
    arrow = spec.arrow_schema()
    return pa.table(
        {name: arrow_array(values, arrow.field(name).type) for name, (_, values) in data.items() if values}
    )


def arrow_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values of a test as Arrow has them; instants are given in milliseconds."""
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_list(kind) and pa.types.is_timestamp(kind.value_type):
        return pa.array(values, pa.list_(pa.int64())).cast(kind)
    listed = any(isinstance(value, list) for value in values)
    if pa.types.is_list(kind) and not listed:
        return pa.array(values, kind.value_type)
    return pa.array(values, pa.list_(kind) if listed and not pa.types.is_list(kind) else kind)


def _cell(value: Any) -> Any:
    """A value as JSON; what JSON lacks goes in as text, which Pinot parses."""
    if isinstance(value, list):
        return [*map(_cell, value)]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _now(files: dict[str, bytes]) -> int:
    """The time that Pinot's builder took for now, where it filled a time column with it."""
    lines = dict(
        line.split(" = ", 1) for line in files["metadata.properties"].decode().splitlines() if " = " in line
    )
    unit = {"MILLISECONDS": 1, "SECONDS": 1_000, "DAYS": DAY_MS}.get(lines.get("segment.time.unit", ""), 1)
    return int(lines.get("segment.end.time", "0")) * unit


def alone(field: JsonObject, values: list[Any]) -> Segment:
    """Our segment of one column, not compared with anything."""
    spec = SegmentSpec.from_pinot({"dimensionFieldSpecs": [field]}, {})
    table = pa.table({field["name"]: values})
    return build_segment(table, spec, name="t", table_name="t", creation_time_ms=0, now_ms=0)


def property_of(segment: Segment, key: str) -> str | None:
    """A value of the segment's `metadata.properties`."""
    for line in segment.files["metadata.properties"].decode().splitlines():
        name, _, value = line.partition(" =")
        if name == key:
            return value.removeprefix(" ")
    return None
