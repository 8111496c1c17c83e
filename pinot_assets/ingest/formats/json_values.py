"""Convert values of JSON documents to the table's types in Python, for blocks that Arrow refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from pinot_assets.core.json_object import JsonValue
from pinot_assets.ingest.contract.accepted_rows import TargetSchema
from pinot_assets.segment.column.decimals import MAX_DIGITS, is_storable

Convert = Callable[[JsonValue], JsonValue]

NOT_UTF_8: Final = re.compile("[\udc80-\udcff]")
"""Matches the characters to which `surrogateescape` decodes bytes that are not UTF-8."""

_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


class Real:
    """A number with fraction or exponent, kept as text: a float could lose digits."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def parse_json(text: str, position: int) -> tuple[JsonValue, int]:
    """Return the JSON value at a position of a text, and where it ends. Numbers with a fraction are `Real`.

    :raises ValueError: there is no JSON value.
    :raises RecursionError: it is nested too deeply.
    """
    try:
        return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError:
        raise
    except ValueError:  # a number with more digits than Python converts to an int
        return _LONG_NUMBERS.raw_decode(text, position)


_DECODER: Final = json.JSONDecoder(parse_float=Real)
_LONG_NUMBERS: Final = json.JSONDecoder(
    parse_float=Real, parse_int=lambda text: int(text) if len(text) < 4000 else Real(text)
)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def converter(field: pa.Field, target: TargetSchema) -> Convert:
    """Return a function that converts a value (not None) to the column's type, or raises ValueError.

    It returns timestamps and bytes as text, because only `casts` knows how to read them.
    """
    if not pt.is_list(field.type):
        return _single(field.type, field.name, target)
    inner = _single(field.type.value_type, field.name, target)

    def values(value: JsonValue) -> list[JsonValue]:
        if not isinstance(value, list):
            return [inner(value)]
        return [None if item is None else inner(item) for item in value]

    return values


def arrow_type(field: pa.Field) -> pa.DataType:
    """Return the Arrow type of what `converter`'s function returns."""
    kind = field.type.value_type if pt.is_list(field.type) else field.type
    raw = pa.string() if pt.is_timestamp(kind) or pt.is_binary(kind) else kind
    return pa.list_(raw) if pt.is_list(field.type) else raw


def json_text(value: JsonValue) -> str:
    """Return a value as compact JSON, with its numbers as they were written."""
    try:
        text = _ENCODER.encode(value)
    except TypeError:
        text = _written(value)
    text.encode()  # raises ValueError for half a surrogate pair
    return text


def _single(kind: pa.DataType, name: str, target: TargetSchema) -> Convert:
    if name in target.json:
        return lambda value: _string(value) if type(value) is str else json_text(value)
    if name in target.decimals:
        return _decimal
    if pt.is_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return lambda value: _integer(value, limit)
    if pt.is_floating(kind):
        return _floating
    if pt.is_boolean(kind):
        return _boolean
    return _moment if pt.is_timestamp(kind) else _string


def _integer(value: JsonValue, limit: int) -> int:
    if type(value) is str and _DIGITS.fullmatch(value.strip()):
        value = int(value)
    elif type(value) is Real:
        value = _whole(value, limit)
    if type(value) is not int or not -limit <= value < limit:
        raise ValueError
    return value


def _whole(value: Real, limit: int) -> int:
    """Return the whole number that a number with fraction or exponent is, such as 1.0 or 1e3."""
    try:
        exact = Decimal(value.text)
    except InvalidOperation:
        raise ValueError from None
    if not -limit <= exact < limit or exact != exact.to_integral_value():
        raise ValueError
    return int(exact)


def _floating(value: JsonValue) -> float:
    if type(value) is Real:
        return float(value.text)
    if type(value) is int or (type(value) is str and value.strip().isascii() and "_" not in value):
        return float(value)
    raise ValueError  # a float here is NaN or Infinity, which are Python's, not JSON's


def _boolean(value: JsonValue) -> bool:
    if type(value) is bool:
        return value
    truth = _BOOLEANS.get(value.lower()) if type(value) is str else None
    if truth is None:
        raise ValueError
    return truth


def _string(value: JsonValue) -> str:
    if type(value) is str:
        value.encode()  # raises ValueError for half a surrogate pair
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is not int:
        raise ValueError  # a float has no one text: programs write it differently
    return str(value)


def _decimal(value: JsonValue) -> str:
    text = value.text if type(value) is Real else str(value) if type(value) is int else value
    if type(text) is not str or not _NUMBER.fullmatch(text := text.strip()):
        raise ValueError
    if (len(text) > MAX_DIGITS or "e" in text or "E" in text) and not is_storable(text):
        raise ValueError
    return text


def _moment(value: JsonValue) -> str:
    if type(value) is Real:
        value = _whole(value, 1 << 63)
    if type(value) not in (int, str):
        raise ValueError
    return str(value)


def _written(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_ENCODER.encode(key)}:{_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return value.text if type(value) is Real else _ENCODER.encode(value)
