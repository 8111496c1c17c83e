"""Name, schema and config of a shadow table: a copy of a table for one audit, with the staged segments. Pure.

It lives as long as the audit: one copy of each segment, and no setting that changes, moves or keeps them.
Its config and its schema carry a mark, so that we never take a user's table for ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.untrusted import typed
from pinot_assets.errors import PinotError
from pinot_assets.pinot.api import PinotClient
from pinot_assets.pinot.table_config import setting

SUFFIX: Final = "_audit_shadow"
"""Pinot refuses a table whose name holds two underscores in a row."""
MARK: Final = "pinotAssets.shadowOf"
"""Key of `metadata.customConfigs`, which Pinot keeps and never reads."""

_KEYS: Final = "primaryKeyColumns"
"""In this list the schema's mark names one column twice. Pinot drops unknown keys of a schema. It stores this
list as it is, and checks it only for upsert, dedup and dimension tables
(`SchemaUtils.validate` and `Schema.toJsonObject`, 0.11.0 and 1.5.1)."""
_FIELDS: Final = ("dimensionFieldSpecs", "metricFieldSpecs", "dateTimeFieldSpecs")

_AS_IT_IS: Final = ("tenants", "query")
_TIME: Final = ("timeColumnName", "timeType")
# REFRESH needs no time column and has no retention.
_BATCH: Final = {"segmentIngestionType": "REFRESH", "segmentIngestionFrequency": "DAILY"}
_BY_TIER: Final = "tierOverwrites"
_FEEDS: Final = ("batchIngestionConfig", "streamIngestionConfig")


def shadow_name(table: str) -> str:
    """Return the name of a table's shadow table; both are raw names."""
    return f"{table}{SUFFIX}"


def shadow_tables(pinot: PinotClient, tables: Iterable[str]) -> tuple[str, ...]:
    """Return those of the given tables that an audit made. If no audit runs, a driver that died left them:
    they may be deleted (`session/checks/shadow.py` does so at the table's next trigger).

    :param tables: raw names, of all tables or of those to look at.
    """
    ours = (name for name in tables if name.endswith(SUFFIX))
    return tuple(name for name in ours if is_shadow(name, pinot.get_table_config(name)))


def is_shadow(name: str, config: JsonMapping | None) -> bool:
    """Whether an audit made this table; its config shows that."""
    table = setting(config or {}, "metadata", "customConfigs", MARK)
    return isinstance(table, str) and shadow_name(table) == name


def lone_schema(pinot: PinotClient, name: str) -> bool:
    """Whether an audit's schema is there and no table uses it. It is left by a driver that died before
    it made the table or after it deleted the table."""
    keys = (pinot.get_schema(name) or {}).get(_KEYS) or ()
    return (
        len(set(keys)) < len(keys)
        and pinot.get_table_config(name) is None
        and pinot.get_realtime_config(name) is None
    )


def left_shadow(pinot: PinotClient, table: str) -> str:
    """Return the shadow table's name if the table or just its schema is there, else ""."""
    name = shadow_name(table)
    return name if is_shadow(name, pinot.get_table_config(name)) or lone_schema(pinot, name) else ""


def shadow_schema(schema: JsonMapping, table: str) -> JsonObject:
    """Return the table's schema under the shadow table's name, with our mark."""
    fields = (field["name"] for group in _FIELDS for field in schema.get(group) or ())
    keys = schema.get(_KEYS) or [*islice(fields, 1)]
    return {**schema, "schemaName": shadow_name(table), _KEYS: [*keys, *keys[:1]]}


def shadow_config(config: JsonMapping, table: str) -> JsonObject:
    """Return the shadow table's config: tenants, indexes and query settings are those of the table.

    It leaves out quota, retention, tasks, tiers, replica groups and whatever else moves or counts segments.

    :param config: the table's, as Pinot stores it.
    :raises PinotError: the table uses upsert, so its queries see fewer rows than a copy's would.
    """
    if str(setting(config, "upsertConfig", "mode") or "NONE").upper() != "NONE":
        raise PinotError(
            f"a shadow table of {table} would give other answers than the table",
            why="of rows with the same key, a query sees only the newest (upsertConfig)",
            hint="query the servers: remove `via: shadow`",
        )
    name = shadow_name(table)
    segments = typed(setting(config, "segmentsConfig") or {}, dict)
    ingestion = typed(setting(config, "ingestionConfig") or {}, dict)
    shadow = {
        "tableName": name,
        "tableType": "OFFLINE",
        "segmentsConfig": {
            **{key: segments[key] for key in _TIME if segments.get(key) is not None},
            "schemaName": name,
            "replication": "1",
        },
        "tableIndexConfig": _without_tiers(typed(setting(config, "tableIndexConfig") or {}, dict)),
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
