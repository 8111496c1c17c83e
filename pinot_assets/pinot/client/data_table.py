"""Reads a DataTable, the bytes in which a Pinot server answers a query.

It reads versions 3 (the servers' default up to 0.12) and 4, and only scalar columns: for `AVG` or
`DISTINCTCOUNT` a server sends a Java object that only Pinot can merge.
Source: `org.apache.pinot.common.datatable.DataTableImplV4`, in 0.11 `DataTableImplV3`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pinot_assets.errors import PinotError

Scalar = int | float | str

_HEADER: Final = struct.Struct(">13i")
_INT: Final = struct.Struct(">i")
_LAYOUTS: Final = {
    "BOOLEAN": "i",
    "INT": "i",
    "JSON": "i",
    "LONG": "q",
    "TIMESTAMP": "q",
    "FLOAT": "f",
    "DOUBLE": "d",
    "STRING": "i",
}
"""The column types that we read, and the format of their cells; a text is stored as its dictionary number."""
_TEXT_TYPES: Final = ("JSON", "STRING")
_UNREAD: Final = "8s"
_INTS: Final = frozenset({5, 6, 7, 8, 15, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29})
_LONGS: Final = frozenset({2, 3, 4, 9, 10, 12, 13, 16, 17, 18, 19, 30, 32, 33, 36, 37})
_BYTES: Final = frozenset({38})
_TEXTS: Final = frozenset({0, 1, 11, 14, 31, 34, 35, 39, 40, 41})
_SEGMENTS_QUERIED: Final = 5
_TOTAL_DOCS: Final = 10
_GROUPS_LIMIT_REACHED: Final = 11
_SEGMENTS_INVALID: Final = 21
_GROUPS_TRIMMED: Final = 39


@dataclass(frozen=True, slots=True)
class DataTable:
    """One server's answer.

    :ivar columns: name and Pinot's type of each.
    :ivar rows: values in the order of the columns; None if we do not read the column's type.
    :ivar exceptions: Pinot's error code → message.
    :ivar segments_queried: number of segments that the server queried; None if it does not report it.
    :ivar total_docs: rows of these segments.
    :ivar groups_cut: whether groups are missing because there were too many; also true if we cannot know it.
    :ivar segments_invalid: number of these segments that a server up to 0.11 left out, since they lack a
        column of the query.
    """

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Scalar | None, ...], ...]
    exceptions: Mapping[int, str]
    segments_queried: int | None
    total_docs: int | None
    groups_cut: bool
    segments_invalid: int = 0


def read_data_table(payload: bytes) -> DataTable:
    """Read a server's answer.

    :raises PinotError: the bytes are not a DataTable, or one of an unknown version.
    """
    try:
        return _read(payload)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
        raise PinotError(
            "a server's answer cannot be read",
            why=f"its {len(payload):,} bytes are not a DataTable: {error!r}",
        ) from error


def _read(payload: bytes) -> DataTable:
    header = _HEADER.unpack_from(payload)
    version, count, width = header[:3]
    if version not in (3, 4):
        raise PinotError(
            f"a server answered with a DataTable of version {version}",
            why="pinot-assets knows versions 3 and 4",
            hint="set pinot.server.datatable.version to 4",
        )
    exceptions, dictionary, schema, fixed, variable = (
        _Cursor(payload, start, start + length)
        for start, length in zip(header[3::2], header[4::2], strict=True)
    )
    texts = _dictionary(dictionary, version)
    columns = _columns(schema) if schema else ()
    if len(columns) != width:
        raise IndexError(f"{len(columns)} columns instead of {width}")
    entries, all_known = _metadata(_Cursor(payload, variable.end, len(payload)))
    return DataTable(
        columns,
        tuple(_rows(fixed, columns, texts, version, count)),
        {exceptions.number(): exceptions.text() for _ in range(exceptions.number())} if exceptions else {},
        _number(entries, _SEGMENTS_QUERIED),
        _number(entries, _TOTAL_DOCS),
        not all_known or any(entries.get(key) == "true" for key in (_GROUPS_LIMIT_REACHED, _GROUPS_TRIMMED)),
        _number(entries, _SEGMENTS_INVALID) or 0,
    )


@dataclass(slots=True)
class _Cursor:
    """A section of the payload, read from its start; false when nothing is left."""

    payload: bytes
    at: int
    end: int

    def __bool__(self) -> bool:
        return self.at < self.end

    def number(self) -> int:
        (value,) = _INT.unpack(self.take(4))
        return int(value)

    def text(self) -> str:
        return self.take(self.number()).decode()

    def take(self, length: int) -> bytes:
        if not 0 <= length <= self.end - self.at:
            raise IndexError(f"{length} bytes at {self.at}, where the section ends at {self.end}")
        self.at += length
        return self.payload[self.at - length : self.at]


def _columns(section: _Cursor) -> tuple[tuple[str, str], ...]:
    width = section.number()
    names = [section.text() for _ in range(width)]
    return tuple((name, section.text()) for name in names)


def _dictionary(section: _Cursor, version: int) -> dict[str | None, dict[int, str]]:
    """Return the texts by their number: for each column in version 3, for all (key None) in 4."""
    if not section:
        return {}
    if version == 3:
        return {
            section.text(): {section.number(): section.text() for _ in range(section.number())}
            for _ in range(section.number())
        }
    return {None: {number: section.text() for number in range(section.number())}}


def _metadata(section: _Cursor) -> tuple[dict[int, int | str], bool]:
    """Return the entries by id, and whether these are all: an unknown id has an unknown length, so the
    reading ends there."""
    entries: dict[int, int | str] = {}
    if section.number() == 0:
        return entries, True
    for _ in range(section.number()):
        key = section.number()
        if key in _INTS:
            entries[key] = section.number()
        elif key in _LONGS:
            entries[key] = int.from_bytes(section.take(8), "big", signed=True)
        elif key in _BYTES:
            entries[key] = section.take(1)[0]
        elif key in _TEXTS:
            entries[key] = section.text()
        else:
            return entries, False
    return entries, True


def _number(entries: Mapping[int, int | str], key: int) -> int | None:
    value = entries.get(key)
    return value if isinstance(value, int) else None


def _rows(
    section: _Cursor,
    columns: tuple[tuple[str, str], ...],
    texts: Mapping[str | None, Mapping[int, str]],
    version: int,
    count: int,
) -> list[tuple[Scalar | None, ...]]:
    if not columns:
        return []
    layouts = _LAYOUTS if version >= 4 else {**_LAYOUTS, "FLOAT": "f4x"}
    layout = struct.Struct(">" + "".join(layouts.get(kind, _UNREAD) for _, kind in columns))
    of_texts = [texts.get(name if version == 3 else None, {}) for name, _ in columns]
    return [
        tuple(map(_value, columns, of_texts, cells))
        for cells in layout.iter_unpack(section.take(layout.size * count))
    ]


def _value(column: tuple[str, str], texts: Mapping[int, str], cell: int | float | bytes) -> Scalar | None:
    if isinstance(cell, bytes):
        return None
    return texts[int(cell)] if column[1] in _TEXT_TYPES else cell
