"""The kinds of change of `spec_changes.yaml`, each with the two specs that it is between."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import yaml
from oracle.case import CREATED, arrow_array

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.pinot.versions import release
from pinot_assets.segment import Segment, SegmentSpec, build_segment
from pinot_assets.table_spec.blocks.ingestion import FileIngestion, model_input
from pinot_assets.table_spec.changes.recipe import Recipe, recipe_from

_LISTS = {"dimension": "dimensionFieldSpecs", "metric": "metricFieldSpecs", "dateTime": "dateTimeFieldSpecs"}
_CITIES = ("Rome", "Bonn", "Oslo", "Lima", "Kyiv")
_ROWS = range(40)
_POINT = b"\x80" + bytes.fromhex("40210000000000004047b33333333333")
"""A point as Pinot's `GeometrySerializer` writes it: 8.5, 47.4."""

VALUES: Final[dict[str, list[JsonValue]]] = {
    "name": [None if row % 7 == 3 else f"flight {row * 17 % 40:02d}" for row in _ROWS],
    "city": [_CITIES[row * 3 % 5] for row in _ROWS],
    "code": [None if row % 5 == 4 else row * 11 % 40 for row in _ROWS],
    "doc": [f'{{"a":{row % 4},"b":"{_CITIES[row % 5]}"}}' for row in _ROWS],
    "tags": [[_CITIES[row % 5], _CITIES[row % 3]] for row in _ROWS],
    "place": [_POINT for _ in _ROWS],
    "month": [f"2021-{1 + row * 5 % 12:02d}" for row in _ROWS],
    "day": [19_000 + row * 7 % 40 for row in _ROWS],
    "at": [1_600_000_000_000 + row * 7 % 40 * 3_600_000 for row in _ROWS],
    "clicks": [row * 1_000_003 % 997 for row in _ROWS],
    "amount": [row * 0.5 for row in reversed(_ROWS)],
}
"""The rows that a file of the table gives, by column; a column that is not here is not in the file."""


@dataclass(frozen=True)
class Side:
    """One of the two specs.

    :ivar schema: Pinot schema.
    :ivar config: Pinot table config.
    """

    schema: JsonObject
    config: JsonObject
    ingestion: FileIngestion

    @property
    def recipe(self) -> Recipe:
        return recipe_from(self.schema, self.config, self.ingestion)

    def build(self, name: str = "t_0", write_for: str = "1.5") -> Segment:
        """A segment of `VALUES` as this spec wants it."""
        spec = SegmentSpec.from_pinot(self.schema, self.config, write_for=write_for)
        arrow = spec.arrow_schema()
        columns = {
            column.name: arrow_array(VALUES[column.name], arrow.field(column.name).type)
            for column in spec.columns
            if column.name in VALUES
        }
        table_name = self.schema["schemaName"]
        return build_segment(
            pa.table(columns),
            spec,
            name=name,
            table_name=table_name,
            creation_time_ms=CREATED,
            now_ms=CREATED,
        )


@dataclass(frozen=True)
class Kind:
    """One kind of change; the fields are those of the file.

    :ivar changes: `column: setting` of each change.
    :ivar before_1_1: the verdict where a server is older than 1.1.
    :ivar stale: why servers' `isStale` says the opposite of the verdict; empty if it agrees.
    :ivar refused_since: the first release that refuses the table config of `after`; "" if all take it.
    :ivar refusal: what it says then.
    """

    name: str
    before: Side
    after: Side
    changes: frozenset[str]
    verdict: str
    before_1_1: str
    refused_since: str
    refusal: str
    reloads: bool
    stale: str
    disagrees: str
    by_rows: bool
    by_queries: bool

    def __str__(self) -> str:
        return self.name

    def refused_by(self, version: str) -> bool:
        """Whether a Pinot of that release takes no table with the config of `after`."""
        return bool(self.refused_since) and release(version) >= release(self.refused_since)


def _merged(one: JsonObject, other: JsonObject) -> JsonObject:
    """`one` with the values of `other`; null takes a value away."""
    both = dict(one)
    for key, value in other.items():
        if value is None:
            del both[key]
        elif isinstance(value, dict) and isinstance(both.get(key), dict):
            both[key] = _merged(both[key], value)
        else:
            both[key] = value
    return both


def side_of(parts: JsonObject, table: str = "t") -> Side:
    """A spec of the file's short form."""
    schema: JsonObject = {"schemaName": table, **parts.get("schema", {})}
    for name, field in parts["columns"].items():
        given = dict(field)
        schema.setdefault(_LISTS[given.pop("kind", "dimension")], []).append({"name": name, **given})
    config = {
        "tableName": f"{table}_OFFLINE",
        "tableType": "OFFLINE",
        "segmentsConfig": {"replication": "1", "timeColumnName": parts["time"]},
        "tenants": {},
        "tableIndexConfig": parts["index"],
        "fieldConfigList": [{"name": name, **field} for name, field in parts["fields"].items()],
        "ingestionConfig": parts["pinot"],
        "metadata": {},
    }
    return Side(schema, config, FileIngestion.model_validate(model_input(parts["ingestion"])))


def known_to_0_11(side: Side) -> bool:
    """Whether 0.11.0 takes all settings: `indexes` of a field, indexes of several columns, inverted indexes
    without dictionary, compression beside one."""
    indexing, fields = side.config["tableIndexConfig"], side.config["fieldConfigList"]
    raw = {*indexing.get("noDictionaryColumns", ())}
    return (
        not any("indexes" in field for field in fields)
        and not any("compressionCodec" in field and field["encodingType"] == "DICTIONARY" for field in fields)
        and "multiColumnTextIndexConfig" not in indexing
        and not raw.intersection(indexing.get("invertedIndexColumns", ()))
    )


def _read() -> tuple[Kind, ...]:
    file = yaml.safe_load(Path(__file__).with_name("spec_changes.yaml").read_text(encoding="utf-8"))
    return tuple(
        Kind(
            name=kind["name"],
            before=side_of(_merged(file["base"], kind.get("before", {}))),
            after=side_of(_merged(file["base"], kind.get("after", {}))),
            changes=frozenset(kind["changes"]),
            verdict=kind["verdict"],
            before_1_1=kind.get("before_1_1", kind["verdict"]),
            refused_since=kind.get("refused_since", ""),
            refusal=kind.get("refusal", ""),
            reloads=kind["reloads"],
            stale=kind.get("stale", ""),
            disagrees=kind.get("disagrees", ""),
            by_rows=kind.get("by_rows", False),
            by_queries=kind.get("by_queries", False),
        )
        for kind in file["kinds"]
    )


KINDS: Final = _read()
