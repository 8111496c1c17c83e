"""One record of bytes per row, as raw forward indexes of variable width hold them.

Source: docs/design/segment-format.md#s7-4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.segment.values.arrays import Numbers
from pinot_assets.segment.values.dictionary_order import OrderedValues, entry_lengths
from pinot_assets.segment.values.java_text import binary_buffers
from pinot_assets.segment.values.multi_value import Lengths

Offsets = npt.NDArray[np.int64]


class Records:
    """A column's records, made for a range of rows at a time, so that no copy of the column is needed.

    :ivar ends: where each row's record ends if all stood one after the other, 0 first.
    :ivar bound: the length that Pinot takes for the longest record; no record is longer.
    """

    def __init__(self, ends: Offsets, bound: int, make: Callable[[int, int], pa.LargeBinaryArray]) -> None:
        self.ends = ends
        self.bound = bound
        self._make = make

    def __len__(self) -> int:
        return len(self.ends) - 1

    def rows(self, start: int, stop: int) -> tuple[Offsets, bytes]:
        """Where the records of some rows start and the last one ends, and their bytes."""
        offsets, data = binary_buffers(self._make(start, stop))
        return offsets - offsets[0], data[offsets[0] : offsets[-1]].tobytes()


def single_records(values: OrderedValues) -> Records:
    """A single-value column of variable width: the value's bytes."""
    lengths = entry_lengths(values.entries).to_numpy()

    def make(start: int, stop: int) -> pa.LargeBinaryArray:
        return values.entries.take(pa.array(values.ids[start:stop]))

    return Records(_ends(lengths[values.ids]), values.longest, make)


def fixed_records(values: OrderedValues, lengths: Lengths, *, counted: bool) -> Records:
    """A multi-value column of fixed width: the values, big-endian.

    :param counted: whether their number comes first, which it does but in version 5.
    """
    entries = values.entries
    assert isinstance(entries, np.ndarray)
    starts = _ends(lengths)
    words = entries.itemsize // 4
    head = 4 if counted else 0
    ends = _ends(head + lengths * entries.itemsize)

    def make(start: int, stop: int) -> pa.LargeBinaryArray:
        data = entries[values.ids[starts[start] : starts[stop]]].view(">u4")
        if counted:
            data = _counted(data, lengths[start:stop], words)
        return _binary(ends[start : stop + 1] - ends[start], data)

    return Records(ends, head + int(lengths.max()) * entries.itemsize, make)


def variable_records(values: OrderedValues, lengths: Lengths) -> Records:
    """A multi-value column of variable width: the number of values, their lengths, their bytes."""
    starts = _ends(lengths)
    sizes = entry_lengths(values.entries).to_numpy()
    upto = _ends(sizes[values.ids])
    row_bytes = np.diff(upto[starts])
    ends = _ends(4 + 4 * lengths + row_bytes)

    def make(start: int, stop: int) -> pa.LargeBinaryArray:
        ids = values.ids[starts[start] : starts[stop]]
        heads = _counted(sizes[ids].astype(">u4"), lengths[start:stop], 1)
        head_ends = _ends(4 + 4 * lengths[start:stop])
        _, _, data = values.entries.take(pa.array(ids)).buffers()
        bodies = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(),
            stop - start,
            [None, pa.py_buffer(upto[starts[start : stop + 1]] - upto[starts[start]]), data],
        )
        return pc.binary_join_element_wise(
            _binary(head_ends, heads), bodies, pa.scalar(b"", pa.large_binary())
        )

    return Records(ends, 4 + 4 * int(lengths.max()) + int(row_bytes.max()), make)


def _counted(data: Numbers, lengths: Lengths, words: int) -> Numbers:
    """Words of all rows, each row's number of values put before it."""
    counts = _ends(lengths * words)[:-1] + np.arange(len(lengths))
    out = np.empty(len(data) + len(lengths), dtype=">u4")
    is_value = np.ones(len(out), dtype=bool)
    is_value[counts] = False
    out[counts] = lengths
    out[is_value] = data
    return out


def _ends(lengths: npt.NDArray[np.integer]) -> Offsets:
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def _binary(ends: Offsets, data: Numbers) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends) - 1, buffers)
