"""What Pinot would store of most JSON texts, found for all of them at once.

Pinot writes a text again, and `json_text.canonical_json` takes some microseconds for that. Most texts come
from programs that write JSON in one way, and look alike but for their values. So the values are taken out,
and what is left, the shape, is looked at once for all texts that have it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.segment.values.java_text import binary_buffers
from pinot_assets.segment.values.json_text import JsonRefused, canonical_json

Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

_AT_A_TIME: Final = 1 << 16
_MOST_DIGITS: Final = 18
_MOST_FRACTION: Final = 6  # a smaller number is written with an exponent
_UNSURE, _DIGIT, _BEFORE, _BEHIND, _GAP = (np.zeros(256, dtype=bool) for _ in range(5))
_UNSURE[:0x20] = _UNSURE[ord("\\")] = True  # with an escape or a control character a text is not looked at
_DIGIT[ord("0") : ord("9") + 1] = True
_BEFORE[list(b":,[")] = True
_BEHIND[list(b",]}")] = True
_GAP[list(b":,")] = True


def canonical_texts(values: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, Mask]:
    """What `canonical_json` makes of some of the texts, and which these are; the others stay as they are."""
    parts = [_canonical(values.slice(n, _AT_A_TIME)) for n in range(0, len(values), _AT_A_TIME)]
    if not parts:
        return values, np.zeros(0, dtype=bool)
    return pa.concat_arrays([texts for texts, _ in parts]), np.concatenate([found for _, found in parts])


def _canonical(values: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, Mask]:
    found = _plain(values)
    some = _without_blanks(values.filter(pa.array(found)))
    if len(some):
        shapes = _shapes(some).dictionary_encode()
        if len(shapes.dictionary) * 2 > len(some):
            return values, np.zeros(len(values), dtype=bool)  # nothing is gained
        stays = np.array([_stays(shape) for shape in shapes.dictionary.to_pylist()])[
            shapes.indices.to_numpy()
        ]
        found[found] = stays
        values = pc.replace_with_mask(values, pa.array(found), some.filter(pa.array(stays)))
    return values, found


def _stays(shape: bytes) -> bool:
    try:
        text = shape.decode()
        return canonical_json(text) == text
    except (JsonRefused, UnicodeDecodeError):
        return False


def _plain(values: pa.LargeBinaryArray) -> Mask:
    """Texts in which every second quote closes: without escapes, and with an even number of quotes."""
    ends, data = _buffers(values)
    unsure, quotes = np.flatnonzero(_UNSURE[data]), np.flatnonzero(data == ord('"'))
    found: Mask = (_counts(unsure, ends) == 0) & (_counts(quotes, ends) % 2 == 0)
    return found


def _without_blanks(values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Plain texts without the one blank that people have behind a comma or colon."""
    ends, data = _buffers(values)
    blank = np.flatnonzero(data == ord(" "))
    blank = blank[_GAP[_previous(data, _starts(ends), blank)]] if len(blank) else blank
    if not len(blank):
        return values
    gone = np.zeros(len(data), dtype=bool)
    gone[blank] = True
    gone &= ~_in_text(data)
    return _kept(ends, data, ~gone)


def _shapes(values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Plain texts without what stands in texts that are values, and with 0 for numbers."""
    ends, data = _buffers(values)
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
    """The texts, but for the bytes that are not chosen."""
    places = np.flatnonzero(chosen)
    offsets, left = pa.py_buffer(np.searchsorted(places, ends)), pa.py_buffer(data[places])
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends) - 1, [None, offsets, left])


def _quotes(data: Bytes) -> tuple[Places, Places]:
    quotes = np.flatnonzero(data == ord('"'))
    return quotes[::2], quotes[1::2]


def _in_text(data: Bytes) -> Mask:
    opening, closing = _quotes(data)
    return _between(opening + 1, closing, len(data))


def _starts(ends: Places) -> Mask:
    """Where a text starts, and where the last one ends."""
    found = np.zeros(int(ends[-1]) + 1, dtype=bool)
    found[ends] = True
    return found


def _numbers(data: Bytes, is_start: Mask, in_text: Mask) -> tuple[Places, Places, Mask]:
    """First and last characters of numbers that are stored as they stand, and which have a sign."""
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
    """The bytes before some places, 0 where a text starts."""
    return np.where(is_start[places], 0, data[places - 1])


def _next(data: Bytes, is_start: Mask, places: Places) -> Bytes:
    """The bytes behind some places, 0 where a text ends."""
    return np.where(is_start[places + 1], 0, data[np.minimum(places + 1, len(data) - 1)])


def _between(starts: Places, stops: Places, length: int) -> Mask:
    """Which bytes lie in one of the ranges, which ascend and do not touch."""
    edges = np.stack([starts, stops], axis=1).ravel()
    return np.repeat(np.arange(len(edges) + 1) % 2 == 1, np.diff(edges, prepend=0, append=length))


def _counts(places: Places, ends: Places) -> Places:
    return np.diff(np.searchsorted(places, ends))


def _buffers(values: pa.LargeBinaryArray) -> tuple[Places, Bytes]:
    ends, data = binary_buffers(values)
    return ends - ends[0], data[ends[0] : ends[-1]]
