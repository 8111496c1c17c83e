"""Raw forward indexes, versions 2 to 6 (docs/design/segment-format.md#s7).

Rows of variable width become records of bytes (#s7-4). Records are put into chunks, and a codec compresses
each chunk (#s7-5). LZ4 and GZIP give the same bytes as Pinot's libraries. Snappy and zstd give valid blocks
whose bytes depend on the library's version; Pinot can read them anyway.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.errors import BuildError
from pinot_assets.segment.column.decimals import Numbers
from pinot_assets.segment.column.types import Codec, RawFormat
from pinot_assets.segment.values.distinct import Lengths, binary_array, binary_buffers
from pinot_assets.segment.values.ordered_values import OrderedValues

_IDS = {Codec.PASS_THROUGH: 0, Codec.SNAPPY: 1, Codec.ZSTANDARD: 2, Codec.LZ4: 3, Codec.GZIP: 5}
_LZ4_LENGTH_PREFIXED = 4
_LIBRARIES = {
    Codec.LZ4: pa.Codec("lz4_raw"),
    Codec.SNAPPY: pa.Codec("snappy"),
    Codec.ZSTANDARD: pa.Codec("zstd", compression_level=3),
}
_GZIP_LEVEL = 6


def codec_id(codec: Codec, *, little_endian: bool) -> int:
    """Return the codec's number in a header (`ChunkCompressionType`).

    :param little_endian: whether the chunks are those of versions 4 to 6 for variable width, where LZ4
        stores the length, too.
    """
    return _LZ4_LENGTH_PREFIXED if codec is Codec.LZ4 and little_endian else _IDS[codec]


def compressed(codec: Codec, chunk: bytes, *, little_endian: bool) -> bytes:
    """Return one chunk as it is stored."""
    if codec is Codec.PASS_THROUGH:
        return chunk
    length = struct.pack("<i" if little_endian else ">i", len(chunk))
    if codec is Codec.GZIP:
        # In spite of its name a zlib stream. isal and zlib-ng compress differently from Java's zlib.
        return zlib.compress(chunk, _GZIP_LEVEL) + length
    packed: bytes = _LIBRARIES[codec].compress(chunk, asbytes=True)
    return length + packed if codec is Codec.LZ4 and little_endian else packed


Offsets = npt.NDArray[np.int64]


class Records:
    """A column's records, made for a range of rows at a time, to avoid a copy of the column.

    :ivar ends: where each row's record would end if all were concatenated; begins with 0.
    :ivar bound: the length that Pinot assumes for the longest record; no record is longer.
    """

    def __init__(self, ends: Offsets, bound: int, make: Callable[[int, int], pa.LargeBinaryArray]) -> None:
        self.ends = ends
        self.bound = bound
        self._make = make

    def __len__(self) -> int:
        return len(self.ends) - 1

    def rows(self, start: int, stop: int) -> tuple[Offsets, bytes]:
        """Return where the records of some rows start and the last one ends, and their bytes."""
        offsets, data = binary_buffers(self._make(start, stop))
        return offsets, data.tobytes()


def single_records(values: OrderedValues) -> Records:
    """Return the records of a single-value column of variable width: each value's bytes."""
    lengths = pc.binary_length(values.entries).to_numpy()

    def make(start: int, stop: int) -> pa.LargeBinaryArray:
        return values.entries.take(pa.array(values.ids[start:stop]))

    return Records(_ends(lengths[values.ids]), values.longest, make)


def fixed_records(values: OrderedValues, lengths: Lengths, *, counted: bool) -> Records:
    """Return the records of a multi-value column of fixed width: the values, big-endian.

    :param counted: whether the number of values precedes them; in the versions before 5.
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
        return binary_array(ends[start : stop + 1] - ends[start], data)

    return Records(ends, head + int(lengths.max()) * entries.itemsize, make)


def variable_records(values: OrderedValues, lengths: Lengths) -> Records:
    """Return the records of a multi-value column of variable width: number of values, lengths, bytes."""
    starts = _ends(lengths)
    sizes = pc.binary_length(values.entries).to_numpy()
    upto = _ends(sizes[values.ids])
    row_bytes = np.diff(upto[starts])
    ends = _ends(4 + 4 * lengths + row_bytes)

    def make(start: int, stop: int) -> pa.LargeBinaryArray:
        ids = values.ids[starts[start] : starts[stop]]
        heads = _counted(sizes[ids].astype(">u4"), lengths[start:stop], 1)
        head_ends = _ends(4 + 4 * lengths[start:stop])
        body_ends = upto[starts[start : stop + 1]]
        _, data = binary_buffers(values.entries.take(pa.array(ids)))
        parts = binary_array(head_ends, heads), binary_array(body_ends - body_ends[0], data)
        return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))

    return Records(ends, 4 + 4 * int(lengths.max()) + int(row_bytes.max()), make)


def _counted(data: Numbers, lengths: Lengths, words: int) -> Numbers:
    """Return the words of all rows, with each row's number of values before its words."""
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


_MAX_INT = 2**31 - 1
_MAX_CHUNKS = 2**32
_MIN_CHUNK = 4096
_HEADER = struct.Struct(">iiiiiii")
_HUGE = 1 << 31


def raw_index(name: str, values: OrderedValues, lengths: Lengths | None, how: RawFormat) -> bytes:
    """Return a column's forward index without dictionary (`ForwardIndexCreatorFactory`).

    :param name: column name, for errors.
    :param lengths: each row's number of elements, None for a single-value column.
    :raises BuildError: the index or one of its chunks would be too large.
    """
    is_fixed = isinstance(values.entries, np.ndarray)
    if lengths is None:
        return _fixed_chunks(name, values, how) if is_fixed else _variable(name, single_records(values), how)
    if is_fixed:
        return _variable(name, fixed_records(values, lengths, counted=how.version < 5), how)
    # Here Pinot always derives the rows of a chunk, whatever the setting is.
    return _variable(name, variable_records(values, lengths), replace(how, derive_docs=True))


def _variable(name: str, records: Records, how: RawFormat) -> bytes:
    return _dynamic_chunks(name, records, how) if how.version >= 4 else _counted_chunks(name, records, how)


def _fixed_chunks(name: str, values: OrderedValues, how: RawFormat) -> bytes:
    """Return the index of values of fixed width (`FixedByteChunkForwardIndexWriter`)."""
    entries, ids = values.entries, values.ids
    docs = how.target_docs if how.version < 4 else 1 << (how.target_docs - 1).bit_length()

    def chunk(start: int, stop: int) -> bytes:
        data: bytes = entries[ids[start:stop]].tobytes()
        return data

    return _with_header(name, len(ids), docs, entries.itemsize, how, chunk)


def _counted_chunks(name: str, records: Records, how: RawFormat) -> bytes:
    """Return an index whose chunks have a fixed number of rows (`VarByteChunkForwardIndexWriter`)."""
    docs = max(1, how.target_bytes // (records.bound + 4)) if how.derive_docs else how.target_docs
    if docs * (4 + records.bound) > _MAX_INT:
        raise _too_large(name, f"{docs} rows of up to {records.bound} bytes exceed 2 GiB in one chunk")

    def chunk(start: int, stop: int) -> bytes:
        offsets, data = records.rows(start, stop)
        heads = np.zeros(docs, dtype=">i4")
        heads[: stop - start] = offsets[:-1] + 4 * docs
        return heads.tobytes() + data

    return _with_header(name, len(records), docs, records.bound, how, chunk)


def _with_header(
    name: str, rows: int, docs: int, width: int, how: RawFormat, chunk: Callable[[int, int], bytes]
) -> bytes:
    """Return header, start of each chunk, and chunks, big-endian (`BaseChunkForwardIndexWriter`)."""
    chunks = [
        compressed(how.codec, chunk(start, min(start + docs, rows)), little_endian=False)
        for start in range(0, rows, docs)
    ]
    offset_type = np.dtype(">i4" if how.version == 2 else ">i8")
    sizes = np.array([len(one) for one in chunks], dtype=np.int64)
    first = _HEADER.size + len(chunks) * offset_type.itemsize
    starts = first + np.cumsum(sizes) - sizes
    if how.version == 2 and starts[-1] > _MAX_INT:
        raise _too_large(name, "version 2 has offsets up to 2 GiB", "Set rawIndexWriterVersion to 3 or more.")
    codec = codec_id(how.codec, little_endian=False)
    header = _HEADER.pack(how.version, len(chunks), docs, width, rows, codec, _HEADER.size)
    return b"".join((header, starts.astype(offset_type).tobytes(), *chunks))


def _dynamic_chunks(name: str, records: Records, how: RawFormat) -> bytes:
    """Return an index whose chunks have about the same size (`VarByteChunkForwardIndexWriterV4` to `...V6`).

    A record that does not fit into a chunk gets its own chunk; the top bit of its row number marks that. Any
    other chunk begins with the number of records and where each one starts. A compressed chunk of version 6
    has their lengths instead.
    """
    size = _chunk_size(records.bound, how)
    by_length = how.version >= 6 and how.codec is not Codec.PASS_THROUGH
    # A chunk holds 4 bytes, and for each record 4 bytes and the record.
    filled = records.ends + 4 * np.arange(len(records.ends))
    chunks, heads, start, offset = [], [], 0, 0
    while start < len(records):
        stop = int(np.searchsorted(filled, filled[start] + size - 4, "right")) - 1
        huge = stop == start
        stop = max(stop, start + 1)
        starts, data = records.rows(start, stop)
        if not huge:
            count = stop - start
            places = np.diff(starts) if by_length else starts[:-1] + 4 * (count + 1)
            data = np.append(count, places).astype("<i4").tobytes() + data
        packed = compressed(how.codec, data, little_endian=True)
        if offset >= _MAX_CHUNKS:
            raise _too_large(name, "its compressed chunks exceed 4 GiB")
        heads += [start | _HUGE if huge else start, offset]
        chunks.append(packed)
        offset += len(packed)
        start = stop
    codec = codec_id(how.codec, little_endian=True)
    header = struct.pack(">iiii", how.version, size, codec, 16 + 4 * len(heads))
    return b"".join((header, np.array(heads, dtype="<u4").tobytes(), *chunks))


def _chunk_size(bound: int, how: RawFormat) -> int:
    """Return the chunk size as `ForwardIndexUtils.getDynamicTargetChunkSize` does."""
    size = bound * how.target_docs
    if how.target_docs < 0 or size > _MAX_INT:
        return max(how.target_bytes, _MIN_CHUNK)
    return max(min(size, how.target_bytes), _MIN_CHUNK)


def _too_large(name: str, why: str, hint: str = "Put fewer rows into a segment.") -> BuildError:
    return BuildError(f"The raw forward index of column {name} is too large", why=why, hint=hint)
