"""A column with dictionary: the bytes of the dictionary, and the forward indexes of its ids.

A forward index is fixed-bit, sorted or multi-value. Source: docs/design/segment-format.md#s6-2 to #s6-7.
"""

from __future__ import annotations

import logging
import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.errors import BuildError
from pinot_assets.segment.column.types import DataType, Encoding
from pinot_assets.segment.values.distinct import Codes, Lengths, binary_array, binary_buffers
from pinot_assets.segment.values.ordered_values import OrderedValues

_MAX_INT = 2**31 - 1
_VALUES_PER_CHUNK = 2048
_ENTRY_DICTIONARY = 0xFFABCDEF
_ENTRY_HEADER = 24
_FEW_IDS = 2000
_DIRECT = {8: ">u1", 16: ">u2", 32: ">u4"}


def bits_per_value(cardinality: int) -> int:
    """Return the bits of one dictionary id (`PinotDataBitSet.getNumBitsPerValue`)."""
    return max(1, (cardinality - 1).bit_length())


def check_size(name: str, values: int, bits: int) -> None:
    """Check that Pinot could map a forward index of this size (docs/design/segment-format.md#s12).

    :raises BuildError: it could not.
    """
    size = values * (bits + 1) // 8  # a multi-value index has one more bit for each value
    if max(size, values) >= _MAX_INT:
        raise BuildError(
            f"The forward index of column {name} is too large",
            why=f"{values} values of {bits} bits each; Pinot's limit is 2 GiB",
            hint="Put fewer rows into a segment.",
        )


def sorted_index(ids: Codes) -> bytes:
    """Return first and last row (inclusive) of each dictionary id.

    :param ids: ascending dictionary ids without gaps (`SingleValueSortedForwardIndexCreator`).
    """
    first = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    rows = np.empty((len(first), 2), dtype=">i4")
    rows[:, 0] = first
    rows[:-1, 1] = first[1:] - 1
    rows[-1, 1] = len(ids) - 1
    return rows.tobytes()


def fixed_bit(ids: Codes, bits: int) -> bytes:
    """Return dictionary ids in `bits` bits each, most significant first (`FixedBitSVForwardIndexWriter`).

    Eight ids take exactly `bits` bytes. So the ids are arranged in rows of eight, and every output byte is
    the union of the few ids that overlap it. A few ids are not worth so many steps: their bits are spread
    over one byte each, which takes more memory, but a tenth of the time.
    """
    if bits == 1:
        return np.packbits(ids.astype(np.uint8)).tobytes()
    if bits in _DIRECT:
        return ids.astype(np.dtype(_DIRECT[bits])).tobytes()
    if len(ids) < _FEW_IDS:
        spread = np.unpackbits(ids.astype(">u4").view(np.uint8)).reshape(len(ids), 32)
        return np.packbits(spread[:, -bits:]).tobytes()
    groups = -(-len(ids) // 8)
    eight = np.zeros((8, groups), dtype=np.uint32)
    whole = len(ids) // 8
    eight[:, :whole] = ids[: whole * 8].reshape(whole, 8).T
    rest = ids[whole * 8 :]
    eight[: len(rest), whole:] = rest[:, np.newaxis]
    out = np.empty((groups, bits), dtype=np.uint8)
    for byte in range(bits):
        out[:, byte] = _byte(eight, bits, byte)
    return out.tobytes()[: -(-len(ids) * bits // 8)]


def multi_value(ids: Codes, lengths: Lengths, bits: int) -> bytes:
    """Return the index of rows with several dictionary ids (`FixedBitMVForwardIndexWriter`).

    :param ids: row after row.
    :param lengths: number of ids in each row, at least one.
    """
    starts = np.cumsum(lengths) - lengths
    average = len(ids) // len(lengths)  # Pinot also divides integers here
    rows_per_chunk = -(-_VALUES_PER_CHUNK // average)
    is_start = np.zeros(len(ids), dtype=np.uint8)
    is_start[starts] = 1
    offsets = starts[::rows_per_chunk].astype(">i4")
    return offsets.tobytes() + np.packbits(is_start).tobytes() + fixed_bit(ids, bits)


def entry_dictionary(ids: Codes, lengths: Lengths, bits: int) -> bytes:
    """Return a dictionary of whole rows, in the order of their first appearance (codec `MV_ENTRY_DICT`).

    Source: `FixedBitMVEntryDictForwardIndexWriter`.
    """
    ends = np.concatenate(([0], np.cumsum(lengths)))
    rows = binary_array(ends * ids.itemsize, ids).dictionary_encode()
    entries = rows.dictionary
    values = np.frombuffer(b"".join(entries.to_pylist()), dtype=np.int32)
    entry_ends = np.concatenate(([0], np.cumsum(pc.binary_length(entries).to_numpy() // 4)))
    id_bits = bits_per_value(len(entries))
    entry_ids = fixed_bit(rows.indices.to_numpy(), id_bits)
    offsets = fixed_bit(entry_ends.astype(np.int32), bits_per_value(len(values) + 1))
    offsets_at = _ENTRY_HEADER + len(entry_ids)
    header = struct.pack(
        ">IhBBiiii",
        _ENTRY_DICTIONARY,
        1,
        bits,
        id_bits,
        len(entries),
        len(values),
        offsets_at,
        offsets_at + len(offsets),
    )
    return b"".join((header, entry_ids, offsets, fixed_bit(values, bits)))


def _byte(eight: npt.NDArray[np.uint32], bits: int, byte: int) -> npt.NDArray[np.uint32]:
    """Return one output byte of every group of eight ids."""
    value = np.zeros(eight.shape[1], dtype=np.uint32)
    for i in range(byte * 8 // bits, min(7, (byte * 8 + 7) // bits) + 1):
        shift = (i + 1) * bits - (byte + 1) * 8  # how far the id's last bit lies behind the byte's
        value |= eight[i] >> np.uint32(shift) if shift >= 0 else eight[i] << np.uint32(-shift)
    return value & np.uint32(0xFF)


MAX_BYTES = 2**31 - 1
_WASTE_TIMES, _WASTE_BYTES = 4, 16 << 20
_LOG = logging.getLogger(__name__)
_SCATTER_ROWS = 1 << 16
_VARIABLE_MAGIC = b".vl;"
_VARIABLE_HEADER = 16


def dictionary(name: str, data_type: DataType, ranked: OrderedValues, encoding: Encoding) -> bytes:
    """Return the bytes of a column's dictionary (`SegmentDictionaryCreator`).

    BYTES and BIG_DECIMAL take the variable-length form as soon as two entries differ in length, whatever is
    configured; texts do if `encoding.by_length`. All take it if the fixed form would begin like it, because
    Pinot decides by the first bytes (trap 27). Only there the bytes differ from Pinot's, which it cannot
    read.

    :param name: column name, for errors.
    :param encoding: what the table config asks for.
    :raises BuildError: the dictionary would be larger than 2 GiB.
    """
    entries = ranked.entries
    if isinstance(entries, np.ndarray):
        return entries.tobytes()
    ends, _ = binary_buffers(entries)
    lengths = np.diff(ends)
    may_spread = encoding.by_length or not data_type.is_text
    if encoding.variable_length or (may_spread and int(lengths.min()) != int(lengths.max())):
        return _variable(name, entries)
    padded = _padded(name, entries)
    if padded[:8] == _VARIABLE_MAGIC + b"\0\0\0\1":
        return _variable(name, entries)
    return padded


def _variable(name: str, entries: pa.LargeBinaryArray) -> bytes:
    """Return magic, version, count, position of the offsets, offsets and bytes (`VarLengthValueWriter`)."""
    ends, data = binary_buffers(entries)
    first = _VARIABLE_HEADER + 4 * len(ends)
    size = first + int(ends[-1])
    if size > MAX_BYTES:
        raise _too_large(name, f"its {len(entries):,} entries take {size:,} bytes, more than 2 GiB")
    header = _VARIABLE_MAGIC + struct.pack(">iii", 1, len(entries), _VARIABLE_HEADER)
    return b"".join((header, (ends + first).astype(">i4").tobytes(), data.tobytes()))


def _padded(name: str, entries: pa.LargeBinaryArray) -> bytes:
    """Return all entries, padded with zeros to the longest."""
    ends, data = binary_buffers(entries)
    lengths = np.diff(ends)
    width = int(lengths.max())
    if width * len(entries) > MAX_BYTES:
        raise _too_large(
            name, f"{len(entries):,} entries padded to the longest of {width:,} bytes exceed 2 GiB"
        )
    _tell_waste(name, width * len(entries), int(lengths.sum()))
    if int(lengths.min()) == width:
        return data.tobytes()
    out = np.zeros(len(entries) * width, dtype=np.uint8)
    shift = np.arange(len(entries), dtype=np.int64) * width - ends[:-1]
    for row in range(0, len(entries), _SCATTER_ROWS):
        rows = slice(row, row + _SCATTER_ROWS)
        start, stop = ends[row], ends[min(row + _SCATTER_ROWS, len(entries))]
        out[np.arange(start, stop) + np.repeat(shift[rows], lengths[rows])] = data[start:stop]
    return out.tobytes()


def _tell_waste(name: str, padded: int, used: int) -> None:
    """Warn if a few long texts make all entries long (docs/design/segment-format.md#s12)."""
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
