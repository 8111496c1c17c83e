"""Write the lines of `metadata.properties` (docs/design/segment-format.md#s4).

`read_facts` reads them back from the bytes that go into a segment's tar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pinot_assets.segment.column.types import FieldType, property_line, utf16_key
from pinot_assets.segment.config.segment_spec import SegmentSpec
from pinot_assets.segment.write.column_lines import BuiltColumn, column_lines
from pinot_assets.snapshot.receipt import ColumnFacts, SegmentFacts

_NAME_LISTS = {
    FieldType.DIMENSION: "segment.dimension.column.names",
    FieldType.METRIC: "segment.metric.column.names",
    FieldType.DATE_TIME: "segment.datetime.column.names",
}


@dataclass(frozen=True, slots=True)
class SegmentTimes:
    """Start and end of a segment's time column, in `unit` (a name of Java's `TimeUnit`) of `unit_ms` each."""

    start: int
    end: int
    unit: str
    unit_ms: int


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
        own_lines = column_lines(built, rows, spec.target)
        lines += [(f"column.{built.column.name}.{key}", value) for key, value in own_lines]
    lines.append(("segment.index.version", "v3"))
    return "".join(property_line(key, value) for key, value in lines).encode()


_COLUMN: Final = re.compile(r"column\.(.+)\.(dataType|minValue|maxValue)")
_ENDS: Final = (".dataType", ".minValue", ".maxValue")
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
        elif key.endswith(_ENDS) and (match := _COLUMN.fullmatch(_plain(key))) is not None:
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
