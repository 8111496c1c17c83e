"""`segmentPartitionConfig` and `sortedColumn` of a table config, and what of them cannot be honoured."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.segment.column.json_values import is_true
from pinot_assets.segment.column.support import Feature
from pinot_assets.segment.column.types import DataType
from pinot_assets.segment.values.partition import PartitionFunction, Partitioning

if TYPE_CHECKING:
    from pinot_assets.segment.column.fields import Column

_FUNCTIONS = {function.lower(): function for function in PartitionFunction} | {
    "murmur2": PartitionFunction.MURMUR
}
_MURMUR3_SINCE = (1, 1)
_MAY_BE_WHOLE = {DataType.INT, DataType.LONG, DataType.BOOLEAN, DataType.TIMESTAMP, DataType.STRING}
_UNSAFE_KEY = re.compile(r"[^A-Za-z0-9_.-]|^$")
# Servers take a value without the blanks at its clients, and one with a comma without those around the comma.
_UNSAFE_VALUE = re.compile(r"^\s|\s$|\s,|,\s|[\ud800-\udfff\U00010000-\U0010ffff]")


def read_partitionings(
    indexing: JsonMapping, columns: Iterable[Column], min_server: tuple[int, int]
) -> tuple[dict[str, Partitioning], list[str]]:
    """How columns are partitioned, and what is wrong with that.

    :param indexing: the table config's `tableIndexConfig`; columns that the schema lacks are ignored, as
        Pinot does.
    :param min_server: oldest server that must be able to read the segments.
    """
    wanted = (indexing.get("segmentPartitionConfig") or {}).get("columnPartitionMap") or {}
    found: dict[str, Partitioning] = {}
    problems: list[str] = []
    for column in columns:
        if column.name in wanted:
            try:
                found[column.name] = _partitioning(wanted[column.name], column, min_server)
            except ValueError as error:
                problem = f"partition metadata (segmentPartitionConfig): {error}"
                problems.append(Feature.PARTITIONS_INVALID.refusal(f"column {column.name}", problem))
    return found, problems


def _partitioning(entry: JsonMapping | None, column: Column, min_server: tuple[int, int]) -> Partitioning:
    """One entry of `columnPartitionMap`.

    :raises ValueError: says what is wrong.
    """
    if entry is None:
        raise ValueError("no settings")
    name, count, config = (
        str(entry.get("functionName")),
        entry.get("numPartitions"),
        entry.get("functionConfig"),
    )
    function = _FUNCTIONS.get(name.lower())
    if function is None:
        raise ValueError(f"no function {name}")
    if not column.single_value:
        raise ValueError("multi-value column")
    if function is PartitionFunction.MODULO and column.data_type not in _MAY_BE_WHOLE:
        raise ValueError(f"{function} of {column.data_type}")
    if function is PartitionFunction.MURMUR3 and min_server < _MURMUR3_SINCE:
        raise ValueError("a server older than 1.1 cannot load a segment with Murmur3")
    if not re.fullmatch("[0-9]+", str(count)) or not 0 < int(str(count)) < 2**31:
        raise ValueError(f"numPartitions {count}")
    how = Partitioning(function, int(str(count)), None if config is None else _config(config))
    _check_settings(how)
    return how


def _config(config: JsonMapping) -> tuple[tuple[str, str], ...]:
    if not isinstance(config, Mapping):
        raise ValueError(f"functionConfig {config}")
    found = []
    for key, value in config.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if _UNSAFE_KEY.search(key) or not isinstance(value, (str, int, bool)) or _UNSAFE_VALUE.search(text):
            raise ValueError(f"functionConfig {key}: {value} would not come back from the segment's metadata")
        found.append((key, text))
    return tuple(found)


def _check_settings(how: Partitioning) -> None:
    if is_true(how.setting("useRawBytes")):
        raise ValueError("useRawBytes, which Pinot 1.5 ignores and later versions do not")
    if how.function is PartitionFunction.MURMUR3:
        if how.setting("variant") not in ("", "x86_32", "x64_32"):
            raise ValueError(f"variant {how.setting('variant')}")
        seed = how.setting("seed")
        if seed and not (re.fullmatch("[+-]?[0-9]+", seed) and -(2**31) <= int(seed) < 2**31):
            raise ValueError(f"seed {seed}")
    if how.function is PartitionFunction.BOUNDED_COLUMN_VALUE:
        keys = dict(how.config or ()).keys()
        missing = {"columnValues", "columnValuesDelimiter"} - keys
        if missing:
            raise ValueError(f"no {' and no '.join(sorted(missing))}")
        if how.count != len(how.bounded_values) + 1:
            raise ValueError(f"numPartitions {how.count} for {len(how.bounded_values)} values")


def read_sort_order(indexing: JsonMapping, columns: Iterable[Column]) -> tuple[tuple[str, ...], list[str]]:
    """`sortedColumn`, and what is wrong with it."""
    single = {column.name for column in columns if column.single_value}
    order = tuple(indexing.get("sortedColumn") or ())
    return order, [
        Feature.SORTED_COLUMN_INVALID.refusal(f"column {name}", "sortedColumn")
        for name in order
        if name not in single
    ]
