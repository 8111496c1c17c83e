"""What a single value is, and what values of two kinds are together.

A kind is only given where the readers (`pinot_assets.ingest`) take every such value for that type: what Pinot
could be told is never wider than what a run can build.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from pinot_assets.core.untrusted import read_json
from pinot_assets.ingest.formats.json_values import Real
from pinot_assets.segment.functions.time_format import PATTERNS, parse_date


class ValueKind(StrEnum):
    """What the values of a column are, in Pinot's words where it has one."""

    NOTHING = "NOTHING"
    """There was no value."""
    BOOLEAN = "BOOLEAN"
    INT = "INT"
    LONG = "LONG"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    BIG_DECIMAL = "BIG_DECIMAL"
    TIMESTAMP = "TIMESTAMP"
    STRING = "STRING"
    JSON = "JSON"
    BYTES = "BYTES"
    NESTED = "NESTED"
    """Objects of a format that knows them; of JSON's column type, which takes any value of such a file."""
    DATE = "DATE"
    """A day of a format that knows types, which no reader makes anything of by itself."""
    UNKNOWN = "UNKNOWN"
    """Nothing of Pinot's."""


INTEGERS: Final = frozenset((ValueKind.INT, ValueKind.LONG))
_EXACT: Final = INTEGERS | {ValueKind.BIG_DECIMAL}
FRACTIONS: Final = frozenset((ValueKind.FLOAT, ValueKind.DOUBLE, ValueKind.BIG_DECIMAL))
NUMBERS: Final = INTEGERS | FRACTIONS

INT_ROOM: Final = 1 << 31
_LONG_ROOM: Final = 1 << 63
# A text that begins with a zero or a plus is a code (postal, article, phone): a number would lose it.
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
_FRACTION: Final = re.compile(
    r"[+-]?((0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][+-]?[0-9]{1,3})?", re.ASCII
)
_INSTANT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
    r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS_AT_START: Final = re.compile(r"[0-9]{4}")


def of_cell(text: str) -> ValueKind:
    """A cell of a format that knows text alone (csv).

    :param text: not empty.
    """
    trimmed = text.strip()
    if trimmed.lower() in ("true", "false"):
        return ValueKind.BOOLEAN
    if _INTEGER.fullmatch(trimmed):
        return _of_integer(int(trimmed)) if len(trimmed) < 21 else ValueKind.STRING
    if _FRACTION.fullmatch(trimmed):
        return ValueKind.DOUBLE
    if trimmed[:1] in "{[" and _is_json(trimmed):
        return ValueKind.JSON
    return of_text(trimmed)


def of_text(text: str) -> ValueKind:
    """A text of a format that knows other types, too: digits were meant as text there."""
    return ValueKind.TIMESTAMP if _INSTANT.fullmatch(text) and _is_moment(text) else ValueKind.STRING


def of_member(value: Any) -> ValueKind:
    """A single value of a JSON document, as `build.json_values.parsed` gives it; not null."""
    match value:
        case bool():
            return ValueKind.BOOLEAN
        case int():
            return _of_integer(value)
        case Real() | float():
            return ValueKind.DOUBLE
        case str():
            return of_text(value)
    return ValueKind.NESTED


def together(one: ValueKind, other: ValueKind) -> ValueKind:
    """The kind that takes the values of both.

    Commutative, associative, and `together(k, k)` is k.
    """
    if one is other or other is ValueKind.NOTHING:
        return one
    if one is ValueKind.NOTHING:
        return other
    both = frozenset((one, other))
    for strongest in (ValueKind.UNKNOWN, ValueKind.NESTED):
        if strongest in both:
            return strongest
    if both <= INTEGERS:
        return ValueKind.LONG
    if both <= _EXACT:
        return ValueKind.BIG_DECIMAL
    if both <= NUMBERS:
        return ValueKind.DOUBLE
    return ValueKind.STRING


def patterns_of(text: str) -> frozenset[str]:
    """The date patterns that a text fits, of those that segments are built with (`time_format.PATTERNS`)."""
    if not _DIGITS_AT_START.match(text):
        return frozenset()
    return frozenset(pattern for pattern in PATTERNS if _fits(text, pattern))


def moment_ms(text: str) -> int:
    """Milliseconds since 1970 of a text that `of_text` takes for a moment.

    :raises ValueError: it is none.
    """
    moment = datetime.fromisoformat(re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", text))
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _fits(text: str, pattern: str) -> bool:
    try:
        parse_date(text, pattern)
    except ValueError:
        return False
    return True


def _of_integer(value: int) -> ValueKind:
    if -INT_ROOM <= value < INT_ROOM:
        return ValueKind.INT
    # Longer ones are names of things, and no type of Pinot's counts so far.
    return ValueKind.LONG if -_LONG_ROOM <= value < _LONG_ROOM else ValueKind.STRING


def _is_json(text: str) -> bool:
    try:
        return isinstance(read_json(text), dict | list)
    except ValueError:
        return False


def _is_moment(text: str) -> bool:
    try:
        moment_ms(text)
    except ValueError:
        return False
    return True
