"""Forward indexes without dictionary, versions 2 to 5 (docs/design/segment-format.md#s7)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pinot_assets.errors import BuildError
from pinot_assets.segment.column.encoding import RawFormat
from pinot_assets.segment.indexes.codec import codec_id, compressed
from pinot_assets.segment.indexes.records import Records, fixed_records, single_records, variable_records
from pinot_assets.segment.values.dictionary_order import OrderedValues
from pinot_assets.segment.values.multi_value import Lengths

_MAX_INT = 2**31 - 1
_MAX_CHUNKS = 2**32
_MIN_CHUNK = 4096
_HEADER = struct.Struct(">iiiiiii")
_HUGE = 1 << 31


def raw_index(name: str, values: OrderedValues, lengths: Lengths | None, how: RawFormat) -> bytes:
    """A column's forward index without dictionary (`ForwardIndexCreatorFactory`).

    :param name: column name, for errors.
    :param lengths: each row's number of elements, None for a single-value column.
    :raises BuildError: the index or a chunk of it would be too large.
    """
    is_fixed = isinstance(values.entries, np.ndarray)
    if lengths is None:
        return _fixed_chunks(name, values, how) if is_fixed else _variable(name, single_records(values), how)
    if is_fixed:
        return _variable(name, fixed_records(values, lengths, counted=how.version != 5), how)
    # Pinot always derives the rows of a chunk here.
    return _variable(name, variable_records(values, lengths), replace(how, derive_docs=True))


def _variable(name: str, records: Records, how: RawFormat) -> bytes:
    return _dynamic_chunks(name, records, how) if how.version >= 4 else _counted_chunks(name, records, how)


def _fixed_chunks(name: str, values: OrderedValues, how: RawFormat) -> bytes:
    """Values of fixed width (`FixedByteChunkForwardIndexWriter`)."""
    entries, ids = values.entries, values.ids
    docs = how.target_docs if how.version < 4 else 1 << (how.target_docs - 1).bit_length()

    def chunk(start: int, stop: int) -> bytes:
        data: bytes = entries[ids[start:stop]].tobytes()
        return data

    return _with_header(name, len(ids), docs, entries.itemsize, how, chunk)


def _counted_chunks(name: str, records: Records, how: RawFormat) -> bytes:
    """Records in chunks of so many rows each (`VarByteChunkForwardIndexWriter`)."""
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
    """Header, where each chunk starts, and the chunks, big-endian (`BaseChunkForwardIndexWriter`)."""
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
    """Records in chunks of about the same size (`VarByteChunkForwardIndexWriterV4`, `...V5`).

    A record that does not fit into a chunk makes one of its own, which is marked by the top bit of its row.
    """
    size = _chunk_size(records.bound, how)
    # A chunk holds 4 bytes, and for each record 4 bytes and its own.
    filled = records.ends + 4 * np.arange(len(records.ends))
    chunks, heads, start, offset = [], [], 0, 0
    while start < len(records):
        stop = int(np.searchsorted(filled, filled[start] + size - 4, "right")) - 1
        huge = stop == start
        stop = max(stop, start + 1)
        starts, data = records.rows(start, stop)
        if not huge:
            count = stop - start
            data = np.append(count, starts[:-1] + 4 * (count + 1)).astype("<i4").tobytes() + data
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
    """`ForwardIndexUtils.getDynamicTargetChunkSize`."""
    wanted = bound * how.target_docs
    if how.target_docs < 0 or wanted > _MAX_INT:
        return max(how.target_bytes, _MIN_CHUNK)
    return max(min(wanted, how.target_bytes), _MIN_CHUNK)


def _too_large(name: str, why: str, hint: str = "Put fewer rows into a segment.") -> BuildError:
    return BuildError(f"The raw forward index of column {name} is too large", why=why, hint=hint)
