"""JSON values as Pinot stores them: parsed and written again by Jackson (docs/design/segment-format.md#s5-1).

Blanks go, members keep their order (the last duplicate wins, in the first one's place), numbers lose trailing
zeros and are written as `BigDecimal.toString`, and what does not parse becomes a JSON string.
"""

from __future__ import annotations

import json
import re
import unicodedata
from json.encoder import encode_basestring
from typing import Any, NoReturn

MAX_NESTING = 500
"""Deeper values are refused: Jackson stops at 1000, Python's parser may run out of stack before."""

_MAX_NUMBER = 1000  # Jackson's StreamReadConstraints; Pinot's build fails on a longer number
_BLANKS = " \t\r\n"
_REAL = re.compile(r"[0-9][.eE][0-9+-]")
_ESCAPE = re.compile(r"\\u00[01][0-9a-f]|\\.")
_WORD = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Nd", "Sc", "Pc", "Mc", "Mn", "Cf"}


class JsonRefused(Exception):
    """JSON that Pinot's builder fails on, or that is nested deeper than `MAX_NESTING`."""


def canonical_json(text: str) -> str:
    """A JSON column's value as Pinot stores it.

    :raises JsonRefused: Pinot could not build it either, or see `MAX_NESTING`.
    """
    start = len(text) - len(text.lstrip(_BLANKS))
    if start == len(text):
        return ""
    if _nesting(text) > MAX_NESTING:
        raise JsonRefused(f"nested deeper than {MAX_NESTING}")
    try:
        value, end = _DECODER.raw_decode(text, start)
    except ValueError:
        return _quote(text)
    if not _ends_cleanly(value, text[end : end + 1]):
        return _quote(text)
    return _write(value) if _REAL.search(text) else _upper_hex(_ENCODER.encode(value))


class _Real(str):
    """A number with fraction or exponent, already as Java writes it."""

    __slots__ = ()


def java_decimal(text: str) -> str:
    """`new BigDecimal(text).stripTrailingZeros().toString()` of a JSON number.

    :raises JsonRefused: the exponent does not fit a Java int.
    """
    mantissa, _, power = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    exponent = int(power or "0") - len(fraction)
    if not -(2**31) < exponent < 2**31:
        raise JsonRefused("a number whose exponent is out of range")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return "0"
    sign = "-" if mantissa.startswith("-") else ""
    stripped = digits.rstrip("0")
    exponent += len(digits) - len(stripped)
    adjusted = exponent + len(stripped) - 1
    if exponent <= 0 and adjusted >= -6:
        padded = stripped.rjust(1 - exponent, "0")
        return sign + (f"{padded[:exponent]}.{padded[exponent:]}" if exponent else padded)
    point = f".{stripped[1:]}" if len(stripped) > 1 else ""
    return f"{sign}{stripped[0]}{point}E{adjusted:+d}"


def _real(text: str) -> _Real:
    if len(text) > _MAX_NUMBER:
        raise JsonRefused(f"a number of more than {_MAX_NUMBER} characters")
    return _Real(java_decimal(text))


def _integer(text: str) -> int:
    if len(text) > _MAX_NUMBER:
        raise JsonRefused(f"a number of more than {_MAX_NUMBER} characters")
    return int(text)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_real, parse_int=_integer, parse_constant=_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)


def _nesting(text: str) -> int:
    """An upper bound of the nesting, cheap for the usual value."""
    openings = text.count("[") + text.count("{")
    if openings <= MAX_NESTING:
        return openings
    depth = deepest = 0
    for bracket in re.findall(r'[\[\]{}]|"(?:[^"\\]|\\.)*"', text, re.DOTALL):
        depth += 1 if bracket in "[{" else -1 if bracket in "]}" else 0
        deepest = max(deepest, depth)
    return deepest


def _ends_cleanly(value: Any, following: str) -> bool:
    """Whether Jackson accepts what follows a bare number or word; text after other values is ignored."""
    if not following or isinstance(value, (dict, list)) or type(value) is str:
        return True
    if value is None or isinstance(value, bool):
        word = unicodedata.category(following) in _WORD or "\x7f" <= following <= "\x9f"
        return following < "0" or not word
    return following in _BLANKS


def _write(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(key)}:{_write(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    if isinstance(value, _Real):
        return value
    return _quote(value) if isinstance(value, str) else _ENCODER.encode(value)


def _quote(text: str) -> str:
    return _upper_hex(encode_basestring(text))


def _upper_hex(text: str) -> str:
    """Python escapes control characters in lower-case hex, Jackson in upper-case."""
    if "\\u00" not in text:
        return text
    return _ESCAPE.sub(lambda m: "\\u" + m[0][2:].upper() if m[0].startswith("\\u") else m[0], text)
