"""The hash functions of Pinot's partition functions and bloom filters, and the texts that they hash.

Texts are Arrow large_binary arrays of UTF-8. Half a surrogate pair is encoded as its own three bytes (see
`normalize`), because Java's `String` keeps it; `as_utf8` replaces it by `?`, as Java's encoder does.

Source: `MurmurHashFunctions`, `String.hashCode`, `Arrays.hashCode` and Guava's `murmur3_128`;
docs/design/segment-format.md#s9 and #s10. All except `string_hash` hash any bytes; for texts, pass what
`as_utf8` returns. They work block by block: one step hashes the next block of every value that has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.segment.column.decimals import Decimals, Numbers, Values
from pinot_assets.segment.column.types import DataType, java_double, java_float
from pinot_assets.segment.values.distinct import binary_array, binary_buffers


def has_halves(texts: pa.LargeBinaryArray) -> bool:
    """Whether any text has a surrogate without its other half (ED A0 to ED BF, impossible in true UTF-8)."""
    _, data = binary_buffers(texts)
    lead = np.flatnonzero(data[:-1] == 0xED)
    return bool((data[lead + 1] >= 0xA0).any())


def as_utf8(texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Return the bytes that `String.getBytes(UTF_8)` returns: half a surrogate pair becomes `?`."""
    if not has_halves(texts):
        return texts
    encoded = [data.decode("utf-8", "surrogatepass").encode("utf-8", "replace") for data in texts.to_pylist()]
    return pa.array(encoded, pa.large_binary())


def number_texts(numbers: Numbers) -> pa.LargeBinaryArray:
    """Return `Integer.toString`, `Long.toString`, `Float.toString` or `Double.toString` (JDK 19 and later).

    :param numbers: in their stored width, without NaN and -0.0.
    """
    texts = pa.array(numbers).cast(pa.large_string())
    if numbers.dtype.kind == "f":
        # Arrow finds the same shortest digits as Java. Between 1e-3 and 1e7 it also writes them alike, except
        # for the `.0` of whole numbers.
        whole = pc.invert(pc.match_substring(texts, "."))
        # Not a constant: Arrow's first scalar imports pandas, which most commands do not need at start.
        point_zero = (pa.scalar(".0", pa.large_string()), pa.scalar("", pa.large_string()))
        texts = pc.if_else(whole, pc.binary_join_element_wise(texts, *point_zero), texts)
        size = np.abs(numbers)
        other = pa.array((size != 0) & ~((size >= 1e-3) & (size < 1e7)))
        java = java_float if numbers.dtype.itemsize == 4 else java_double
        others = [java(number) for number in pa.array(numbers).filter(other).to_pylist()]
        texts = pc.replace_with_mask(texts, other, pa.array(others, pa.large_string()))
    return texts.cast(pa.large_binary())


_HEX = np.frombuffer(b"".join(f"{byte:02x}".encode() for byte in range(256)), dtype=np.uint8).reshape(256, 2)


def hex_texts(values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Return bytes as lower-case hex (`BytesUtils.toHexString`)."""
    ends, data = binary_buffers(values)
    return binary_array(ends * 2, _HEX[data])


def java_texts(data_type: DataType, values: Values) -> pa.LargeBinaryArray:
    """Return `toString` of a column's stored values (BOOLEAN as 0 and 1, TIMESTAMP in milliseconds)."""
    if isinstance(values, Decimals):
        # `str` of a Decimal follows the same standard as Java's BigDecimal.
        return pa.array([str(value).encode() for value in values.tolist()], pa.large_binary())
    if not isinstance(values, np.ndarray):
        return hex_texts(values) if data_type is DataType.BYTES else values
    return number_texts(values)


def plain_texts(data_type: DataType, values: Values) -> pa.LargeBinaryArray:
    """Return texts as `java_texts` does, but BIG_DECIMAL as `toPlainString`, without an exponent."""
    if isinstance(values, Decimals):
        return pa.array([f"{value:f}".encode() for value in values.tolist()], pa.large_binary())
    return java_texts(data_type, values)


U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Words = TypeVar("Words", U32, U64)

_CHUNK = 1 << 16  # how many texts are hashed together, to bound the memory of a step
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Texts of similar length, longest first.

    :ivar rows: their indices in the whole array.
    """

    rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    data: Bytes

    def blocks(self, width: int) -> Iterator[tuple[int, Bytes]]:
        """Yield for each full block of `width` bytes how many texts (the first) have it, and its bytes."""
        for at in range(0, int(self.lengths[0]) - width + 1, width):
            count = int(np.searchsorted(-self.lengths, -(at + width), side="right"))
            yield count, self.data[self.starts[:count, np.newaxis] + np.arange(at, at + width)]

    def tails(self, width: int) -> tuple[npt.NDArray[np.int64], Bytes]:
        """Return the rest of every text after its full blocks: length, and bytes padded with zeros."""
        left = self.lengths % width
        place = np.arange(width)
        indices = (self.starts + self.lengths - left)[:, np.newaxis] + place
        within = place < left[:, np.newaxis]
        tail = np.zeros((len(self.rows), width), dtype=np.uint8)
        tail[within] = self.data[indices[within]]
        return left, tail


def _chunks(texts: pa.LargeBinaryArray) -> Iterator[_Chunk]:
    ends, data = binary_buffers(texts)
    lengths = np.diff(ends)
    order = np.argsort(-lengths, kind="stable")
    for first in range(0, len(order), _CHUNK):
        rows = order[first : first + _CHUNK]
        yield _Chunk(rows, ends[rows], lengths[rows], data)


def _rotl(value: Words, by: int) -> Words:
    bits = value.dtype.itemsize * 8
    kind = value.dtype.type
    return (value << kind(by)) | (value >> kind(bits - by))


def murmur2(values: pa.LargeBinaryArray) -> U32:
    """Return Kafka's 32-bit murmur2 of each value."""
    m, out = np.uint32(0x5BD1E995), np.empty(len(values), dtype=np.uint32)
    for chunk in _chunks(values):
        h = np.uint32(0x9747B28C) ^ chunk.lengths.astype(np.uint32)
        for count, block in chunk.blocks(4):
            k = block.view("<u4")[:, 0] * m
            k ^= k >> np.uint32(24)
            h[:count] = (h[:count] * m) ^ (k * m)
        left, tail = chunk.tails(4)
        h = np.where(left > 0, (h ^ tail.view("<u4")[:, 0]) * m, h)
        h ^= h >> np.uint32(13)
        h *= m
        out[chunk.rows] = h ^ (h >> np.uint32(15))
    return out


def murmur3_x86_32(values: pa.LargeBinaryArray, seed: int) -> U32:
    """Return the standard 32-bit murmur3 of each value."""
    out = np.empty(len(values), dtype=np.uint32)

    def mixed(k: U32) -> U32:
        return _rotl(k * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)

    for chunk in _chunks(values):
        h = np.full(len(chunk.rows), seed & 0xFFFFFFFF, dtype=np.uint32)
        for count, block in chunk.blocks(4):
            h[:count] = _rotl(h[:count] ^ mixed(block.view("<u4")[:, 0]), 13) * np.uint32(5) + np.uint32(
                0xE6546B64
            )
        h ^= mixed(chunk.tails(4)[1].view("<u4")[:, 0])
        h ^= chunk.lengths.astype(np.uint32)
        h ^= h >> np.uint32(16)
        h *= np.uint32(0x85EBCA6B)
        h ^= h >> np.uint32(13)
        h *= np.uint32(0xC2B2AE35)
        out[chunk.rows] = h ^ (h >> np.uint32(16))
    return out


def murmur3_x64_128(values: pa.LargeBinaryArray) -> tuple[U64, U64]:
    """Return both halves of the standard 128-bit murmur3, with seed 0."""
    high, low = np.empty(len(values), dtype=np.uint64), np.empty(len(values), dtype=np.uint64)

    def first(k: U64) -> U64:
        return _rotl(k * np.uint64(_C1), 31) * np.uint64(_C2)

    def second(k: U64) -> U64:
        return _rotl(k * np.uint64(_C2), 33) * np.uint64(_C1)

    for chunk in _chunks(values):
        h1, h2 = np.zeros((2, len(chunk.rows)), dtype=np.uint64)
        for count, block in chunk.blocks(16):
            k = block.view("<u8")
            one, two = h1[:count], h2[:count]
            one = (_rotl(one ^ first(k[:, 0]), 27) + two) * np.uint64(5) + np.uint64(0x52DCE729)
            two = (_rotl(two ^ second(k[:, 1]), 31) + one) * np.uint64(5) + np.uint64(0x38495AB5)
            h1[:count], h2[:count] = one, two
        tail = chunk.tails(16)[1].view("<u8")
        length = chunk.lengths.astype(np.uint64)
        high[chunk.rows], low[chunk.rows] = _finish(
            h1 ^ first(tail[:, 0]) ^ length, h2 ^ second(tail[:, 1]) ^ length
        )
    return high, low


def murmur3_x64_32(values: pa.LargeBinaryArray, seed: int) -> U32:
    """Return the first 32 bits of the old 128-bit murmur3, which `variant=x64_32` names.

    Unlike the standard it changes its constants with every block, reads the bytes of the tail as signed, and
    adds the length to one half only.
    """
    out = np.empty(len(values), dtype=np.uint32)
    signed_seed = np.uint64(np.int64(np.uint32(seed & 0xFFFFFFFF).astype(np.int32)).astype(np.uint64))
    for chunk in _chunks(values):
        h1 = np.full(len(chunk.rows), np.uint64(0x9368E53C2F6AF274) ^ signed_seed, dtype=np.uint64)
        h2 = np.full(len(chunk.rows), np.uint64(0x586DCD208F7CD3FD) ^ signed_seed, dtype=np.uint64)
        constants = _old_constants(int(chunk.lengths[0]) // 16 + 1)
        for (count, block), (c1, c2) in zip(chunk.blocks(16), constants, strict=False):
            k = block.view("<u8")
            h1[:count], h2[:count] = _old_mix(h1[:count], h2[:count], k[:, 0], k[:, 1], c1, c2)
        left, tail = chunk.tails(16)
        shifted = tail.view(np.int8).astype(np.int64) << (np.arange(16) % 8 * 8)
        k1, k2 = (np.bitwise_xor.reduce(shifted[:, half], axis=1).astype(np.uint64) for half in _HALVES)
        c1, c2 = constants[chunk.lengths // 16].T
        mixed1, mixed2 = _old_mix(h1, h2, k1, k2, c1, c2)
        h1, h2 = np.where(left > 0, mixed1, h1), np.where(left > 0, mixed2, h2)
        h1, _ = _finish(h1, h2 ^ chunk.lengths.astype(np.uint64))
        out[chunk.rows] = (h1 >> np.uint64(32)).astype(np.uint32)
    return out


_HALVES = (slice(0, 8), slice(8, 16))


def _old_constants(count: int) -> U64:
    """Return the two multipliers of every block."""
    constants, c1, c2 = [], _C1, _C2
    for _ in range(count):
        constants.append((c1, c2))
        c1, c2 = (c1 * 5 + 0x7B7D159C) % 2**64, (c2 * 5 + 0x6BCE6396) % 2**64
    return np.array(constants, dtype=np.uint64)


def _old_mix(h1: U64, h2: U64, k1: U64, k2: U64, c1: U64 | np.uint64, c2: U64 | np.uint64) -> tuple[U64, U64]:
    h1 = (h1 ^ (_rotl(k1 * c1, 23) * c2)) + h2
    h2 = (_rotl(h2, 41) ^ (_rotl(k2 * c2, 23) * c1)) + h1
    return h1 * np.uint64(3) + np.uint64(0x52DCE729), h2 * np.uint64(3) + np.uint64(0x38495AB5)


def _finish(h1: U64, h2: U64) -> tuple[U64, U64]:
    """Return the final mix of every 128-bit murmur3; lengths are already mixed in."""
    h1 = h1 + h2
    h1, h2 = _avalanche(h1), _avalanche(h2 + h1)
    h1 = h1 + h2
    return h1, h2 + h1


def _avalanche(k: U64) -> U64:
    k = (k ^ (k >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    k = (k ^ (k >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return k ^ (k >> np.uint64(33))


def string_hash(texts: pa.LargeBinaryArray) -> U32:
    """Return `String.hashCode`: a polynomial in 31 over UTF-16 units, which include lone surrogates."""
    ends, data = binary_buffers(texts)
    if not (data >= 0x80).any():
        return _polynomial(ends, data)
    # Count one unit for each byte that begins a character, and one more for a character of four bytes.
    units = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
    before = np.concatenate(([0], np.cumsum(units)))
    utf16 = data.tobytes().decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass")
    return _polynomial(before[ends], np.frombuffer(utf16, dtype="<u2"))


def byte_array_hash(values: pa.LargeBinaryArray) -> U32:
    """Return `Arrays.hashCode` of bytes, which are signed in Java."""
    ends, data = binary_buffers(values)
    lengths = np.diff(ends)
    start = _powers(int(lengths.max(initial=0)))[lengths]
    return start + _polynomial(ends, data.view(np.int8))


def _powers(highest: int) -> U32:
    """Return 31 to the power of 0, 1, … up to `highest`."""
    powers = np.full(highest + 1, 31, dtype=np.uint32)
    powers[0] = 1
    return np.cumprod(powers, dtype=np.uint32)


def _polynomial(ends: npt.NDArray[np.int64], values: npt.NDArray[np.integer]) -> U32:
    """Return for each text the sum of each value times 31 to the power of how many values follow it."""
    lengths = np.diff(ends)
    powers = _powers(int(lengths.max(initial=0)))
    out = np.zeros(len(lengths), dtype=np.uint32)
    filled = np.flatnonzero(lengths)
    for first in range(0, len(filled), _CHUNK):
        rows = filled[first : first + _CHUNK]
        start, stop = ends[rows[0]], ends[rows[-1] + 1]
        behind = np.repeat(ends[rows + 1], lengths[rows]) - np.arange(start, stop) - 1
        terms = values[start:stop].astype(np.int32).view(np.uint32) * powers[behind]
        out[rows] = np.add.reduceat(terms, ends[rows] - start, dtype=np.uint32)
    return out
