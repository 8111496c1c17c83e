"""What a column is: its data type, its role in the schema, and how it is stored.

The data types are those that the writer knows: their Arrow types, their form in Pinot, their value for null.
A column is stored with a dictionary or raw (docs/design/segment-format.md#s6-2, #s6-3 and #s7).

Texts are written as Java writes them: UTF-16 order, floating point numbers, lines of a properties file.
`metadata.properties` and `index_map` have the form that commons-configuration2 gives Pinot's values after two
saves (docs/design/segment-format.md#s4-2); floating point texts are those of `Double.toString` on JDK 19 and
later (docs/design/segment-format.md#s4-5).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from pinot_assets.segment.column.decimals import parse_decimal

_NAMED = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 92: "\\\\"}
# As the class of all others: Python compiles `\u0080-\uffff` in five milliseconds.
_ESCAPED = re.compile(r"[^ -\[\]-\x7f\U00010000-\U0010ffff]")
UNSAFE_VALUE = re.compile(r"[,\U00010000-\U0010ffff]|\$\{")
"""Finds what a value must not hold: a comma makes it a list, `${` is interpolated, and commons-configuration2
writes a character beyond U+FFFF with five hex digits and reads back four."""

_KEY_ESCAPED = re.compile(r"[ \t\f=:\\]")
_SURROGATE = re.compile(r"[\ud800-\udfff\U00010000-\U0010ffff]")


def utf16_key(text: str) -> bytes:
    """Return a sort key that orders texts by UTF-16 code unit, as `String.compareTo` does."""
    return text.encode("utf-16-be", "surrogatepass")


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 units, as `String.length` counts."""
    return len(text) if text.isascii() else len(text) + sum(unit > "\uffff" for unit in text)


def cut_utf16(text: str, units: int) -> str:
    """Return the first `units` UTF-16 units; half a surrogate pair may be left at the end, as in Java."""
    return text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "surrogatepass")


def _escape_unit(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _NAMED.get(code) or f"\\u{code:04X}"


def property_line(key: str, value: str) -> str:
    """Return one line of `metadata.properties`, line end included.

    Source: docs/design/segment-format.md#s4-2, rules 1 to 3.
    """
    line = f"{escaped_key(key)} = {_ESCAPED.sub(_escape_unit, value)}"
    return line.rstrip(" ") + "\n"


@lru_cache(1 << 13)
def escaped_key(key: str) -> str:
    """Return an escaped key of `metadata.properties` or `index_map` (docs/design/segment-format.md#s2)."""
    return _KEY_ESCAPED.sub(lambda match: "\\" + match[0], key)


def protected_value(text: str) -> str | None:
    """Return a data value made safe for a properties file, None if it cannot be written.

    Source: `CommonsConfigurationUtils.replaceSpecialCharacterInPropertyValue`
    (docs/design/segment-format.md#s4-2, rule 4).
    """
    if _SURROGATE.search(text):
        return None
    if text.startswith(" "):
        text = "\0" + text
    if text.endswith(" "):
        text += "\0"
    return text.replace(",", "\0\0")


def java_double(value: float) -> str:
    """Return the text of `Double.toString` on JDK 19 and later."""
    return _java_real(np.float64(value))


def java_float(value: float) -> str:
    """Return the text of `Float.toString` on JDK 19 and later: the shortest that round-trips in 32 bits."""
    return _java_real(np.float32(value))


def _java_real(value: np.floating) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if np.signbit(value) else ""
    if value == 0:
        return sign + "0.0"
    digits, exponent = _shortest(abs(value))
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: np.floating) -> tuple[str, int]:
    """Return the shortest digits that round-trip, and the exponent of the first one.

    Java wants at least two digits. So the closest two-digit decimal replaces a single digit if it
    round-trips, too (4.9E-324, not 5.0E-324).
    """
    digits, exponent = _split(np.format_float_scientific(value, unique=True, trim="-"))
    if len(digits) == 1:
        two = f"{float(value):.1e}"
        if type(value)(two) == value:
            digits, exponent = _split(two)
    return digits, exponent


def _split(scientific: str) -> tuple[str, int]:
    mantissa, _, exponent = scientific.partition("e")
    return mantissa.replace(".", "").rstrip("0"), int(exponent)


class DataType(StrEnum):
    """Pinot's logical data types that the writer supports."""

    INT = "INT"
    LONG = "LONG"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BOOLEAN = "BOOLEAN"
    TIMESTAMP = "TIMESTAMP"
    JSON = "JSON"
    BYTES = "BYTES"
    BIG_DECIMAL = "BIG_DECIMAL"

    @property
    def is_text(self) -> bool:
        """Whether it is stored as UTF-8 text (Pinot's stored type STRING)."""
        return self in (DataType.STRING, DataType.JSON)


class FieldType(StrEnum):
    """The role of a column in the Pinot schema."""

    DIMENSION = "DIMENSION"
    METRIC = "METRIC"
    DATE_TIME = "DATE_TIME"


@dataclass(frozen=True)
class Storage:
    """The types of one data type's values, in Arrow and in a segment.

    :ivar arrow: the Arrow type that `SegmentSpec.arrow_schema` names.
    :ivar stored: Arrow type of the stored values (BOOLEAN is stored as INT, TIMESTAMP as LONG millis); None
        for BIG_DECIMAL, for which Arrow has no type.
    :ivar disk: numpy type of one stored value, big-endian; None for values of variable width.
    :ivar kinds: predicates for the Arrow types that can be cast to it without guessing.
    """

    arrow: pa.DataType
    stored: pa.DataType | None
    disk: np.dtype[np.generic] | None
    kinds: tuple[Callable[[pa.DataType], bool], ...]


_NUMBERS = (pt.is_integer, pt.is_floating)
_TEXTS = (pt.is_string, pt.is_large_string, pt.is_string_view)
_INSTANTS = (pt.is_timestamp, pt.is_date)
_BYTES = (pt.is_binary, pt.is_large_binary, pt.is_binary_view, pt.is_fixed_size_binary)
STORAGE: dict[DataType, Storage] = {
    DataType.INT: Storage(pa.int32(), pa.int32(), np.dtype(">i4"), _NUMBERS),
    DataType.LONG: Storage(pa.int64(), pa.int64(), np.dtype(">i8"), _NUMBERS),
    DataType.FLOAT: Storage(pa.float32(), pa.float32(), np.dtype(">f4"), _NUMBERS),
    DataType.DOUBLE: Storage(pa.float64(), pa.float64(), np.dtype(">f8"), _NUMBERS),
    DataType.STRING: Storage(pa.string(), pa.large_string(), None, _TEXTS),
    DataType.BOOLEAN: Storage(pa.bool_(), pa.int32(), np.dtype(">i4"), (pt.is_boolean,)),
    DataType.TIMESTAMP: Storage(pa.timestamp("ms", "UTC"), pa.int64(), np.dtype(">i8"), _INSTANTS),
    DataType.JSON: Storage(pa.string(), pa.large_string(), None, _TEXTS),
    DataType.BYTES: Storage(pa.binary(), pa.large_binary(), None, _BYTES),
    # Arrow's decimals have one scale for the whole column; text loses nothing.
    DataType.BIG_DECIMAL: Storage(pa.string(), None, None, (pt.is_integer, pt.is_decimal, *_TEXTS)),
}

Default = int | float | str | bytes | Decimal

# The values that replace null if the schema names no other (`FieldSpec`, docs/design/segment-format.md#s5-3).
_NULL: dict[DataType, Default] = {
    DataType.INT: -(2**31),
    DataType.LONG: -(2**63),
    DataType.FLOAT: float("-inf"),
    DataType.DOUBLE: float("-inf"),
    DataType.STRING: "null",
    DataType.BOOLEAN: 0,
    DataType.TIMESTAMP: 0,
    DataType.JSON: "null",
    DataType.BYTES: b"",
    DataType.BIG_DECIMAL: Decimal(0),
}
_METRIC_NULL: dict[DataType, Default] = {
    DataType.INT: 0,
    DataType.LONG: 0,
    DataType.FLOAT: 0.0,
    DataType.DOUBLE: 0.0,
    DataType.BYTES: b"",
    DataType.BIG_DECIMAL: Decimal(0),
}
METRIC_TYPES = frozenset(_METRIC_NULL)
"""The types that a METRIC may have (`Schema.validate`)."""


def implicit_default(data_type: DataType, field_type: FieldType) -> Default:
    """Return the value that replaces null in a column whose schema sets no `defaultNullValue`."""
    return _METRIC_NULL[data_type] if field_type is FieldType.METRIC else _NULL[data_type]


_BITS = {DataType.INT: 31, DataType.LONG: 63, DataType.TIMESTAMP: 63}


def parse_default(data_type: DataType, value: object) -> Default:
    """Return the stored form of a schema's `defaultNullValue` (`FieldSpec.DataType.convert`).

    :raises ValueError: Pinot would not accept the value, or its meaning depends on the server's time zone.
    """
    text = _json_text(value)
    if data_type.is_text:
        return text
    if data_type is DataType.BYTES:
        if not re.fullmatch(r"([0-9a-fA-F]{2})*", text):
            raise ValueError("not an even number of hex digits")
        return bytes.fromhex(text)
    if data_type is DataType.BIG_DECIMAL:
        return parse_decimal(text)
    if data_type is DataType.BOOLEAN:
        return int(text == "1" or text.lower() == "true")
    if data_type in _BITS:
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError("not an integer")
        number, limit = int(text), 2 ** _BITS[data_type]
        if not -limit <= number < limit:
            raise ValueError("out of range")
        return number
    # Arrow parses straight to the column's width, as Java does; through a double, some texts round twice.
    real = float(pa.scalar(text).cast(STORAGE[data_type].stored).as_py())
    if np.isnan(real) or (real == 0.0 and np.signbit(real)):
        raise ValueError("NaN and -0.0 never reach a dictionary")
    return real


def _json_text(value: object) -> str:
    """Return a JSON value as Jackson's `asText` does."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return java_double(value)
        case int() | str():
            return str(value)
    raise ValueError("neither text nor number")


class Codec(StrEnum):
    """How a chunk of a raw forward index is compressed (`ChunkCompressionType`)."""

    PASS_THROUGH = "PASS_THROUGH"
    SNAPPY = "SNAPPY"
    ZSTANDARD = "ZSTANDARD"
    LZ4 = "LZ4"
    GZIP = "GZIP"


@dataclass(frozen=True, slots=True)
class RawFormat:
    """How a forward index without dictionary is written (`ForwardIndexConfig`).

    :ivar version: version of the file that is really written, after all fall-backs.
    :ivar derive_docs: whether `target_bytes` decides the rows of a chunk in versions 2 and 3.
    """

    codec: Codec = Codec.LZ4
    version: int = 4
    derive_docs: bool = False
    target_bytes: int = 1 << 20
    target_docs: int = 1000


@dataclass(frozen=True, slots=True)
class Optimize:
    """When a column with dictionary is stored raw after all (`optimizeDictionary`).

    :ivar size_ratio: fixed width: raw if its bytes are at most this share of those with a dictionary.
    :ivar cardinality_ratio: variable width: raw if distinct values are at least this share of the rows.
    """

    size_ratio: float = 0.85
    cardinality_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Encoding:
    """How one column is stored.

    :ivar optimize: when the values decide about the dictionary, None if they never do.
    :ivar variable_length: whether a dictionary of variable width is asked for.
    :ivar by_length: whether texts of different lengths get one, as BYTES and BIG_DECIMAL always do.
    :ivar entry_dictionary: whether whole rows of a multi-value column get a dictionary, too.
    :ivar raw: how a raw forward index is written.
    :ivar raw_forward: whether the forward index is raw although there is a dictionary, for other indexes.
    """

    has_dictionary: bool = True
    optimize: Optimize | None = None
    variable_length: bool = False
    entry_dictionary: bool = False
    raw: RawFormat = field(default_factory=RawFormat)
    raw_forward: bool = False
    by_length: bool = False


DEFAULT_MAX_LENGTH = 512


class TooLong(StrEnum):
    """What Pinot does with a text or bytes beyond the maximum length (`MaxLengthExceedStrategy`)."""

    TRIM_LENGTH = "TRIM_LENGTH"
    SUBSTITUTE_DEFAULT_VALUE = "SUBSTITUTE_DEFAULT_VALUE"
    NO_ACTION = "NO_ACTION"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    :ivar default: the value that replaces null, in stored form (BOOLEAN 0 or 1, TIMESTAMP milliseconds).
    :ivar nullable: whether nulls are recorded in a null vector.
    :ivar single_value: whether a row has one value, not several.
    :ivar max_length: longest text kept, in UTF-16 units; of BYTES, in bytes.
    :ivar strategy: what happens to a longer value; None if the schema does not say.
    :ivar format: format of a DATE_TIME field, as Pinot writes it.
    :ivar granularity: granularity of a DATE_TIME field.
    :ivar encoding: how the table config wants it stored.
    """

    name: str
    data_type: DataType
    field_type: FieldType
    default: Default
    nullable: bool
    single_value: bool = True
    max_length: int = DEFAULT_MAX_LENGTH
    strategy: TooLong | None = None
    format: str | None = None
    granularity: str | None = None
    encoding: Encoding = field(default_factory=Encoding)

    @property
    def is_fixed_width(self) -> bool:
        """Whether all its values have the same number of bytes."""
        return STORAGE[self.data_type].disk is not None

    @property
    def effective_strategy(self) -> TooLong:
        """Return the strategy that applies (`FieldSpec.getEffectiveMaxLengthExceedStrategy`)."""
        if self.strategy is not None:
            return self.strategy
        return TooLong.TRIM_LENGTH if self.data_type is DataType.STRING else TooLong.NO_ACTION
