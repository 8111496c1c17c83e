"""What a single value is, which kind takes the values of two kinds, and what was seen of one column, in one
file or in several.

A kind is only given if the readers (`pinot_assets.ingest`) accept every such value for that type: the
proposed type is never wider than what a run can build.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial, reduce
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.core.untrusted import read_json
from pinot_assets.ingest.cast.casts import plain_column
from pinot_assets.ingest.formats.json_values import Real
from pinot_assets.segment.functions.time_format import PATTERNS, parse_date

T = TypeVar("T")


class ValueKind(StrEnum):
    """The kind of a column's values, in Pinot's words where it has one."""

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
    """Objects of a format that has them, or values of a JSON column type, which takes any value of a file."""
    DATE = "DATE"
    """A day of a format that has types; no reader converts it by itself."""
    UNKNOWN = "UNKNOWN"
    """Pinot has no type for it."""


INTEGERS: Final = frozenset((ValueKind.INT, ValueKind.LONG))
_EXACT: Final = INTEGERS | {ValueKind.BIG_DECIMAL}
FRACTIONS: Final = frozenset((ValueKind.FLOAT, ValueKind.DOUBLE, ValueKind.BIG_DECIMAL))
NUMBERS: Final = INTEGERS | FRACTIONS

INT_ROOM: Final = 1 << 31
_LONG_ROOM: Final = 1 << 63
# A text that begins with a zero or a plus is a code (postal, article, phone): as a number it would lose it.
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
    """Return the kind of a cell in a format that has only text (csv).

    :param text: not empty.
    """
    trimmed = text.strip()
    if trimmed.lower() in ("true", "false"):
        return ValueKind.BOOLEAN
    if _INTEGER.fullmatch(trimmed):
        return _of_integer(int(trimmed)) if len(trimmed) < 21 else ValueKind.STRING
    if _FRACTION.fullmatch(trimmed):
        return ValueKind.DOUBLE
    if trimmed[:1] in "{[" and _holds(read_json, trimmed):
        return ValueKind.JSON
    return of_text(trimmed)


def of_text(text: str) -> ValueKind:
    """Return the kind of a text in a format that has other types, too: its digits were meant as text."""
    return ValueKind.TIMESTAMP if _INSTANT.fullmatch(text) and _holds(epoch_ms, text) else ValueKind.STRING


def of_member(value: object) -> ValueKind:
    """Return the kind of a JSON value, not null, as `ingest.formats.json_values.parse_json` reads it."""
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
    """Return the kind that takes the values of both kinds.

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
    """Return the date patterns that a text fits, of those for building segments (`time_format.PATTERNS`)."""
    if not _DIGITS_AT_START.match(text):
        return frozenset()
    return frozenset(p for p in PATTERNS if _holds(partial(parse_date, pattern=p), text))


def epoch_ms(text: str) -> int:
    """Return the milliseconds since 1970 of a text that `of_text` takes for a moment.

    :raises ValueError: the text is none.
    """
    moment = datetime.fromisoformat(re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", text))
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _of_integer(value: int) -> ValueKind:
    if -INT_ROOM <= value < INT_ROOM:
        return ValueKind.INT
    # Longer ones are names of things, and no integer type of Pinot goes up to them.
    return ValueKind.LONG if -_LONG_ROOM <= value < _LONG_ROOM else ValueKind.STRING


def _holds(read: Callable[[str], object], text: str) -> bool:
    """Whether `read` can read a text."""
    try:
        read(text)
    except ValueError:
        return False
    return True


PARTS: Final = ";"
"""Pinot's csv reader splits the cells of a multi-value column at this mark."""
LISTS: Final = 0.05
"""A column is multi-value if at least this share of its cells has the mark."""
_DAY_MS: Final = 86_400_000
_TOKEN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:+")


@dataclass(frozen=True, slots=True)
class Example:
    """The first value of one kind.

    :ivar text: the value, shortened for people.
    :ivar row: its number in the file, from 1; a header is no row.
    :ivar file: the file's key; empty until it is known.
    """

    text: str
    row: int
    file: str = ""


@dataclass(frozen=True, slots=True)
class SampledColumn:
    """What was seen of one column of a sample.

    :ivar rows: number of rows looked at.
    :ivar nulls: number of those rows without a value.
    :ivar values: the different values as texts, of single-value columns that can be compared.
    :ivar repeats: whether a value occurred twice.
    :ivar low: the smallest number, `high` the largest; None without numbers.
    :ivar earliest: the first moment, in milliseconds since 1970, `latest` the last; None without moments.
    :ivar patterns: date patterns that all texts (or whole numbers) fit; None if none was looked for.
    :ivar marked: number of cells of a csv file that may be lists: words with `;` between them.
    :ivar kinds: how many values have each kind, of single-value columns of formats without types.
    :ivar examples: the first value of each of these kinds.
    """

    kind: ValueKind
    multi: bool = False
    rows: int = 0
    nulls: int = 0
    values: frozenset[str] = frozenset()
    repeats: bool = False
    low: float | None = None
    high: float | None = None
    earliest: int | None = None
    latest: int | None = None
    patterns: frozenset[str] | None = None
    marked: int = 0
    kinds: Mapping[ValueKind, int] = field(default_factory=dict)
    examples: Mapping[ValueKind, Example] = field(default_factory=dict)

    @property
    def unique(self) -> bool:
        """Whether no value is missing and none occurs twice."""
        return self.rows > 1 and not (self.nulls or self.repeats or self.multi) and bool(self.values)

    def and_of(self, other: SampledColumn) -> SampledColumn:
        """Return both as one column of one table."""
        bounds = [b for b in (self.low, other.low, self.high, other.high) if b is not None]
        times = [t for t in (self.earliest, other.earliest, self.latest, other.latest) if t is not None]
        return SampledColumn(
            kind=together(self.kind, other.kind),
            multi=self.multi or other.multi,
            rows=self.rows + other.rows,
            nulls=self.nulls + other.nulls,
            values=self.values | other.values,
            repeats=self.repeats or other.repeats or not self.values.isdisjoint(other.values),
            low=min(bounds, default=None),
            high=max(bounds, default=None),
            earliest=min(times, default=None),
            latest=max(times, default=None),
            patterns=self._patterns_with(other),
            marked=self.marked + other.marked,
            kinds=Counter(self.kinds) + Counter(other.kinds),
            examples={**other.examples, **self.examples},
        )

    def in_file(self, key: str) -> SampledColumn:
        """Return the column with the file in its examples."""
        return replace(self, examples={k: replace(e, file=key) for k, e in self.examples.items()})

    def _patterns_with(self, other: SampledColumn) -> frozenset[str] | None:
        if other.kind is ValueKind.NOTHING:
            return self.patterns
        if self.kind is ValueKind.NOTHING:
            return other.patterns
        if self.patterns is None and other.patterns is None:
            return None
        # Values for which no pattern was looked for fit none: a reader of dates would refuse them.
        return (self.patterns or frozenset()) & (other.patterns or frozenset())


def absent(rows: int) -> SampledColumn:
    """Return a column that a file with so many rows lacks."""
    return SampledColumn(ValueKind.NOTHING, rows=rows, nulls=rows)


def of_cells(cells: Sequence[str], nulls: Collection[str]) -> SampledColumn:
    """Return what was seen of a column in a format that has only text.

    :param nulls: cells that mean "no value".
    """
    texts = [cell for cell in cells if cell not in nulls]
    marked = _lists(texts)
    is_list = marked > 0 and marked >= len(texts) * LISTS
    singles = [part for text in texts for part in text.split(PARTS) if part] if is_list else texts
    column = _singles(singles, of_cell)
    if not is_list:
        column = _with_kinds(column, [None if cell in nulls else cell for cell in cells], of_cell)
    return replace(column, multi=is_list, rows=len(cells), nulls=len(cells) - len(texts), marked=marked)


def of_arrow(array: pa.ChunkedArray) -> SampledColumn:
    """Return what was seen of a column in a format that has types."""
    if getattr(array.type, "extension_name", "") == "arrow.json":
        return SampledColumn(ValueKind.JSON, rows=len(array), nulls=array.null_count)
    array = plain_column(array)
    arrow = array.type
    is_list = pt.is_list(arrow) or pt.is_large_list(arrow)
    kind = _of_arrow_type(arrow.value_type if is_list else arrow)
    if kind in (ValueKind.NESTED, ValueKind.UNKNOWN, ValueKind.DATE, ValueKind.BYTES, ValueKind.TIMESTAMP):
        # Python's calendar does not cover all of their values, and no further check needs the values.
        multi = is_list and kind is not ValueKind.NESTED
        column = SampledColumn(kind, multi, len(array), array.null_count)
        return column if multi else _with_times(column, array)
    values = array.to_pylist()
    if kind is ValueKind.STRING:
        # A text keeps its type, except for dates: a reader of typed files reads times from text, too.
        column = of_members(values, lambda value: of_text(value) if value else ValueKind.STRING)
        return replace(column, multi=is_list)  # by its type: a list without any value is one, too
    return replace(of_members(values, lambda _: kind), kind=kind, multi=is_list)


def _with_times(column: SampledColumn, array: pa.ChunkedArray) -> SampledColumn:
    """Return the column with its earliest and latest day or moment, by Arrow's numbers for every year."""
    kind = array.type
    if pt.is_timestamp(kind):
        divisor, factor = {"s": (1, 1000), "ms": (1, 1), "us": (1000, 1), "ns": (1_000_000, 1)}[kind.unit]
        numbers = array.cast(pa.int64())
    elif pt.is_date(kind):
        divisor, factor = (1, _DAY_MS) if pt.is_date32(kind) else (1, 1)
        numbers = array.cast(pa.int32() if pt.is_date32(kind) else pa.int64())
    else:
        return column
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is None:
        return column
    earliest, latest = (bound * factor // divisor for bound in (bounds["min"], bounds["max"]))
    return replace(column, earliest=earliest, latest=latest)


def of_members(values: Sequence[T], kind_of: Callable[[T], ValueKind] = of_member) -> SampledColumn:
    """Return what was seen of a column whose values may be lists.

    :param values: of a member of JSON documents, or of a column of Parquet, Avro or ORC; None if a value is
        missing.
    """
    there = [value for value in values if value is not None]
    is_list = any(isinstance(value, list) for value in there)
    if not is_list:
        column = replace(_singles(there, kind_of), rows=len(values), nulls=len(values) - len(there))
        return _with_kinds(column, values, kind_of)
    items = [
        item
        for value in there
        for item in (value if isinstance(value, list) else [value])
        if item is not None
    ]
    column = _singles(items, lambda one: ValueKind.NESTED if isinstance(one, list | dict) else kind_of(one))
    multi = column.kind is not ValueKind.NESTED
    return replace(column, multi=multi, rows=len(values), nulls=len(values) - len(there))


def _singles(values: Sequence[T], kind_of: Callable[[T], ValueKind]) -> SampledColumn:
    kind = reduce(together, map(kind_of, values), ValueKind.NOTHING)
    texts = [
        value if isinstance(value, str) else str(value) for value in values if isinstance(value, Hashable)
    ]
    different = frozenset(texts)
    # int() alone accepts fewer characters as blanks than strip().
    numbers = [int(text.strip()) for text in texts] if kind in INTEGERS else []
    patterns = _patterns(different) if kind in INTEGERS | {ValueKind.STRING} else None
    times = _times(different, kind, patterns)
    return SampledColumn(
        kind=kind,
        rows=len(values),
        values=different,
        repeats=len(different) < len(texts),
        low=min(numbers, default=None),
        high=max(numbers, default=None),
        earliest=min(times, default=None),
        latest=max(times, default=None),
        patterns=patterns,
    )


_SHOWN: Final = 40
"""Characters of a value that are shown."""


def _with_kinds(
    column: SampledColumn, values: Sequence[T | None], kind_of: Callable[[T], ValueKind]
) -> SampledColumn:
    """Return the column with the number of values of each kind, if texts among others made it STRING.

    :param values: of all rows, None for no value.
    """
    if column.kind is not ValueKind.STRING:
        return replace(column, kinds={column.kind: len(values) - sum(value is None for value in values)})
    kinds, examples = Counter[ValueKind](), dict[ValueKind, Example]()
    for row, value in enumerate(values, start=1):
        if value is not None:
            kind = kind_of(value)
            kinds[kind] += 1
            if kind not in examples:
                text = str(value)
                examples[kind] = Example(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…", row)
    return replace(column, kinds=kinds, examples=examples)


def _patterns(texts: frozenset[str]) -> frozenset[str] | None:
    """Return the patterns that all texts fit; the search stops when none is left."""
    left: frozenset[str] | None = None
    for text in texts:
        fitting = patterns_of(text.strip())
        left = fitting if left is None else left & fitting
        if not left:
            break
    return left


def _times(texts: frozenset[str], kind: ValueKind, patterns: frozenset[str] | None) -> list[int]:
    """Return the moments that the texts mean, if each of them means one."""
    if kind is ValueKind.TIMESTAMP:
        return [epoch_ms(text.strip()) for text in texts]
    if not patterns:
        return []
    pattern = max(sorted(patterns), key=len)
    return [parse_date(text.strip(), pattern) for text in texts]


def _lists(texts: Sequence[str]) -> int:
    """Count the cells with the mark, if all cells are plain words but for it; addresses are no lists."""
    if not all(_TOKEN.issuperset(text.replace(PARTS, "")) and "://" not in text for text in texts):
        return 0
    return sum(PARTS in text for text in texts)


def _of_arrow_type(kind: pa.DataType) -> ValueKind:
    for holds, value_kind in (
        (pt.is_null, ValueKind.NOTHING),
        (pt.is_boolean, ValueKind.BOOLEAN),
        (lambda k: pt.is_integer(k) and k.bit_width <= 32 and k != pa.uint32(), ValueKind.INT),
        (pt.is_integer, ValueKind.LONG),
        (pt.is_float16, ValueKind.FLOAT),
        (pt.is_float32, ValueKind.FLOAT),
        (pt.is_floating, ValueKind.DOUBLE),
        (pt.is_decimal, ValueKind.BIG_DECIMAL),
        (lambda k: pt.is_string(k) or pt.is_large_string(k), ValueKind.STRING),
        (lambda k: pt.is_binary(k) or pt.is_large_binary(k) or pt.is_fixed_size_binary(k), ValueKind.BYTES),
        (pt.is_timestamp, ValueKind.TIMESTAMP),
        (pt.is_date, ValueKind.DATE),
        (lambda k: pt.is_nested(k) and not pt.is_union(k), ValueKind.NESTED),
    ):
        if holds(kind):
            return value_kind
    return ValueKind.UNKNOWN
