"""JSON of a schema or table config: values as Pinot's own classes read them, and whether it has their shape.

What is read without further ado is looked at first by `check_shape`; numbers are judged where they are used.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.segment.column.support import Feature, Findings


def is_true(value: object) -> bool:
    """A JSON switch as Jackson reads it: the text "true" counts."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


def number(value: object) -> float | None:
    """A JSON number as Jackson reads a double: one in a text counts; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def java_int(value: object) -> int | None:
    """A JSON number as Jackson reads an int: digits in a text count; None if it is none."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,10}", value.strip()):
        value = int(value)
    if type(value) is not int or not -(2**31) <= value < 2**31:
        return None
    return value


Shape: TypeAlias = "str | dict[str, Shape] | list[Shape]"

_TEXT, _TEXTS, _COLUMNS = "a text", "a list of texts", "an object of objects"
_KINDS: Final[dict[str, Callable[[object], bool]]] = {
    _TEXT: lambda value: isinstance(value, str),
    _TEXTS: lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    _COLUMNS: lambda value: (
        isinstance(value, Mapping) and all(one is None or isinstance(one, Mapping) for one in value.values())
    ),
}
_FIELDS: Final[Shape] = [{"name": _TEXT, "dataType": _TEXT}]
_SCHEMA: Final[Shape] = {
    "dimensionFieldSpecs": _FIELDS,
    "metricFieldSpecs": _FIELDS,
    "dateTimeFieldSpecs": _FIELDS,
    "complexFieldSpecs": [{}],
}
_TABLE: Final[Shape] = {
    "segmentsConfig": {"timeColumnName": _TEXT},
    "metadata": {"customConfigs": {}},
    "ingestionConfig": {},
    "tableIndexConfig": {
        **dict.fromkeys(
            (
                "bloomFilterColumns",
                "invertedIndexColumns",
                "jsonIndexColumns",
                "noDictionaryColumns",
                "onHeapDictionaryColumns",
                "rangeIndexColumns",
                "sortedColumn",
                "varLengthDictionaryColumns",
            ),
            _TEXTS,
        ),
        "bloomFilterConfigs": _COLUMNS,
        "jsonIndexConfigs": _COLUMNS,
        "noDictionaryConfig": {},
        "segmentPartitionConfig": {"columnPartitionMap": _COLUMNS},
    },
    "fieldConfigList": [
        {
            "name": _TEXT,
            "indexType": _TEXT,
            "indexTypes": _TEXTS,
            "indexes": _COLUMNS,
            "properties": {},
        }
    ],
}


def check_shape(schema: JsonMapping, table_config: JsonMapping, findings: Findings) -> None:
    """Refuse what stands where Pinot has something else, and columns that `fieldConfigList` has twice."""
    _check(schema, _SCHEMA, "", findings)
    _check(table_config, _TABLE, "", findings)
    if not findings.problems:
        names = Counter(entry.get("name") for entry in table_config.get("fieldConfigList") or [])
        for name in sorted(str(name) for name, count in names.items() if count > 1):
            findings.refuse(f"column {name}", Feature.CONFIG_SHAPE, "two entries in fieldConfigList")


def _check(value: object, shape: Shape, where: str, findings: Findings) -> None:
    if value is None:
        return
    if isinstance(shape, str):
        kind, found = shape, _KINDS[shape](value)
    elif isinstance(shape, list):
        kind, found = "a list", isinstance(value, list) and None not in value
        for one in value if isinstance(value, list) and found else ():
            _check(one, shape[0], where, findings)
    else:
        kind, found = "an object", isinstance(value, Mapping)
        if isinstance(value, Mapping):
            for key, inner in shape.items():
                _check(value.get(key), inner, f"{where}.{key}".removeprefix("."), findings)
    if not found:
        findings.refuse(where or "the file", Feature.CONFIG_SHAPE, f"{value!r} is not {kind}")
