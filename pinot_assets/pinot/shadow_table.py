"""A table for one audit, beside the one whose staged segments it holds: its name, schema and config. Pure.

It is made to be asked and to go: one copy of each segment, nothing that changes, moves or keeps them. Marks
in its config and in its schema say whose they are, so that none of a user is ever taken for one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import PinotError
from pinot_assets.pinot.api import PinotClient
from pinot_assets.pinot.table_config import setting

SUFFIX: Final = "_audit_shadow"
"""Pinot takes no table whose name holds two underscores in a row."""
MARK: Final = "pinotAssets.shadowOf"
"""Key of `metadata.customConfigs`, which Pinot keeps and never reads."""

_KEYS: Final = "primaryKeyColumns"
"""The schema's mark is a column that is named twice here. Of a schema Pinot keeps no key that it does not
know; these it keeps as they are, and looks at for upsert, dedup and dimension tables alone
(`SchemaUtils.validate` and `Schema.toJsonObject`, 0.11.0 and 1.5.1)."""
_FIELDS: Final = ("dimensionFieldSpecs", "metricFieldSpecs", "dateTimeFieldSpecs")

_AS_IT_IS: Final = ("tenants", "query")
_TIME: Final = ("timeColumnName", "timeType")
# REFRESH asks for no time column and knows no retention.
_BATCH: Final = {"segmentIngestionType": "REFRESH", "segmentIngestionFrequency": "DAILY"}
_BY_TIER: Final = "tierOverwrites"
_FEEDS: Final = ("batchIngestionConfig", "streamIngestionConfig")


def shadow_name(table: str) -> str:
    """The shadow table of a table; both are raw names."""
    return f"{table}{SUFFIX}"


def shadow_tables(pinot: PinotClient, tables: Iterable[str]) -> tuple[str, ...]:
    """Those of some tables that an audit made. One that stands while nobody audits was left by a driver that
    died, and may be deleted (`session/checks/shadow.py` does so at the table's next trigger).

    :param tables: raw names, of all tables or of those that are looked for.
    """
    ours = (name for name in tables if name.endswith(SUFFIX))
    return tuple(name for name in ours if is_shadow(name, pinot.get_table_config(name)))


def is_shadow(name: str, config: JsonMapping | None) -> bool:
    """Whether a table, by its config, was made for an audit."""
    table = setting(config or {}, "metadata", "customConfigs", MARK)
    return isinstance(table, str) and shadow_name(table) == name


def lone_schema(pinot: PinotClient, name: str) -> bool:
    """Whether an audit's schema is there and no table uses it: a driver that died before it had made the
    table, or after it had deleted it, left that."""
    keys = (pinot.get_schema(name) or {}).get(_KEYS) or ()
    return (
        len(set(keys)) < len(keys)
        and pinot.get_table_config(name) is None
        and pinot.get_realtime_config(name) is None
    )


def left_shadow(pinot: PinotClient, table: str) -> str:
    """Name of the table's shadow table, if that or its schema alone is there; "" where neither is."""
    name = shadow_name(table)
    return name if is_shadow(name, pinot.get_table_config(name)) or lone_schema(pinot, name) else ""


def shadow_schema(schema: JsonMapping, table: str) -> JsonObject:
    """The table's schema under the shadow table's name, with its mark."""
    fields = (field["name"] for group in _FIELDS for field in schema.get(group) or ())
    keys = schema.get(_KEYS) or [*islice(fields, 1)]
    return {**schema, "schemaName": shadow_name(table), _KEYS: [*keys, *keys[:1]]}


def shadow_config(config: JsonMapping, table: str) -> JsonObject:
    """The config of the shadow table: tenants, indexes and query settings are the table's own.

    Left out: quota, retention, tasks, tiers, replica groups and whatever else moves segments or is counted.

    :param config: the table's, as Pinot holds it.
    :raises PinotError: the table answers with less than its rows, which a copy would not.
    """
    if str(setting(config, "upsertConfig", "mode") or "NONE").upper() != "NONE":
        raise PinotError(
            f"a shadow table of {table} would not answer as it does",
            why="of rows with the same key a query sees the newest alone (upsertConfig)",
            hint="ask the servers: leave `via: shadow` out",
        )
    name = shadow_name(table)
    segments = setting(config, "segmentsConfig") or {}
    ingestion = setting(config, "ingestionConfig") or {}
    shadow = {
        "tableName": name,
        "tableType": "OFFLINE",
        "segmentsConfig": {
            **{key: segments[key] for key in _TIME if segments.get(key) is not None},
            "schemaName": name,
            "replication": "1",
        },
        "tableIndexConfig": _without_tiers(setting(config, "tableIndexConfig") or {}),
        "ingestionConfig": {
            **{key: value for key, value in ingestion.items() if key not in _FEEDS},
            "batchIngestionConfig": _BATCH,
        },
        "metadata": {"customConfigs": {MARK: table}},
        **{key: config[key] for key in _AS_IT_IS if config.get(key) is not None},
    }
    if config.get("fieldConfigList"):
        shadow["fieldConfigList"] = [_without_tiers(field) for field in config["fieldConfigList"]]
    return shadow


def _without_tiers(part: JsonMapping) -> JsonObject:
    return {key: value for key, value in part.items() if key != _BY_TIER}
