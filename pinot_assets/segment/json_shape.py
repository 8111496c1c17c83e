"""Which JSON texts are already what Pinot would store, seen all at once.

Pinot writes a text again, and `json_text.canonical_json` takes some microseconds for that. Most texts come
from programs that write compact JSON, and look alike but for their values. So the values are taken out, and
what is left, the shape, is looked at once for all texts that have it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pinot_assets.segment.java_text import binary_buffers
from pinot_assets.segment.json_text import JsonRefused, canonical_json

Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

_AT_A_TIME: Final = 1 << 16
_MOST_DIGITS: Final = 18
_MOST_FRACTION: Final = 6  # a smaller number is written with an exponent
_UNSURE, _DIGIT, _BEFORE, _BEHIND = (np.zeros(256, dtype=bool) for _ in range(4))
_UNSURE[:0x20] = _UNSURE[ord("\\")] = True  # with an escape or a control character a text is not looked at
_DIGIT[ord("0") : ord("9") + 1] = True
_BEFORE[list(b":,[")] = True
_BEHIND[list(b",]}")] = True


def is_canonical(values: pa.LargeBinaryArray) -> Mask:
    """Which texts `canonical_json` leaves as they are; not all of them are found."""
    parts = [_canonical(values.slice(n, _AT_A_TIME)) for n in range(0, len(values), _AT_A_TIME)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def _canonical(values: pa.LargeBinaryArray) -> Mask:
    found = _plain(values)
    some = values.filter(pa.array(found))
    if len(some):
        shapes = _shapes(some).dictionary_encode()
        if len(shapes.dictionary) * 2 > len(some):
            return np.zeros(len(values), dtype=bool)  # nothing is gained
        stays = np.array([_stays(shape) for shape in shapes.dictionary.to_pylist()])
        found[found] = stays[shapes.indices.to_numpy()]
    return found


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
    return (_counts(unsure, ends) == 0) & (_counts(quotes, ends) % 2 == 0)


def _shapes(values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Plain texts without what stands in texts that are values, and with 0 for numbers."""
    ends, data = _buffers(values)
    out = data.copy()
    is_start = np.zeros(len(data) + 1, dtype=bool)
    is_start[ends] = True
    quotes = np.flatnonzero(data == ord('"'))
    opening, closing = quotes[::2], quotes[1::2]
    in_text = _between(opening + 1, closing, len(data))
    is_value = _BEHIND[_byte(data, is_start, closing + 1)]
    gone = _between(opening[is_value] + 1, closing[is_value], len(data))
    first, last, negative = _numbers(data, is_start, in_text)
    out[first] = ord("0")
    gone |= _between(first + 1, last + 1, len(data))
    gone[first[negative] - 1] = True
    kept = np.flatnonzero(~gone)
    offsets, left = pa.py_buffer(np.searchsorted(kept, ends)), pa.py_buffer(out[kept])
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(values), [None, offsets, left])


def _numbers(data: Bytes, is_start: Mask, in_text: Mask) -> tuple[Places, Places, Mask]:
    """First and last characters of numbers that are stored as they stand, and which have a sign."""
    digit = np.concatenate([[False], _DIGIT[data] & ~in_text, [False]])
    point = (data == ord(".")) & digit[:-2] & digit[2:] & ~is_start[:-1] & ~is_start[1:]
    digit[1:-1] |= point
    first = np.flatnonzero(digit[1:-1] & (~digit[:-2] | is_start[:-1]))
    last = np.flatnonzero(digit[1:-1] & (~digit[2:] | is_start[1:]))
    before = _byte(data, is_start[1:], first - 1)
    negative = before == ord("-")
    sign = first[negative] - 1
    before[negative] = np.where(is_start[sign], 0, data[sign - 1])
    points = np.flatnonzero(point)
    next_point = np.searchsorted(points, first)
    count = np.searchsorted(points, last) - next_point
    place = np.where(count == 1, np.append(points, 0)[next_point], last + 1)
    fraction = last - place  # -1 without a point
    starts_well = (data[first] != ord("0")) | (place - first == 1)
    ends_well = np.where(fraction > 0, data[last] != ord("0"), ~((data[first] == ord("0")) & negative))
    good = _BEFORE[before] & _BEHIND[_byte(data, is_start, last + 1)] & (last - first < _MOST_DIGITS)
    good &= (count < 2) & (fraction <= _MOST_FRACTION) & starts_well & ends_well
    return first[good], last[good], negative[good]


def _byte(data: Bytes, is_end: Mask, places: Places) -> Bytes:
    """The bytes at some places, 0 where another text begins or none is."""
    inside = np.clip(places, 0, len(data) - 1)
    return np.where(is_end[places] | (places != inside), 0, data[inside])


def _between(starts: Places, stops: Places, length: int) -> Mask:
    """Which bytes lie in one of the ranges, which ascend and do not touch."""
    edges = np.stack([starts, stops], axis=1).ravel()
    return np.repeat(np.arange(len(edges) + 1) % 2 == 1, np.diff(edges, prepend=0, append=length))


def _counts(places: Places, ends: Places) -> Places:
    return np.diff(np.searchsorted(places, ends))


def _buffers(values: pa.LargeBinaryArray) -> tuple[Places, Bytes]:
    ends, data = binary_buffers(values)
    return ends - ends[0], data[ends[0] : ends[-1]]
