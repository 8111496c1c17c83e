"""What the metadata of a written segment say of it, read back from the bytes that go into its tar."""

from __future__ import annotations

import re
from typing import Final

from pinot_assets.snapshot.receipt import ColumnFacts, SegmentFacts

_COLUMN: Final = re.compile(r"column\.(.+)\.(dataType|minValue|maxValue)")
_ESCAPED: Final = re.compile(r"\\(?:u([0-9A-F]{4})|(.))")
_NAMED: Final = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}
_LONGEST: Final = 64
_TEXTS: Final = frozenset({"STRING", "JSON", "BYTES"})


def read_facts(properties: bytes) -> SegmentFacts:
    """The facts in a `metadata.properties` (docs/design/segment-format.md#s4).

    :raises ValueError: it does not say how many rows there are, or of a column not what type it has.
    """
    rows: int | None = None
    columns: dict[str, dict[str, str]] = {}
    for line in properties.decode().split("\n"):
        key, _, value = line.partition(
            " ="
        )  # a key's own blanks and = are escaped; an empty value has no blank
        value = value[1:]
        if key == "segment.total.docs":
            rows = int(value)
        elif (found := _COLUMN.fullmatch(_plain(key))) is not None:
            columns.setdefault(found[1], {})[found[2]] = _plain(value)
    if rows is None or any("dataType" not in said for said in columns.values()):
        raise ValueError("metadata.properties does not say what the segment holds")
    return SegmentFacts(rows, tuple(_column(name, said) for name, said in columns.items()))


def _column(name: str, said: dict[str, str]) -> ColumnFacts:
    kind = said["dataType"]
    low, high = said.get("minValue"), said.get("maxValue")
    if kind in _TEXTS:
        # Beginnings have the order of their texts, and are enough of them.
        low, high = (text and text[:_LONGEST] for text in (low, high))
    return ColumnFacts(name, kind, low, high)


def _plain(text: str) -> str:
    return _ESCAPED.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _NAMED.get(found[2], found[2]), text
    )
