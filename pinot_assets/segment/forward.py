"""Forward indexes of dictionary-encoded single-value columns, fixed-bit and sorted (spec 6.4, 6.5)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_DIRECT = {8: ">u1", 16: ">u2", 32: ">u4"}


def bits_per_value(cardinality: int) -> int:
    """Bits of one dictionary id (`PinotDataBitSet.getNumBitsPerValue`)."""
    return max(1, (cardinality - 1).bit_length())


def is_sorted(ids: npt.NDArray[np.int32]) -> bool:
    """Whether no row's dictionary id is below the one before; ids rank values, so this sorts values too."""
    return bool(np.all(ids[1:] >= ids[:-1]))


def sorted_index(ids: npt.NDArray[np.int32]) -> bytes:
    """First and last row (inclusive) of each dictionary id.

    :param ids: ascending dictionary ids without gaps (`SingleValueSortedForwardIndexCreator`).
    """
    first = np.flatnonzero(np.diff(ids, prepend=-1))
    last = np.append(first[1:] - 1, len(ids) - 1)
    return np.column_stack((first, last)).astype(">i4").tobytes()


def fixed_bit(ids: npt.NDArray[np.int32], bits: int) -> bytes:
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


def _byte(eight: npt.NDArray[np.uint32], bits: int, byte: int) -> npt.NDArray[np.uint32]:
    """One byte column of the packed groups."""
    value = np.zeros(eight.shape[1], dtype=np.uint32)
    for i in range(byte * 8 // bits, min(7, (byte * 8 + 7) // bits) + 1):
        shift = (i + 1) * bits - (byte + 1) * 8  # how far the id's last bit lies behind the byte's
        value |= eight[i] >> np.uint32(shift) if shift >= 0 else eight[i] << np.uint32(-shift)
    return value & np.uint32(0xFF)
