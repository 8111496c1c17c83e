"""Distinct values in Pinot's order, and each value's rank in it (docs/design/segment-format.md#s6-1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.errors import BuildError
from pinot_assets.segment.column.decimals import Decimals
from pinot_assets.segment.column.fields import Column
from pinot_assets.segment.column.text import utf16_key
from pinot_assets.segment.column.types import STORAGE, Default
from pinot_assets.segment.values.arrays import Numbers
from pinot_assets.segment.values.distinct import Codes, is_sorted
from pinot_assets.segment.values.java_text import as_utf8, binary_buffers, has_halves
from pinot_assets.segment.values.normalize import Normalized
from pinot_assets.segment.values.ordering import Places, order_of_numbers, order_of_texts


@dataclass(frozen=True)
class OrderedValues:
    """A column's distinct values.

    :ivar entries: in Pinot's order (`unordered_values` gives them in none) and as they are stored: big-endian
        numbers, or a binary array. Two texts that differ in half a surrogate pair only have equal bytes here
        and still count as two.
    :ivar lowest: first value; text may end in half a surrogate pair.
    :ivar highest: last value.
    :ivar ids: the place in `entries`, which is the rank and the dictionary id, of each row's value, or of
        each element of a multi-value column, row after row.
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
        """Bytes of the longest entry, 0 for numbers (`lengthOfEachEntry`)."""
        return 0 if isinstance(self.entries, np.ndarray) else int(pc.max(entry_lengths(self.entries)).as_py())


def entry_lengths(entries: pa.LargeBinaryArray) -> pa.Int64Array:
    """Bytes of each entry."""
    return pc.binary_length(entries)


def order_values(column: Column, cleaned: Normalized) -> OrderedValues:
    """Put a column's values in order.

    :raises BuildError: equal decimals are written with different scales; Pinot's order of them is chance.
    """
    values, codes = cleaned.values, cleaned.codes
    if isinstance(values, Decimals):
        return _rank_decimals(column.name, values, codes)
    if not isinstance(values, np.ndarray):
        return _rank_texts(values, codes) if column.data_type.is_text else _rank_bytes(values, codes)
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
    # What null became, which is the last, keeps its zeros; all others were stripped of them.
    if ((keys == keys[-1]) & (values.scales != values.scales[-1])).any():
        raise BuildError(
            f"Column {name} holds its defaultNullValue with other zeros at its end",
            why="Pinot keeps both, in an order that is chance",
            hint="Strip the zeros at the end of defaultNullValue.",
        )
    _, first, ranks = np.unique(keys, return_index=True, return_inverse=True)
    ordered = values.take(first)
    return _ranked(ordered.serialized(), ordered[0], ordered[-1], ranks.astype(np.int32)[codes])


def _rank_bytes(values: pa.LargeBinaryArray, codes: Codes) -> OrderedValues:
    ordered, ranks = _ordered(values, values)
    return _ranked(ordered, ordered[0].as_py(), ordered[-1].as_py(), ranks[codes])


def _rank_texts(texts: pa.LargeBinaryArray, codes: Codes) -> OrderedValues:
    halves = has_halves(texts)
    ordered, ranks = _ordered(texts, utf16_keys(texts, halves))
    lowest, highest = (ordered[i].as_py().decode("utf-8", "surrogatepass") for i in (0, -1))
    return _ranked(as_utf8(ordered) if halves else ordered, lowest, highest, ranks[codes])


def _ordered_numbers(values: Numbers) -> tuple[Numbers, Codes]:
    """Distinct numbers in order, and each value's rank."""
    if np.greater_equal(values[1:], values[:-1]).all():  # as times and ids often are
        first = np.append(True, values[1:] != values[:-1])
        return values if first.all() else values[first], _counted(first)
    order = order_of_numbers(values)
    ordered = values[order]
    first = np.append(True, ordered[1:] != ordered[:-1])
    return ordered if first.all() else ordered[first], _ranks(order, first)


def _ordered(values: pa.LargeBinaryArray, keys: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, Codes]:
    """Distinct values by their keys, and each value's rank."""
    order = order_of_texts(keys)
    ordered = values.take(order)
    first = np.append(True, pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False))
    return ordered if first.all() else ordered.filter(pa.array(first)), _ranks(order, first)


def _ranks(order: Places, first: npt.NDArray[np.bool_]) -> Codes:
    """Each value's rank.

    :param order: the values' places in order.
    :param first: which of them, in order, differ from the one before.
    """
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = _counted(first)
    return ranks


def _counted(first: npt.NDArray[np.bool_]) -> Codes:
    return np.cumsum(first, dtype=np.int32) - 1


def utf16_keys(texts: pa.LargeBinaryArray, halves: bool) -> pa.LargeBinaryArray:
    """Keys whose byte order is the texts' UTF-16 order.

    :param halves: whether some text holds half a surrogate pair.

    UTF-8 sorts as UTF-16 but for U+E000 to U+FFFF (lead bytes EE, EF), which come after the surrogate pairs
    (lead bytes F0 and above) in UTF-16. Lifting these two bytes mends the order.
    """
    if halves:
        keys = [utf16_key(text.decode("utf-8", "surrogatepass")) for text in texts.to_pylist()]
        return pa.array(keys, pa.large_binary())
    ends, data = binary_buffers(texts)
    if not (data >= 0xF0).any() or not ((data == 0xEE) | (data == 0xEF)).any():
        return texts
    lifted = np.where(data == 0xEE, 0xFE, np.where(data == 0xEF, 0xFF, data)).astype(np.uint8)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(lifted)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(texts), buffers)
