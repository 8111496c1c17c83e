"""JSON values as Pinot stores them: parsed and rewritten by Jackson (docs/design/segment-format.md#s5-1).

Blanks are removed, members keep their order (the last duplicate wins, at the first one's place), numbers lose
trailing zeros and are written as `BigDecimal.toString`, and a text that does not parse becomes a JSON string.

`pinot_json` takes some microseconds for one text. Most texts come from programs that write JSON in one
way and differ only in their values. So `canonical_texts` removes the values and checks what remains, the
shape, once for all texts that share it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from json.encoder import encode_basestring
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.segment.values.distinct import binary_array, binary_buffers

MAX_NESTING = 500
"""Deeper values are refused: Jackson stops at 1000, but Python's parser may run out of stack before."""

_MAX_NUMBER = 1000  # Jackson's StreamReadConstraints; Pinot's build fails on a longer number
_BLANKS = " \t\r\n"
_REAL = re.compile(r"[0-9][.eE][0-9+-]")
_ESCAPE = re.compile(r"\\u00[01][0-9a-f]|\\.")
_WORD = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Nd", "Sc", "Pc", "Mc", "Mn", "Cf"}


class JsonRefused(Exception):
    """JSON that Pinot's builder fails on, or that is nested deeper than `MAX_NESTING`."""


def pinot_json(text: str) -> str:
    """Return a JSON column's value as Pinot stores it.

    :raises JsonRefused: Pinot could not build it either, or it is nested deeper than `MAX_NESTING`.
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


class _JavaReal(str):
    """A number with fraction or exponent, already as Java writes it."""

    __slots__ = ()


def java_decimal(text: str) -> str:
    """Return `new BigDecimal(text).stripTrailingZeros().toString()` of a JSON number.

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


def _real(text: str) -> _JavaReal:
    if len(text) > _MAX_NUMBER:
        raise JsonRefused(f"a number of more than {_MAX_NUMBER} characters")
    return _JavaReal(java_decimal(text))


def _integer(text: str) -> int:
    if len(text) > _MAX_NUMBER:
        raise JsonRefused(f"a number of more than {_MAX_NUMBER} characters")
    return int(text)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_real, parse_int=_integer, parse_constant=_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)


def _nesting(text: str) -> int:
    """Return an upper bound of the nesting, cheaply for most values."""
    openings = text.count("[") + text.count("{")
    if openings <= MAX_NESTING:
        return openings
    depth = deepest = 0
    for bracket in re.findall(r'[\[\]{}]|"(?:[^"\\]|\\.)*"', text, re.DOTALL):
        depth += 1 if bracket in "[{" else -1 if bracket in "]}" else 0
        deepest = max(deepest, depth)
    return deepest


def _ends_cleanly(value: object, following: str) -> bool:
    """Whether Jackson accepts what follows a bare number or word; text after other values is ignored."""
    if not following or isinstance(value, (dict, list)) or type(value) is str:
        return True
    if value is None or isinstance(value, bool):
        word = unicodedata.category(following) in _WORD or "\x7f" <= following <= "\x9f"
        return following < "0" or not word
    return following in _BLANKS


def _write(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(key)}:{_write(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    if isinstance(value, _JavaReal):
        return value
    return _quote(value) if isinstance(value, str) else _ENCODER.encode(value)


def _quote(text: str) -> str:
    return _upper_hex(encode_basestring(text))


def _upper_hex(text: str) -> str:
    """Change hex escapes to upper case: Python writes control characters in lower case, Jackson in upper."""
    if "\\u00" not in text:
        return text
    return _ESCAPE.sub(lambda m: "\\u" + m[0][2:].upper() if m[0].startswith("\\u") else m[0], text)


Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

_AT_A_TIME: Final = 1 << 16
_MOST_DIGITS: Final = 18
_MOST_FRACTION: Final = 6  # Jackson writes a smaller number with an exponent
_UNSURE, _DIGIT, _BEFORE, _BEHIND, _GAP = (np.zeros(256, dtype=bool) for _ in range(5))
_UNSURE[:0x20] = _UNSURE[ord("\\")] = True  # texts with an escape or control character are skipped
_DIGIT[ord("0") : ord("9") + 1] = True
_BEFORE[list(b":,[")] = True
_BEHIND[list(b",]}")] = True
_GAP[list(b":,")] = True


def canonical_texts(values: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, Mask]:
    """Return the texts, some of them as `pinot_json` writes them, and a mask of these."""
    parts = [_canonical(values.slice(n, _AT_A_TIME)) for n in range(0, len(values), _AT_A_TIME)]
    if not parts:
        return values, np.zeros(0, dtype=bool)
    return pa.concat_arrays([texts for texts, _ in parts]), np.concatenate([mask for _, mask in parts])


def _canonical(values: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, Mask]:
    mask = _plain(values)
    some = _without_blanks(values.filter(pa.array(mask)))
    if len(some):
        shapes = _shapes(some).dictionary_encode()
        if len(shapes.dictionary) * 2 > len(some):
            return values, np.zeros(len(values), dtype=bool)  # too many shapes: this way saves no time
        stays = np.array([_stays(shape) for shape in shapes.dictionary.to_pylist()])[
            shapes.indices.to_numpy()
        ]
        mask[mask] = stays
        values = pc.replace_with_mask(values, pa.array(mask), some.filter(pa.array(stays)))
    return values, mask


def _stays(shape: bytes) -> bool:
    try:
        text = shape.decode()
        return pinot_json(text) == text
    except (JsonRefused, UnicodeDecodeError):
        return False


def _plain(values: pa.LargeBinaryArray) -> Mask:
    """Return a mask of the texts where every second quote closes: no escapes, an even number of quotes."""
    ends, data = binary_buffers(values)
    unsure, quotes = np.flatnonzero(_UNSURE[data]), np.flatnonzero(data == ord('"'))
    mask: Mask = (_counts(unsure, ends) == 0) & (_counts(quotes, ends) % 2 == 0)
    return mask


def _without_blanks(values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Return plain texts without the one blank that many programs write after a comma or colon."""
    ends, data = binary_buffers(values)
    blank = np.flatnonzero(data == ord(" "))
    blank = blank[_GAP[_previous(data, _starts(ends), blank)]] if len(blank) else blank
    if not len(blank):
        return values
    gone = np.zeros(len(data), dtype=bool)
    gone[blank] = True
    gone &= ~_in_text(data)
    return _kept(ends, data, ~gone)


def _shapes(values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Return plain texts with string values emptied and numbers replaced by 0."""
    ends, data = binary_buffers(values)
    out, is_start = data.copy(), _starts(ends)
    opening, closing = _quotes(data)
    is_value = _BEHIND[_next(data, is_start, closing)]
    gone = _between(opening[is_value] + 1, closing[is_value], len(data))
    first, last, negative = _numbers(data, is_start, _in_text(data))
    out[first] = ord("0")
    gone |= _between(first + 1, last + 1, len(data))
    gone[first[negative] - 1] = True
    return _kept(ends, out, ~gone)


def _kept(ends: Places, data: Bytes, chosen: Mask) -> pa.LargeBinaryArray:
    """Return the texts with only their chosen bytes."""
    places = np.flatnonzero(chosen)
    return binary_array(np.searchsorted(places, ends), data[places])


def _quotes(data: Bytes) -> tuple[Places, Places]:
    quotes = np.flatnonzero(data == ord('"'))
    return quotes[::2], quotes[1::2]


def _in_text(data: Bytes) -> Mask:
    opening, closing = _quotes(data)
    return _between(opening + 1, closing, len(data))


def _starts(ends: Places) -> Mask:
    """Return a mask of the positions where a text starts, and where the last one ends."""
    mask = np.zeros(int(ends[-1]) + 1, dtype=bool)
    mask[ends] = True
    return mask


def _numbers(data: Bytes, is_start: Mask, in_text: Mask) -> tuple[Places, Places, Mask]:
    """Return first and last positions of numbers that do not change when stored, and which are negative."""
    digit = np.concatenate([[False], _DIGIT[data] & ~in_text, [False]])
    point = (data == ord(".")) & digit[:-2] & digit[2:] & ~is_start[:-1] & ~is_start[1:]
    digit[1:-1] |= point
    first = np.flatnonzero(digit[1:-1] & (~digit[:-2] | is_start[:-1]))
    last = np.flatnonzero(digit[1:-1] & (~digit[2:] | is_start[1:]))
    before = _previous(data, is_start, first)
    negative = before == ord("-")
    sign = first[negative] - 1
    before[negative] = _previous(data, is_start, sign)
    points = np.flatnonzero(point)
    next_point = np.searchsorted(points, first)
    count = np.searchsorted(points, last) - next_point
    place = np.where(count == 1, np.append(points, 0)[next_point], last + 1)
    fraction = last - place  # -1 without a point
    starts_well = (data[first] != ord("0")) | (place - first == 1)
    ends_well = np.where(fraction > 0, data[last] != ord("0"), ~((data[first] == ord("0")) & negative))
    good = _BEFORE[before] & _BEHIND[_next(data, is_start, last)] & (last - first < _MOST_DIGITS)
    good &= (count < 2) & (fraction <= _MOST_FRACTION) & starts_well & ends_well
    return first[good], last[good], negative[good]


def _previous(data: Bytes, is_start: Mask, places: Places) -> Bytes:
    """Return the bytes before some positions, 0 where a text starts."""
    return np.where(is_start[places], 0, data[places - 1])


def _next(data: Bytes, is_start: Mask, places: Places) -> Bytes:
    """Return the bytes after some positions, 0 where a text ends."""
    return np.where(is_start[places + 1], 0, data[np.minimum(places + 1, len(data) - 1)])


def _between(starts: Places, stops: Places, length: int) -> Mask:
    """Return a mask of the bytes in one of the ranges, which ascend and do not touch."""
    edges = np.stack([starts, stops], axis=1).ravel()
    return np.repeat(np.arange(len(edges) + 1) % 2 == 1, np.diff(edges, prepend=0, append=length))


def _counts(places: Places, ends: Places) -> Places:
    return np.diff(np.searchsorted(places, ends))
