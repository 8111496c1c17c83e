"""The JSON Schema that gives editors completion and early warnings for `tables/*.yaml`.

It is looser than `load_tables`, which decides: it knows no rule between two keys.

The meaning of a key is read from the source code, and only when this module is used: Pydantic would read it
each time that a command starts.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from typing import Final

from pydantic import BaseModel

from pinot_assets.core.json_object import JsonObject
from pinot_assets.table_spec.blocks.audit import CHECK_KINDS, Assertion, Replicas
from pinot_assets.table_spec.blocks.dagster import DagsterSettings
from pinot_assets.table_spec.blocks.ingestion import FAMILIES, UNUSED_KEYS, FileIngestion
from pinot_assets.table_spec.blocks.layout import LayoutSettings
from pinot_assets.table_spec.blocks.pinot_json import DATA_TYPES, FILE_INGESTION_TASK
from pinot_assets.table_spec.blocks.realtime import RealtimeBlock


def described_schema(model: type[BaseModel]) -> JsonObject:
    """JSON Schema of a model with the keys as in the YAML; each property has a `description`."""
    schema = model.model_json_schema(by_alias=True)
    keys = {name: field.alias or name for name, field in model.model_fields.items()}
    for name, text in _texts_below(model):
        if name in keys:
            schema["properties"][keys[name]]["description"] = text
    return schema


def _texts_below(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield each field of a class with the text that follows it."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
        ):
            assert isinstance(text.value, ast.Constant)
            yield field.target.id, " ".join(str(text.value.value).split())


FILE_NAME: Final = "table.schema.json"
"""Name of the committed file; sample tables refer to it in their first line."""

_TABLE_PARTS: Final = ("segmentsConfig", "tenants", "tableIndexConfig", "metadata")
_SCALAR: Final[JsonObject] = {"type": ["string", "number", "boolean"]}


def editor_schema() -> str:
    """The JSON Schema as text, ending in a newline."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "pinot-assets table spec",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "schema": _pinot_schema(),
            "schemaFile": {"type": "string", "description": "The Pinot schema, relative to this file."},
            "table": _table_config(),
            "tableFile": {"type": "string", "description": "The Pinot table config, relative to this file."},
            "fileIngestion": {"$ref": f"#/definitions/{FILE_INGESTION_TASK}"},
            "realtime": _realtime(),
            "layout": _closed(described_schema(LayoutSettings)),
            "audit": _audit(),
            "dagster": _closed(described_schema(DagsterSettings)),
        },
        "allOf": [
            {"oneOf": [{"required": ["schema"]}, {"required": ["schemaFile"]}]},
            {"oneOf": [{"required": ["table"]}, {"required": ["tableFile"]}]},
            {"not": {"required": ["fileIngestion", "realtime"]}},
        ],
        "definitions": {FILE_INGESTION_TASK: _ingestion()},
    }
    return json.dumps(schema, indent=2) + "\n"


def _ingestion() -> JsonObject:
    generated = described_schema(FileIngestion)
    block = _closed(generated)
    families = {family: block["properties"].pop(family) for family in FAMILIES}
    for key, why in UNUSED_KEYS.items():
        unused = {**_SCALAR, "deprecated": True, "description": f"Accepted without effect: {why}."}
        block["properties"][key] = unused
    patterns = {
        f"^{re.escape(family)}\\..": {**_SCALAR, "description": value.get("description", "")}
        for family, value in families.items()
    }
    patterns["^segmentNameGenerator(\\.|$)"] = _SCALAR
    return block | {"patternProperties": patterns, "required": generated["required"]}


def _audit() -> JsonObject:
    kinds = [described_schema(kind) for kind in (Assertion, *CHECK_KINDS, Replicas)]
    return {
        "description": "What must be true of staged segments before queries see them.",
        "type": "array",
        "items": {"anyOf": [_closed(kind) | {"required": kind["required"]} for kind in kinds]},
    }


def _realtime() -> JsonObject:
    block = _closed(described_schema(RealtimeBlock))
    block["properties"]["stream"]["additionalProperties"] = _SCALAR
    return block


def _closed(generated: JsonObject) -> JsonObject:
    """The schema of a block that accepts its own keys only."""
    properties = {
        key: {k: v for k, v in value.items() if k != "title"}
        for key, value in generated["properties"].items()
    }
    return {
        "description": generated["description"],
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def _pinot_schema() -> JsonObject:
    flag = {"type": "boolean"}
    types = {"name": {"type": "string"}, "dataType": {"enum": list(DATA_TYPES)}}
    properties = {**types, "singleValueField": flag, "notNull": flag}
    field = {"type": "object", "properties": properties, "required": ["name", "dataType"]}
    moment = field | {"required": ["name", "dataType", "format", "granularity"]}
    return {
        "type": "object",
        "description": "The Pinot schema, as Pinot's own JSON.",
        "properties": {
            "schemaName": {"type": "string", "description": "The table's name."},
            "dimensionFieldSpecs": {"type": "array", "items": field},
            "metricFieldSpecs": {"type": "array", "items": field},
            "dateTimeFieldSpecs": {"type": "array", "items": moment},
        },
        "required": ["schemaName"],
    }


def _table_config() -> JsonObject:
    task = {FILE_INGESTION_TASK: {"$ref": f"#/definitions/{FILE_INGESTION_TASK}"}}
    pasted = {"type": "object", "properties": task}
    return {
        "type": "object",
        "description": "The Pinot table config, as Pinot's own JSON.",
        "properties": {
            "tableName": {"type": "string"},
            "tableType": {"enum": ["OFFLINE", "offline", "REALTIME", "realtime"]},
            **{part: {"type": "object"} for part in _TABLE_PARTS},
            "task": {"type": "object", "properties": {"taskTypeConfigsMap": pasted}},
        },
        "required": ["tableName", "tableType", *_TABLE_PARTS],
    }
