"""Distinct values in Pinot's order, and each value's rank in it (spec section 6.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.errors import BuildError
from pinot_assets.segment.clean import Cleaned, Numbers
from pinot_assets.segment.decimals import decimal_bytes
from pinot_assets.segment.distinct import Codes
from pinot_assets.segment.fields import Column
from pinot_assets.segment.text import utf16_key
from pinot_assets.segment.types import STORAGE, DataType, Default


@dataclass(frozen=True)
class Ranked:
    """A column's distinct values.

    :ivar entries: in Pinot's order and as they are stored: big-endian numbers, or a binary array. Two texts
        that differ in half a surrogate pair only have equal bytes here and still count as two.
    :ivar lowest: first value; text may end in half a surrogate pair.
    :ivar highest: last value.
    :ivar ids: the dictionary id, which is the rank, of each row's value, or of each element of a multi-value
        column, row after row.
    """

    entries: Numbers | pa.LargeBinaryArray
    lowest: Default
    highest: Default
    ids: Codes

    @property
    def cardinality(self) -> int:
        """Number of distinct values."""
        return len(self.entries)

    @property
    def longest(self) -> int:
        """Bytes of the longest entry, 0 for numbers (`lengthOfEachEntry`)."""
        return 0 if isinstance(self.entries, np.ndarray) else int(pc.max(entry_lengths(self.entries)).as_py())


def entry_lengths(entries: pa.LargeBinaryArray) -> pa.Int64Array:
    """Bytes of each entry."""
    return pc.binary_length(entries)


def rank(column: Column, cleaned: Cleaned) -> Ranked:
    """Put a column's values in order.

    :raises BuildError: equal decimals are written with different scales; Pinot's order of them is chance.
    """
    values, codes = cleaned.values, cleaned.codes
    if not isinstance(values, np.ndarray):
        return _rank_texts(values, codes) if column.data_type.is_text else _rank_bytes(values, codes)
    if column.data_type is DataType.BIG_DECIMAL:
        return _rank_decimals(column, values, codes)
    ordered, ranks = np.unique(values, return_inverse=True)
    disk = STORAGE[column.data_type].disk
    assert disk is not None
    entries = ordered.astype(disk)
    return Ranked(entries, ordered[0].item(), ordered[-1].item(), ranks.astype(np.int32)[codes])


def _rank_decimals(column: Column, values: Numbers, codes: Codes) -> Ranked:
    # Only the default keeps its zeros, all other values were stripped of them.
    if len({value.as_tuple() for value in values[values == column.default].tolist()}) > 1:
        raise BuildError(
            f"Column {column.name} holds its defaultNullValue with other zeros at its end",
            why="Pinot keeps both, in an order that is chance",
            hint="Strip the zeros at the end of defaultNullValue.",
        )
    ordered, ranks = np.unique(values, return_inverse=True)
    entries = pa.array(map(decimal_bytes, ordered), pa.large_binary())
    return Ranked(entries, ordered[0], ordered[-1], ranks.astype(np.int32)[codes])


def _rank_bytes(values: pa.LargeBinaryArray, codes: Codes) -> Ranked:
    ordered, ranks = _ordered(values, values)
    return Ranked(ordered, ordered[0].as_py(), ordered[-1].as_py(), ranks[codes])


def _rank_texts(texts: pa.LargeBinaryArray, codes: Codes) -> Ranked:
    halves = _has_halves(texts)
    ordered, ranks = _ordered(texts, _utf16_keys(texts, halves))
    lowest, highest = (ordered[i].as_py().decode("utf-8", "surrogatepass") for i in (0, -1))
    return Ranked(_with_question_marks(ordered) if halves else ordered, lowest, highest, ranks[codes])


def _ordered(values: pa.LargeBinaryArray, keys: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, Codes]:
    """Distinct values by their keys, and each value's rank."""
    order = pc.array_sort_indices(keys)
    ordered = values.take(order)
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order.to_numpy()] = np.cumsum(first, dtype=np.int32) - 1
    return ordered if first.all() else ordered.filter(pa.array(first)), ranks


def binary_buffers(values: pa.LargeBinaryArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Offsets and bytes of a large_binary array."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    return ends, np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)


def _has_halves(texts: pa.LargeBinaryArray) -> bool:
    """Whether a surrogate stands alone in some text (ED A0 to ED BF, impossible in true UTF-8)."""
    _, data = binary_buffers(texts)
    lead = np.flatnonzero(data[:-1] == 0xED)
    return bool((data[lead + 1] >= 0xA0).any())


def _utf16_keys(texts: pa.LargeBinaryArray, halves: bool) -> pa.LargeBinaryArray:
    """Keys whose byte order is the texts' UTF-16 order.

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


def _with_question_marks(texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The bytes Java makes of the texts: a lone surrogate becomes `?`."""
    stored = [data.decode("utf-8", "surrogatepass").encode("utf-8", "replace") for data in texts.to_pylist()]
    return pa.array(stored, pa.large_binary())
