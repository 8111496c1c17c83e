"""Write the lines of `metadata.properties` (docs/design/segment-format.md#s4).

`read_facts` reads them back from the bytes that go into a segment's tar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pinot_assets.segment.column.types import (
    Column,
    DataType,
    Default,
    FieldType,
    java_double,
    java_float,
    property_line,
    protected_value,
    utf16_key,
    utf16_length,
)
from pinot_assets.segment.config.segment_spec import REFERENCE_SERVER, SegmentSpec
from pinot_assets.segment.indexes.dictionary import bits_per_value
from pinot_assets.segment.values.normalize import Cut
from pinot_assets.segment.values.partition import Partitioning
from pinot_assets.snapshot.receipt import ColumnFacts, SegmentFacts

_MAX_BOUND = 512  # UTF-16 units; a longer minimum or maximum is left out
_NAME_LISTS = {
    FieldType.DIMENSION: "segment.dimension.column.names",
    FieldType.METRIC: "segment.metric.column.names",
    FieldType.DATE_TIME: "segment.datetime.column.names",
}

Lines = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SegmentTimes:
    """Start and end of a segment's time column, in `unit` (a name of Java's `TimeUnit`) of `unit_ms` each."""

    start: int
    end: int
    unit: str
    unit_ms: int


@dataclass(frozen=True, slots=True)
class BuiltColumn:
    """A column with its indexes. Its values are only in its buffers, so they are in memory once.

    :ivar lowest: its smallest value; with `highest` and `cardinality` as `OrderedValues` has them.
    :ivar longest: bytes of the longest dictionary entry, 0 for numbers and without dictionary.
    :ivar entries: values of all rows: their number, or that of the elements of a multi-value column.
    :ivar is_sorted: whether its rows ascend; never for a multi-value column.
    :ivar has_dictionary: whether its forward index holds dictionary ids, not values.
    :ivar longest_row: most elements of a row of a multi-value column, 0 for a single-value one.
    :ivar nulls: rows that were null, whether or not the segment records them.
    :ivar cut: how many values lost something.
    :ivar partitioning: how it is partitioned, if it is.
    :ivar partitions: partitions of its rows, in Pinot's order.
    :ivar buffers: its buffers in `columns.psf`, in the order of that file.
    """

    column: Column
    lowest: Default
    highest: Default
    cardinality: int
    longest: int
    entries: int
    is_sorted: bool
    has_dictionary: bool
    longest_row: int
    nulls: int
    cut: Cut
    partitioning: Partitioning | None
    partitions: Sequence[int]
    buffers: Mapping[str, bytes]


def segment_metadata(
    spec: SegmentSpec,
    name: str,
    table_name: str,
    rows: int,
    time_range: SegmentTimes | None,
    custom: Mapping[str, str],
    columns: Sequence[BuiltColumn],
) -> bytes:
    """Return the bytes of the whole file.

    :param custom: written as `custom.<key>`; Pinot makes of them the custom map of the segment's ZooKeeper
        metadata.
    :param columns: every column, in UTF-16 order of the names.
    """
    lines = [
        # The reader expects the six characters \u0000, which are the escaped form of a NUL.
        ("segment.padding.character", "\0"),
        ("segment.name", name),
        ("segment.table.name", table_name),
    ]
    for field_type, key in _NAME_LISTS.items():
        if names := [built.column.name for built in columns if built.column.field_type is field_type]:
            lines.append((key, ",".join(names)))
    if spec.time_column is not None:
        lines.append(("segment.time.column.name", spec.time_column))
    lines.append(("segment.total.docs", str(rows)))
    if time_range is not None:
        lines += [
            ("segment.start.time", str(time_range.start)),
            ("segment.end.time", str(time_range.end)),
            ("segment.time.unit", time_range.unit),
        ]
    lines += [(f"custom.{key}", custom[key]) for key in sorted(custom, key=utf16_key)]
    for built in columns:
        own_lines = _column_lines(built, rows, spec.min_server < REFERENCE_SERVER)
        lines += [(f"column.{built.column.name}.{key}", value) for key, value in own_lines]
    lines.append(("segment.index.version", "v3"))
    return "".join(property_line(key, value) for key, value in lines).encode()


def _column_lines(built: BuiltColumn, rows: int, old_server: bool) -> Lines:
    column = built.column
    yield from {
        "cardinality": str(built.cardinality),
        "totalDocs": str(rows),
        "dataType": column.data_type.value,
        "bitsPerElement": str(bits_per_value(built.cardinality)),
        "lengthOfEachEntry": str(built.longest),
        "columnType": column.field_type.value,
        "isSorted": str(built.is_sorted).lower(),
        "hasDictionary": str(built.has_dictionary).lower(),
        "isSingleValues": str(column.single_value).lower(),
        "maxNumberOfMultiValues": str(built.longest_row),
        "totalNumberOfEntries": str(built.entries),
        "isAutoGenerated": "false",
    }.items()
    if column.data_type.is_text or column.data_type is DataType.BYTES:
        yield "schemaMaxLength", str(column.max_length)
        if column.strategy is not None:
            yield "schemaMaxLengthExceedStrategy", column.strategy.value
    if built.partitioning is not None:
        yield "partitionFunction", built.partitioning.function.value
        yield "numPartitions", str(built.partitioning.count)
        yield "partitionValues", ",".join(map(str, built.partitions))
        for key, value in built.partitioning.config or ():
            yield f"partitionFunctionConfig.{key}", value
    if column.format is not None and column.granularity is not None:
        yield "datetimeFormat", column.format
        yield "datetimeGranularity", column.granularity
    yield from _bound_lines(built, old_server)
    default = value_text(column.data_type, column.default)
    protected = protected_value(default) if column.data_type.is_text else default
    if protected is not None:
        yield "defaultNullValue", protected


def _bound_lines(built: BuiltColumn, old_server: bool) -> Lines:
    """Yield minimum and maximum, unless they are too long or cannot be written."""
    column = built.column
    bounds = {
        "minValue": value_text(column.data_type, built.lowest),
        "maxValue": value_text(column.data_type, built.highest),
    }
    protect = protected_value if column.data_type.is_text else str
    written = {
        key: protected
        for key, text in bounds.items()
        if utf16_length(text) <= _MAX_BOUND and (protected := protect(text)) is not None
    }
    if not written:
        yield "minMaxValueInvalid", "true"
    for key, protected in written.items():
        # A server before 1.5 reads the protecting NULs as part of the value, and would prune wrongly
        # (docs/design/segment-format.md#s11, trap 32).
        if not (old_server and protected != bounds[key]):
            yield key, protected


def value_text(data_type: DataType, value: Default) -> str:
    """Return a stored value as Java writes it."""
    if data_type is DataType.FLOAT:
        return java_float(float(value))
    if data_type is DataType.DOUBLE:
        return java_double(float(value))
    # `str` of a Decimal follows the same standard as Java's BigDecimal.
    return value.hex() if isinstance(value, bytes) else str(value)


_COLUMN: Final = re.compile(r"column\.(.+)\.(dataType|minValue|maxValue)")
_ESCAPED: Final = re.compile(r"\\(?:u([0-9A-F]{4})|(.))")
_NAMED: Final = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}
_LONGEST: Final = 64
_TEXTS: Final = frozenset({"STRING", "JSON", "BYTES"})


def read_facts(properties: bytes) -> SegmentFacts:
    """Return the facts in a `metadata.properties` (docs/design/segment-format.md#s4).

    :raises ValueError: the number of rows is missing, or a column's type.
    """
    rows: int | None = None
    columns: dict[str, dict[str, str]] = {}
    for line in properties.decode().split("\n"):
        # Blanks and = in a key are escaped. A line with an empty value ends after the =, without a blank.
        key, _, value = line.partition(" =")
        value = value[1:]
        if key == "segment.total.docs":
            rows = int(value)
        elif (match := _COLUMN.fullmatch(_plain(key))) is not None:
            columns.setdefault(match[1], {})[match[2]] = _plain(value)
    if rows is None or any("dataType" not in said for said in columns.values()):
        raise ValueError("metadata.properties does not say what the segment holds")
    return SegmentFacts(rows, tuple(_column(name, said) for name, said in columns.items()))


def _column(name: str, said: dict[str, str]) -> ColumnFacts:
    kind = said["dataType"]
    low, high = said.get("minValue"), said.get("maxValue")
    if kind in _TEXTS:
        # Prefixes sort like their texts, and suffice here.
        low, high = (text and text[:_LONGEST] for text in (low, high))
    return ColumnFacts(name, kind, low, high)


def _plain(text: str) -> str:
    return _ESCAPED.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else _NAMED.get(match[2], match[2]), text
    )
