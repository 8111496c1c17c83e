"""Sorted dictionaries and their bytes (spec sections 6.1 and 6.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.errors import BuildError
from pinot_assets.segment.distinct import Codes
from pinot_assets.segment.text import utf16_key

MAX_BYTES = 2**31 - 1
_SCATTER_ROWS = 1 << 16


@dataclass(frozen=True)
class Dictionary:
    """A column's dictionary.

    :ivar payload: the bytes of the dictionary buffer.
    :ivar entry_bytes: bytes of the longest entry of a text column, 0 for numbers.
    :ivar lowest: first value; text may end in half a surrogate pair.
    :ivar highest: last value.
    :ivar cardinality: number of entries.
    :ivar ids: each row's dictionary id, which is the rank of its value.
    """

    payload: bytes
    entry_bytes: int
    lowest: int | float | str
    highest: int | float | str
    cardinality: int
    ids: Codes


def number_dictionary(
    values: npt.NDArray[np.generic], codes: Codes, disk: np.dtype[np.generic]
) -> Dictionary:
    """Dictionary of numbers.

    :param values: values in any order, repeats allowed, every one used by a row.
    :param codes: each row's index into `values`.
    :param disk: type of an entry, big-endian.
    """
    ordered, rank = np.unique(values, return_inverse=True)
    return Dictionary(
        payload=ordered.astype(disk).tobytes(),
        entry_bytes=0,
        lowest=ordered[0].item(),
        highest=ordered[-1].item(),
        cardinality=len(ordered),
        ids=rank.astype(np.int32)[codes],
    )


def text_dictionary(name: str, texts: pa.Array, codes: Codes) -> Dictionary:
    """Fixed-width dictionary of texts, in UTF-16 order.

    :param name: column name, for errors.
    :param texts: large_binary, in any order, repeats allowed, every one used by a row.
    :param codes: each row's index into `texts`.
    :raises BuildError: the padded dictionary would be larger than 2 GiB.
    """
    halves = _has_halves(texts)
    order = pc.array_sort_indices(_utf16_keys(texts, halves))
    ordered = texts.take(order)
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order.to_numpy()] = np.cumsum(first, dtype=np.int32) - 1
    if not first.all():
        ordered = ordered.filter(pa.array(first))
    lowest, highest = (ordered[i].as_py().decode("utf-8", "surrogatepass") for i in (0, -1))
    payload, width = _padded(name, _with_question_marks(ordered) if halves else ordered)
    return Dictionary(payload, width, lowest, highest, len(ordered), rank[codes])


def _bytes(texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Offsets and bytes of a large_binary array."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return ends, np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)


def _has_halves(texts: pa.Array) -> bool:
    """Whether a surrogate stands alone in some text (ED A0 to ED BF, impossible in true UTF-8)."""
    _, data = _bytes(texts)
    lead = np.flatnonzero(data[:-1] == 0xED)
    return bool((data[lead + 1] >= 0xA0).any())


def _utf16_keys(texts: pa.Array, halves: bool) -> pa.Array:
    """Keys whose byte order is the texts' UTF-16 order.

    UTF-8 sorts as UTF-16 but for U+E000 to U+FFFF (lead bytes EE, EF), which come after the surrogate pairs
    (lead bytes F0 and above) in UTF-16. Lifting these two bytes mends the order.
    """
    if halves:
        keys = [utf16_key(text.decode("utf-8", "surrogatepass")) for text in texts.to_pylist()]
        return pa.array(keys, pa.large_binary())
    ends, data = _bytes(texts)
    if not (data >= 0xF0).any() or not ((data == 0xEE) | (data == 0xEF)).any():
        return texts
    lifted = np.where(data == 0xEE, 0xFE, np.where(data == 0xEF, 0xFF, data)).astype(np.uint8)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(lifted)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(texts), buffers)


def _with_question_marks(texts: pa.Array) -> pa.Array:
    """The bytes Java makes of the texts: a lone surrogate becomes `?`."""
    stored = [data.decode("utf-8", "surrogatepass").encode("utf-8", "replace") for data in texts.to_pylist()]
    return pa.array(stored, pa.large_binary())


def _padded(name: str, texts: pa.Array) -> tuple[bytes, int]:
    """All entries padded with zeros to the longest, and its length (`SegmentDictionaryCreator`)."""
    ends, data = _bytes(texts)
    lengths = np.diff(ends)
    width = int(lengths.max())
    if width * len(texts) > MAX_BYTES:
        raise BuildError(
            f"The dictionary of column {name} is too large",
            why=f"{len(texts)} entries padded to the longest of {width} bytes exceed 2 GiB",
            hint="Set a smaller maxLength or put fewer rows into a segment.",
        )
    if int(lengths.min()) == width:
        return data[ends[0] : ends[-1]].tobytes(), width
    out = np.zeros(len(texts) * width, dtype=np.uint8)
    shift = np.arange(len(texts), dtype=np.int64) * width - ends[:-1]
    for row in range(0, len(texts), _SCATTER_ROWS):
        rows = slice(row, row + _SCATTER_ROWS)
        start, stop = ends[row], ends[min(row + _SCATTER_ROWS, len(texts))]
        out[np.arange(start, stop) + np.repeat(shift[rows], lengths[rows])] = data[start:stop]
    return out.tobytes(), width
