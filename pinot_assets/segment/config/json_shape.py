"""Whether schema and table config are made as Pinot's are: objects, lists and texts where it has them.

What is read here without further ado is looked at first; numbers are judged where they are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.segment.column.support import Feature

Shape: TypeAlias = "str | dict[str, Shape] | list[Shape]"

_TEXT, _TEXTS, _COLUMNS = "a text", "a list of texts", "an object of objects"
_KINDS: Final[dict[str, Callable[[Any], bool]]] = {
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


def check_shape(schema: JsonMapping, table_config: JsonMapping) -> list[str]:
    """What stands where Pinot has something else, and columns that `fieldConfigList` has twice."""
    problems = [*_wrong(schema, _SCHEMA, ""), *_wrong(table_config, _TABLE, "")]
    if not problems:
        names = [entry.get("name") for entry in table_config.get("fieldConfigList") or []]
        for name in sorted(str(name) for name, count in Counter(names).items() if count > 1):
            problems.append(Feature.CONFIG_SHAPE.refusal(f"column {name}", "two entries in fieldConfigList"))
    return problems


def _wrong(value: Any, shape: Shape, where: str) -> Iterator[str]:
    if value is None:
        return
    if isinstance(shape, str):
        kind, found = shape, _KINDS[shape](value)
    elif isinstance(shape, list):
        kind, found = "a list", isinstance(value, list) and None not in value
        for one in value if found else ():
            yield from _wrong(one, shape[0], where)
    else:
        kind, found = "an object", isinstance(value, Mapping)
        for key, inner in shape.items() if found else ():
            yield from _wrong(value.get(key), inner, f"{where}.{key}".removeprefix("."))
    if not found:
        yield Feature.CONFIG_SHAPE.refusal(where or "the file", f"{value!r} is not {kind}")
