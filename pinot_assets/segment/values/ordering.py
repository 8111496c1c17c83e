"""In which order values stand.

Sorting one array of 64-bit integers takes a quarter of the time that sorting places by values takes, and a
tenth of what comparing texts takes. So what fits is put into one integer: a value's leading bits, and behind
them its place. Only values whose leading bits are alike are compared themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.segment.values.arrays import Numbers
from pinot_assets.segment.values.java_text import binary_buffers

Places = npt.NDArray[np.int64]
_Keys = npt.NDArray[np.uint64]
_BITS = 64
_BYTES = 8


def order_of_numbers(values: Numbers) -> Places:
    """Places of integers or floats (no NaN) from the least to the greatest, those of equal ones ascending.

    A negative zero comes before zero.
    """
    return _order(_offsets(values))


def order_of_texts(texts: pa.LargeBinaryArray) -> Places:
    """Places of byte strings from the least to the greatest."""
    if len(texts) < 2:
        return np.arange(len(texts))
    keys = _leading(texts)
    order = _order(keys)
    return _settled(order, keys[order], lambda some: pc.array_sort_indices(texts.take(some)).to_numpy())


def _offsets(values: Numbers) -> _Keys:
    """How far each number, or each float's bits in the order of floats, is above the least."""
    if values.dtype.kind == "f":
        bits = values.view(f"i{values.itemsize}")
        mask = np.iinfo(bits.dtype).max
        values = np.where(bits < 0, bits ^ mask, bits)
    whole = values.astype(np.int64, copy=False)
    keys: _Keys = whole.view(np.uint64) - whole.min().view(np.uint64)  # right even where it overflows
    return keys


def _leading(texts: pa.LargeBinaryArray) -> _Keys:
    """The first eight bytes behind what all texts begin with, padded with zeros."""
    bounds = pc.min_max(texts).as_py()
    common = _in_common(bounds["min"], bounds["max"])
    ends, data = binary_buffers(texts)
    padded = np.concatenate((data, np.zeros(_BYTES, np.uint8)))
    # Eight bytes from every place on, one byte apart, without a copy.
    windows: npt.NDArray[np.uint64] = np.ndarray(len(data) + 1, ">u8", padded, strides=(1,))
    kept = np.minimum(np.diff(ends) - common, _BYTES).astype(np.uint64)
    masks = np.array([~(2 ** (_BITS - 8 * n) - 1) & (2**_BITS - 1) for n in range(_BYTES + 1)], np.uint64)
    keys: _Keys = windows[ends[:-1] + common].astype(np.uint64) & masks[kept]
    keys -= keys.min()
    return keys


def _in_common(low: bytes, high: bytes) -> int:
    """How many bytes both begin with."""
    pairs = enumerate(zip(low, high, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(low), len(high)))


def _order(keys: _Keys) -> Places:
    behind = np.uint64((len(keys) - 1).bit_length())
    too_many = np.uint64(max(0, int(keys.max()).bit_length() + int(behind) - _BITS))
    packed = (keys >> too_many << behind) | np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    order = (packed & ((np.uint64(1) << behind) - np.uint64(1))).astype(np.int64)
    if not too_many:
        return order
    return _settled(order, packed >> behind, lambda some: np.argsort(keys[some], kind="stable"))


def _settled(order: Places, keys: _Keys, sort: Callable[[Places], Places]) -> Places:
    """The order with those put right whose keys are alike.

    :param keys: ascending, of the places in `order`.
    :param sort: the order of some places' values. All that stand together are sorted at once: the order of
        their keys is that of the values, so that none leaves its neighbours.
    """
    same = keys[1:] == keys[:-1]
    alike = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(alike):
        some = order[alike]
        order[alike] = some[sort(some)]
    return order
