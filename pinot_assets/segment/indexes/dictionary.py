"""The bytes of a dictionary (docs/design/segment-format.md#s6-2)."""

from __future__ import annotations

import logging
import struct

import numpy as np
import pyarrow as pa

from pinot_assets.errors import BuildError
from pinot_assets.segment.column.types import DataType
from pinot_assets.segment.values.dictionary_order import OrderedValues
from pinot_assets.segment.values.java_text import binary_buffers

MAX_BYTES = 2**31 - 1
_WASTE_TIMES, _WASTE_BYTES = 4, 16 << 20
_LOG = logging.getLogger(__name__)
_SCATTER_ROWS = 1 << 16
_VARIABLE_MAGIC = b".vl;"
_VARIABLE_HEADER = 16


def dictionary(name: str, data_type: DataType, ranked: OrderedValues, variable_length: bool) -> bytes:
    """A column's dictionary (`SegmentDictionaryCreator`).

    BYTES and BIG_DECIMAL take the variable-length form as soon as two entries differ in length, whatever is
    configured. They also take it where the fixed one would start like it, because Pinot goes by the first
    bytes (trap 27); there alone the bytes differ from Pinot's, which cannot be read.

    :param name: column name, for errors.
    :param variable_length: whether the table config asks for the variable-length form.
    :raises BuildError: the dictionary would be larger than 2 GiB.
    """
    entries = ranked.entries
    if isinstance(entries, np.ndarray):
        return entries.tobytes()
    ends, _ = binary_buffers(entries)
    lengths = np.diff(ends)
    spread = not data_type.is_text and int(lengths.min()) != int(lengths.max())
    if variable_length or spread:
        return _variable(name, entries)
    padded = _padded(name, entries)
    if padded[:8] == _VARIABLE_MAGIC + b"\0\0\0\1":
        return _variable(name, entries)
    return padded


def _variable(name: str, entries: pa.LargeBinaryArray) -> bytes:
    """Magic, version, count, where the offsets start, the offsets, the bytes (`VarLengthValueWriter`)."""
    ends, data = binary_buffers(entries)
    first = _VARIABLE_HEADER + 4 * len(ends)
    size = first + int(ends[-1] - ends[0])
    if size > MAX_BYTES:
        raise _too_large(name, f"its {len(entries)} entries take {size} bytes, more than 2 GiB")
    header = _VARIABLE_MAGIC + struct.pack(">iii", 1, len(entries), _VARIABLE_HEADER)
    offsets = (ends - ends[0] + first).astype(">i4")
    return b"".join((header, offsets.tobytes(), data[ends[0] : ends[-1]].tobytes()))


def _padded(name: str, entries: pa.LargeBinaryArray) -> bytes:
    """All entries padded with zeros to the longest."""
    ends, data = binary_buffers(entries)
    lengths = np.diff(ends)
    width = int(lengths.max())
    if width * len(entries) > MAX_BYTES:
        raise _too_large(name, f"{len(entries)} entries padded to the longest of {width} bytes exceed 2 GiB")
    _tell_waste(name, width * len(entries), int(lengths.sum()))
    if int(lengths.min()) == width:
        return data[ends[0] : ends[-1]].tobytes()
    out = np.zeros(len(entries) * width, dtype=np.uint8)
    shift = np.arange(len(entries), dtype=np.int64) * width - ends[:-1]
    for row in range(0, len(entries), _SCATTER_ROWS):
        rows = slice(row, row + _SCATTER_ROWS)
        start, stop = ends[row], ends[min(row + _SCATTER_ROWS, len(entries))]
        out[np.arange(start, stop) + np.repeat(shift[rows], lengths[rows])] = data[start:stop]
    return out.tobytes()


def _tell_waste(name: str, padded: int, used: int) -> None:
    """A few long texts make all entries long (docs/design/segment-format.md#s12)."""
    if padded > max(_WASTE_TIMES * used, _WASTE_BYTES):
        _LOG.warning(
            "the dictionary of column %s takes %d MB for %d MB of text, padded to the longest: "
            "set varLengthDictionaryColumns or noDictionaryColumns, or a smaller maxLength",
            name,
            padded >> 20,
            used >> 20,
        )


def _too_large(name: str, why: str) -> BuildError:
    return BuildError(
        f"The dictionary of column {name} is too large",
        why=why,
        hint="Set a smaller maxLength, choose a variable-length dictionary or none, or fewer rows a segment.",
    )
