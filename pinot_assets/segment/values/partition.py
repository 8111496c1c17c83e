"""Partition functions and the partitions of a segment's rows (docs/design/segment-format.md#s9).

`segmentPartitionConfig` of a table config names the functions; settings that cannot be honoured are refused.
Source: `PartitionFunctionFactory` and `AbstractColumnStatisticsCollector`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import BuildError
from pinot_assets.segment.column.target import Target
from pinot_assets.segment.column.types import Column, DataType
from pinot_assets.segment.column.unsupported import Feature, Findings, is_true
from pinot_assets.segment.values.hashing import (
    U32,
    as_utf8,
    byte_array_hash,
    murmur2,
    murmur3_x64_32,
    murmur3_x86_32,
    string_hash,
)

Partitions = npt.NDArray[np.int64]

_ASCII_LONG = r"^[+-]?[0-9]+$"
_TREEIFY, _MIN_TREE_CAPACITY = 8, 64  # `HashMap`: a bucket with more entries makes a smaller table grow


class PartitionFunction(StrEnum):
    """Pinot's partition functions, by the names that segments carry."""

    MODULO = "Modulo"
    MURMUR = "Murmur"
    MURMUR3 = "Murmur3"
    BYTE_ARRAY = "ByteArray"
    HASH_CODE = "HashCode"
    BOUNDED_COLUMN_VALUE = "BoundedColumnValue"


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How one column is partitioned.

    :ivar count: number of partitions.
    :ivar config: the `functionConfig` of the table config, in its order; None when it has none.
    """

    function: PartitionFunction
    count: int
    config: tuple[tuple[str, str], ...] | None = None

    def setting(self, key: str) -> str:
        """Return a value of `config`, "" if it has none."""
        return dict(self.config or ()).get(key, "")

    @property
    def bounded_values(self) -> list[str]:
        """Return the values of `BoundedColumnValue`, split at any character of the delimiter, without ""."""
        values, delimiter = self.setting("columnValues"), self.setting("columnValuesDelimiter")
        return [
            part for part in values.translate(dict.fromkeys(map(ord, delimiter), "\0")).split("\0") if part
        ]


def partition_values(
    name: str, how: Partitioning, texts: pa.LargeBinaryArray, codes: npt.NDArray[np.int32]
) -> list[int]:
    """Return the partitions of a segment's rows, in the order of Pinot's `HashSet`.

    :param name: column name, for errors.
    :param texts: the column's values as Java texts, in any order, repeats allowed.
    :param codes: each row's index into `texts`.
    :raises BuildError: `Modulo` of a text that is no whole number.
    """
    distinct, first = np.unique(partitions(name, how, texts)[codes], return_index=True)
    return hash_set_order(distinct[np.argsort(first)].tolist())


def partitions(name: str, how: Partitioning, texts: pa.LargeBinaryArray) -> Partitions:
    """Return the partition of each text.

    :raises BuildError: `Modulo` of a text that is no whole number.
    """
    if how.function is PartitionFunction.HASH_CODE:
        return _absolute(string_hash(texts), how.count)
    texts = as_utf8(texts)
    match how.function:
        case PartitionFunction.MODULO:
            return _longs(name, texts) % how.count
        case PartitionFunction.MURMUR:
            return _masked(murmur2(texts), how.count)
        case PartitionFunction.MURMUR3:
            seed = int(how.setting("seed") or 0)
            hashed = murmur3_x64_32 if how.setting("variant") == "x64_32" else murmur3_x86_32
            return _masked(hashed(texts, seed), how.count)
        case PartitionFunction.BYTE_ARRAY:
            return _absolute(byte_array_hash(texts), how.count)
        case PartitionFunction.BOUNDED_COLUMN_VALUE:
            return _bounded(how.bounded_values, texts)


def _masked(hashes: U32, count: int) -> Partitions:
    return (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % count


def _absolute(hashes: U32, count: int) -> Partitions:
    """Return the partitions by Kafka's `Utils.abs`: the smallest integer has no opposite and becomes 0."""
    signed = hashes.view(np.int32).astype(np.int64)
    return np.where(signed == -(2**31), 0, np.abs(signed)) % count


def _longs(name: str, texts: pa.LargeBinaryArray) -> Partitions:
    """Return the numbers that `Long.parseLong` reads from the texts."""
    strings = texts.cast(pa.large_string())
    try:
        if not pc.all(pc.match_substring_regex(strings, _ASCII_LONG), min_count=0).as_py():
            raise pa.ArrowInvalid
        numbers = pc.utf8_ltrim(strings, "+").cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise BuildError(
            f"Column {name} holds a text that is no whole number",
            why="its partition function is Modulo, with which Pinot cannot build the segment either",
            hint="Correct the file, or choose another function in segmentPartitionConfig.",
        ) from None
    return np.asarray(numbers, dtype=np.int64)


def _bounded(values: list[str], texts: pa.LargeBinaryArray) -> Partitions:
    """Return the number, from 1, of the first value that equals the text, ignoring case; 0 if none does."""
    places: dict[str, int] = {}
    for place, value in enumerate(_folded(pa.array(values, pa.large_string())).to_pylist(), start=1):
        places.setdefault(value, place)
    known = pa.array(list(places), pa.large_string())
    indices = pc.fill_null(pc.index_in(_folded(texts.cast(pa.large_string())), known), -1)
    partition = np.array([*places.values(), 0], dtype=np.int64)
    return np.asarray(partition[indices.to_numpy()])


def _folded(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Make texts equal that `String.equalsIgnoreCase` calls equal; Arrow also maps one character to one."""
    return pc.utf8_lower(pc.utf8_upper(texts))


def hash_set_order(values: list[int]) -> list[int]:
    """Return the values in the order in which a Java `HashSet<Integer>` iterates over them.

    In a table of 64 or more, a bucket of nine or more entries becomes a tree. Its order is not imitated here:
    it would take nine partitions that are equal modulo 64.

    :param values: distinct, not negative, in the order of their insertion.
    """
    capacity, sizes = 16, Counter[int]()
    for size, value in enumerate(values, start=1):
        bucket = _bucket(value, capacity)
        sizes[bucket] += 1
        if sizes[bucket] > _TREEIFY and capacity < _MIN_TREE_CAPACITY:
            capacity *= 2
            sizes = Counter(_bucket(value, capacity) for value in values[:size])
        if 4 * size > 3 * capacity:
            capacity *= 2
            sizes = Counter(_bucket(value, capacity) for value in values[:size])
    return sorted(values, key=lambda value: _bucket(value, capacity))


def _bucket(value: int, capacity: int) -> int:
    return (value ^ value >> 16) & (capacity - 1)


_FUNCTIONS = {function.lower(): function for function in PartitionFunction} | {
    "murmur2": PartitionFunction.MURMUR
}
_MAY_BE_WHOLE = {DataType.INT, DataType.LONG, DataType.BOOLEAN, DataType.TIMESTAMP, DataType.STRING}
_UNSAFE_KEY = re.compile(r"[^A-Za-z0-9_.-]|^$")
# Servers trim blanks at both ends of a value; if it has commas, also the blanks around each comma.
_UNSAFE_VALUE = re.compile(r"^\s|\s$|\s,|,\s|[\ud800-\udfff\U00010000-\U0010ffff]")


def read_partitionings(
    indexing: JsonMapping, columns: Iterable[Column], target: Target, findings: Findings
) -> dict[str, Partitioning]:
    """Return how columns are partitioned, by column name; refuse settings that are wrong.

    :param indexing: the table config's `tableIndexConfig`; columns that the schema lacks are ignored, as
        Pinot does.
    :param target: the format of the segments.
    """
    configs = (indexing.get("segmentPartitionConfig") or {}).get("columnPartitionMap") or {}
    partitionings: dict[str, Partitioning] = {}
    for column in columns:
        if column.name in configs:
            try:
                partitionings[column.name] = _partitioning(configs[column.name], column, target)
            except ValueError as error:
                problem = f"partition metadata (segmentPartitionConfig): {error}"
                findings.refuse(f"column {column.name}", Feature.PARTITIONS_INVALID, problem)
    return partitionings


def _partitioning(entry: JsonMapping | None, column: Column, target: Target) -> Partitioning:
    """Return the partitioning of one entry of `columnPartitionMap`.

    :raises ValueError: its text says what is wrong.
    """
    if entry is None:
        raise ValueError("no settings")
    name, count = str(entry.get("functionName")), entry.get("numPartitions")
    config = entry.get("functionConfig")
    if (function := _FUNCTIONS.get(name.lower())) is None:
        raise ValueError(f"no function {name}")
    if not column.single_value:
        raise ValueError("multi-value column")
    if function is PartitionFunction.MODULO and column.data_type not in _MAY_BE_WHOLE:
        raise ValueError(f"{function} of {column.data_type}")
    if function is PartitionFunction.MURMUR3 and not target.murmur3:
        raise ValueError("a server older than 1.1 cannot load a segment with Murmur3")
    if not re.fullmatch("[0-9]+", str(count)) or not 0 < int(str(count)) < 2**31:
        raise ValueError(f"numPartitions {count}")
    how = Partitioning(function, int(str(count)), None if config is None else _config(config))
    _check_settings(how)
    return how


def _config(config: JsonMapping) -> tuple[tuple[str, str], ...]:
    if not isinstance(config, Mapping):
        raise ValueError(f"functionConfig {config}")
    entries = []
    for key, value in config.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if _UNSAFE_KEY.search(key) or not isinstance(value, (str, int, bool)) or _UNSAFE_VALUE.search(text):
            raise ValueError(f"functionConfig {key}: {value} would not come back from the segment's metadata")
        entries.append((key, text))
    return tuple(entries)


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
        if missing := {"columnValues", "columnValuesDelimiter"} - dict(how.config or ()).keys():
            raise ValueError(f"no {' and no '.join(sorted(missing))}")
        if how.count != len(how.bounded_values) + 1:
            raise ValueError(f"numPartitions {how.count} for {len(how.bounded_values)} values")
