"""Distinct values in Pinot's order, and each value's rank in it (docs/design/segment-format.md#s6-1).

To sort one array of 64-bit integers takes a quarter of the time that an argsort takes, and a tenth of the
time that comparing texts takes. So a value and its position are packed into one integer if they fit: the
value's leading bits, then the position. Only values with equal leading bits are then compared in full.

A column that is stored without dictionary needs no order (`unordered_values`). Only its least and greatest
value, the number of distinct values and whether they ascend are written. To sort all values would take most
of the time of such a column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.errors import BuildError
from pinot_assets.segment.column.decimals import Decimals, Numbers
from pinot_assets.segment.column.types import STORAGE, Column, Default, utf16_key
from pinot_assets.segment.values.distinct import (
    KEY_BYTES,
    Codes,
    binary_array,
    binary_buffers,
    common_prefix,
    is_sorted,
)
from pinot_assets.segment.values.hashing import as_utf8, has_halves, murmur2
from pinot_assets.segment.values.normalize import Normalized

Places = npt.NDArray[np.int64]
_Keys = npt.NDArray[np.uint64]
_BITS = 64
_MASKS = np.array([~(2 ** (_BITS - 8 * n) - 1) & (2**_BITS - 1) for n in range(KEY_BYTES + 1)], np.uint64)
"""By number of bytes, the bits of as many leading bytes."""
_FEW_TEXTS = 2000
"""To compare fewer texts than these takes less time than to make their keys."""
_TRUE = np.ones(1, dtype=np.bool_)


def order_of_numbers(values: Numbers) -> Places:
    """Return the positions of integers or floats (no NaN) in ascending order; equal values keep their order.

    A negative zero comes before zero.
    """
    return _order(_offsets(values))


def order_of_texts(texts: pa.LargeBinaryArray) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Return the positions of byte strings in ascending order, and which of them, in this order, differ from
    the one before."""
    if len(texts) < _FEW_TEXTS:
        compared: Places = pc.array_sort_indices(texts).to_numpy().astype(np.int64)
        return compared, _different(texts.take(compared))
    common = common_prefix(texts)
    keys = _leading(texts, common)
    order = _order(keys)
    ordered, lengths = keys[order], np.diff(binary_buffers(texts)[0])
    if lengths.max() - common <= KEY_BYTES:
        differs = ordered[1:] != ordered[:-1]
        # Equal keys are equal texts, unless one of them has more zeros at its end.
        if (lengths[order[1:][~differs]] == lengths[order[:-1][~differs]]).all():
            return order, _led(differs)
    order = _settled(order, ordered, lambda some: pc.array_sort_indices(texts.take(some)).to_numpy())
    return order, _different(texts.take(order))


def _offsets(values: Numbers) -> _Keys:
    """Return how far each number is above the least one; a float counts by its bits, in float order."""
    if values.dtype.kind == "f":
        bits = values.view(f"i{values.itemsize}")
        mask = np.iinfo(bits.dtype).max
        values = np.where(bits < 0, bits ^ mask, bits)
    whole = values.astype(np.int64, copy=False)
    keys: _Keys = whole.view(np.uint64) - whole.min().view(np.uint64)  # right even where it overflows
    return keys


def _leading(texts: pa.LargeBinaryArray, common: int) -> _Keys:
    """Return the eight bytes of each text after the first `common` ones, padded with zeros."""
    ends, data = binary_buffers(texts)
    padded = np.concatenate((data, np.zeros(KEY_BYTES, np.uint8)))
    # A view without a copy: eight bytes from every position, one byte apart.
    windows: npt.NDArray[np.uint64] = np.ndarray(len(data) + 1, ">u8", padded, strides=(1,))
    kept = np.minimum(np.diff(ends) - common, KEY_BYTES).astype(np.uint64)
    keys: _Keys = windows[ends[:-1] + common].astype(np.uint64) & _MASKS[kept]
    keys -= keys.min()
    return keys


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
    """Return the order, with values that have equal keys put right.

    :param keys: keys of the positions in `order`, ascending.
    :param sort: returns the order of some positions' values. It sorts all values with equal keys at once:
        keys have the order of the values, so no value leaves its group.
    """
    same = keys[1:] == keys[:-1]
    if not same.any():
        return order
    alike = np.flatnonzero(np.append(same, False) | np.append(False, same))
    some = order[alike]
    order[alike] = some[sort(some)]
    return order


@dataclass(frozen=True)
class OrderedValues:
    """A column's distinct values.

    :ivar entries: in Pinot's order (`unordered_values`: in no order), in stored form: big-endian numbers, or
        a binary array. Two texts that differ only in half a surrogate pair have equal bytes here, but count
        as two.
    :ivar lowest: first value; text may end in half a surrogate pair.
    :ivar highest: last value.
    :ivar ids: index into `entries` (which is rank and dictionary id) of each row's value; of a multi-value
        column: of each element, row after row.
    :ivar cardinality: number of distinct values.
    :ivar ascending: whether no value is below the one before.
    """

    entries: Numbers | pa.LargeBinaryArray
    lowest: Default
    highest: Default
    ids: Codes
    cardinality: int
    ascending: bool

    @property
    def longest(self) -> int:
        """Return the bytes of the longest entry, 0 for numbers (`lengthOfEachEntry`)."""
        return (
            0 if isinstance(self.entries, np.ndarray) else int(pc.max(pc.binary_length(self.entries)).as_py())
        )


def order_values(column: Column, cleaned: Normalized) -> OrderedValues:
    """Return a column's distinct values in order.

    :raises BuildError: equal decimals have different scales; Pinot puts them in an arbitrary order.
    """
    values, codes = cleaned.values, cleaned.codes
    if isinstance(values, Decimals):
        return _rank_decimals(column.name, values, codes)
    if not isinstance(values, np.ndarray):
        if column.data_type.is_text:
            return _rank_texts(values, codes)
        entries, ranks = _ordered(values, values)
        return _ranked(entries, entries[0].as_py(), entries[-1].as_py(), ranks[codes])
    ordered, ranks = _ordered_numbers(values)
    disk = STORAGE[column.data_type].disk
    assert disk is not None
    return _ranked(ordered.astype(disk), ordered[0].item(), ordered[-1].item(), ranks[codes])


def _ranked(
    entries: Numbers | pa.LargeBinaryArray, lowest: Default, highest: Default, ids: Codes
) -> OrderedValues:
    return OrderedValues(entries, lowest, highest, ids, len(entries), is_sorted(ids))


def _rank_decimals(name: str, values: Decimals, codes: Codes) -> OrderedValues:
    keys = values.keys()
    # The last value is the one that replaced nulls: it keeps its trailing zeros, all others lost theirs.
    if ((keys == keys[-1]) & (values.scales != values.scales[-1])).any():
        raise BuildError(
            f"Column {name} holds its defaultNullValue with other zeros at its end",
            why="Pinot keeps both, in an order that is not defined",
            hint="Strip the zeros at the end of defaultNullValue.",
        )
    _, first, ranks = np.unique(keys, return_index=True, return_inverse=True)
    ordered = values.take(first)
    return _ranked(ordered.serialized(), ordered[0], ordered[-1], ranks.astype(np.int32)[codes])


def _rank_texts(texts: pa.LargeBinaryArray, codes: Codes) -> OrderedValues:
    halves = has_halves(texts)
    ordered, ranks = _ordered(texts, _half_keys(texts) if halves else utf16_keys(texts))
    lowest, highest = (ordered[i].as_py().decode("utf-8", "surrogatepass") for i in (0, -1))
    return _ranked(as_utf8(ordered) if halves else ordered, lowest, highest, ranks[codes])


def _ordered_numbers(values: Numbers) -> tuple[Numbers, Codes]:
    """Return the distinct numbers in order, and each value's rank."""
    if np.greater_equal(values[1:], values[:-1]).all():  # times and ids are often in order already
        first = _led(values[1:] != values[:-1])
        return values if first.all() else values[first], _counted(first)
    order = order_of_numbers(values)
    ordered = values[order]
    first = _led(ordered[1:] != ordered[:-1])
    return ordered if first.all() else ordered[first], _ranks(order, first)


def _ordered(values: pa.LargeBinaryArray, keys: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, Codes]:
    """Return the distinct values in the order of their keys, and each value's rank."""
    order, first = order_of_texts(keys)
    return values.take(pa.array(order[first])), _ranks(order, first)


def _different(ordered: pa.LargeBinaryArray) -> npt.NDArray[np.bool_]:
    return _led(pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False))


def _led(differs: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which values differ from the one before; the first one counts as different."""
    return np.concatenate((_TRUE, differs))


def _ranks(order: Places, first: npt.NDArray[np.bool_]) -> Codes:
    """Return each value's rank.

    :param order: positions of the values, in order.
    :param first: which of them, in order, differ from the one before.
    """
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = _counted(first)
    return ranks


def _counted(first: npt.NDArray[np.bool_]) -> Codes:
    return np.cumsum(first, dtype=np.int32) - 1


def _half_keys(texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Return what `utf16_keys` does, also where some text holds half a surrogate pair."""
    return pa.array(
        [utf16_key(text.decode("utf-8", "surrogatepass")) for text in texts.to_pylist()], texts.type
    )


def utf16_keys(texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Return keys whose byte order is the texts' UTF-16 order; no text may hold half a surrogate pair.

    UTF-8 has the order of UTF-16, except that U+E000 to U+FFFF (lead bytes EE, EF) come after the surrogate
    pairs (lead bytes F0 and above) in UTF-16. Raising these two lead bytes corrects the order.
    """
    ends, data = binary_buffers(texts)
    if not (data >= 0xF0).any() or not ((data == 0xEE) | (data == 0xEF)).any():
        return texts
    lifted = np.where(data == 0xEE, 0xFE, np.where(data == 0xEF, 0xFF, data)).astype(np.uint8)
    return binary_array(ends, lifted)


_BLOCK = 1 << 16
_LONG = 256  # bytes; if the longest value is longer, hashing takes longer than Arrow's own way


def unordered_values(column: Column, cleaned: Normalized) -> OrderedValues:
    """Return what `order_values` does, but texts and bytes in no order, maybe with repeated entries.

    Numbers are still put in order, which costs no more than to check them.

    :raises BuildError: see `order_values`.
    """
    values = cleaned.values
    if isinstance(values, (np.ndarray, Decimals)) or (column.data_type.is_text and has_halves(values)):
        return order_values(column, cleaned)
    keys = utf16_keys(values) if column.data_type.is_text else values
    bounds = pc.min_max(keys).as_py()
    lowest, highest = (_value(column, values, keys, bounds[which]) for which in ("min", "max"))
    ascending = _ascending(keys, cleaned.codes)
    return OrderedValues(values, lowest, highest, cleaned.codes, _count_distinct(values), ascending)


def _value(column: Column, values: pa.LargeBinaryArray, keys: pa.LargeBinaryArray, key: bytes) -> Default:
    value: bytes = values[pc.index(keys, pa.scalar(key, keys.type)).as_py()].as_py()
    return value.decode() if column.data_type.is_text else value


def _count_distinct(values: pa.LargeBinaryArray) -> int:
    """Return the exact number of distinct values; only values whose hashes are equal are compared."""
    if pc.max(pc.binary_length(values)).as_py() > _LONG:
        return len(values.unique())
    hashes = murmur2(values)
    distinct, counts = np.unique(hashes, return_counts=True)
    if len(distinct) == len(values):
        return len(values)
    alike = values.filter(pa.array(np.isin(hashes, distinct[counts > 1])))
    return len(values) - len(alike) + len(alike.unique())


def _ascending(keys: pa.LargeBinaryArray, codes: Codes) -> bool:
    """Whether the keys of the codes ascend; if not, the first block usually shows it."""
    for start in range(0, len(codes) - 1, _BLOCK):
        some = keys.take(pa.array(codes[start : start + _BLOCK + 1]))
        if pc.any(pc.less(some[1:], some[:-1])).as_py():
            return False
    return True
