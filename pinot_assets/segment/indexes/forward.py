"""Forward indexes of dictionary ids: fixed-bit, sorted, multi-value.

Source: docs/design/segment-format.md#s6-4 to #s6-7.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.errors import BuildError
from pinot_assets.segment.values.distinct import Codes
from pinot_assets.segment.values.multi_value import Lengths

_MAX_INT = 2**31 - 1
_VALUES_PER_CHUNK = 2048
_ENTRY_DICTIONARY = 0xFFABCDEF
_ENTRY_HEADER = 24
_DIRECT = {8: ">u1", 16: ">u2", 32: ">u4"}


def bits_per_value(cardinality: int) -> int:
    """Bits of one dictionary id (`PinotDataBitSet.getNumBitsPerValue`)."""
    return max(1, (cardinality - 1).bit_length())


def check_size(name: str, values: int, bits: int) -> None:
    """Whether Pinot could map a forward index of so many dictionary ids (docs/design/segment-format.md#s12).

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
    """First and last row (inclusive) of each dictionary id.

    :param ids: ascending dictionary ids without gaps (`SingleValueSortedForwardIndexCreator`).
    """
    first = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    rows = np.empty((len(first), 2), dtype=">i4")
    rows[:, 0] = first
    rows[:-1, 1] = first[1:] - 1
    rows[-1, 1] = len(ids) - 1
    return rows.tobytes()


def fixed_bit(ids: Codes, bits: int) -> bytes:
    """Dictionary ids of `bits` bits each, most significant first (`FixedBitSVForwardIndexWriter`).

    Eight ids make exactly `bits` bytes, so the ids are laid out in rows of eight and every output byte is the
    union of the few ids that overlap it.
    """
    if bits == 1:
        return np.packbits(ids.astype(np.uint8)).tobytes()
    if bits in _DIRECT:
        return ids.astype(np.dtype(_DIRECT[bits])).tobytes()
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
    """Dictionary ids of rows with several values (`FixedBitMVForwardIndexWriter`).

    :param ids: row after row.
    :param lengths: how many ids each row has, at least one.
    """
    starts = np.cumsum(lengths) - lengths
    average = len(ids) // len(lengths)  # an integer division in Pinot, too
    rows_per_chunk = -(-_VALUES_PER_CHUNK // average)
    is_start = np.zeros(len(ids), dtype=np.uint8)
    is_start[starts] = 1
    offsets = starts[::rows_per_chunk].astype(">i4")
    return offsets.tobytes() + np.packbits(is_start).tobytes() + fixed_bit(ids, bits)


def entry_dictionary(ids: Codes, lengths: Lengths, bits: int) -> bytes:
    """A dictionary of whole rows, in the order of their first appearance (codec `MV_ENTRY_DICT`).

    Source: `FixedBitMVEntryDictForwardIndexWriter`.
    """
    ends = np.concatenate(([0], np.cumsum(lengths)))
    buffers = [None, pa.py_buffer(ends * ids.itemsize), pa.py_buffer(np.ascontiguousarray(ids))]
    rows = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), buffers).dictionary_encode()
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
    """One byte column of the packed groups."""
    value = np.zeros(eight.shape[1], dtype=np.uint32)
    for i in range(byte * 8 // bits, min(7, (byte * 8 + 7) // bits) + 1):
        shift = (i + 1) * bits - (byte + 1) * 8  # how far the id's last bit lies behind the byte's
        value |= eight[i] >> np.uint32(shift) if shift >= 0 else eight[i] << np.uint32(-shift)
    return value & np.uint32(0xFF)
