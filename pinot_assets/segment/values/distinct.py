"""Turn an Arrow column into its distinct values and one code per row, or per element of a list column.

All cleaning then works on distinct values, never on rows. Null elements of a list are dropped; a row with no
other elements is null. In a single-value column a list may have one element; in a multi-value column a single
value is a row of one, as in Pinot (`DataTypeTransformerUtils`).

Source: docs/design/segment-format.md#s5-1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.errors import BuildError

Codes = npt.NDArray[np.int32]
NULL = -1
_SAMPLE = 1 << 14
KEY_BYTES = 8
"""Bytes of a text, after what all texts begin with, that `ordered_values` sorts as one number."""


def distinct(column: pa.ChunkedArray) -> tuple[pa.Array, Codes]:
    """Return the distinct values of a column, and each row's index into them, `NULL` for a null.

    No value is null and each occurs in a row, even if the input is dictionary-encoded with unused or null
    entries, in chunks or a slice (traps 33 and 34). If hardly any value repeats, the few repeats stay: to
    find them would cost more than it saves. Text becomes large_string and bytes large_binary, so that no
    column is too large for its offsets.
    """
    if len(column) == 0:  # no element in any row; there may be no chunk either
        kind = column.type.value_type if pt.is_dictionary(column.type) else column.type
        return pa.array([], kind), np.empty(0, dtype=np.int32)
    if pt.is_dictionary(column.type):
        return _decoded(column)
    if pt.is_string(column.type) or column.type == pa.string_view():
        column = column.cast(pa.large_string())
    elif pt.is_binary(column.type) or column.type == pa.binary_view():
        column = column.cast(pa.large_binary())
    if _hardly_repeats(column):
        if column.null_count == 0:
            return column.combine_chunks(), np.arange(len(column), dtype=np.int32)
        valid = pc.is_valid(column).to_numpy()
        codes = np.where(valid, np.cumsum(valid, dtype=np.int32) - 1, np.int32(NULL))
        return column.filter(pa.array(valid)).combine_chunks(), codes
    is_whole = pt.is_integer(column.type) and column.type.bit_width > 8
    if is_whole and len(column) > _SAMPLE and column.null_count == 0:
        numbers = column.to_numpy()
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < _SAMPLE:
            return _in_range(numbers, low, high)
    if pt.is_boolean(column.type) and column.null_count == 0:
        codes = column.to_numpy().astype(np.int32)
        if codes.any() and not codes.all():
            return pa.array([False, True]), codes
    encoded = column.dictionary_encode()
    # Arrow's hash kernel gives every chunk the whole column's dictionary.
    values = encoded.chunk(0).dictionary
    return values, _codes(encoded.chunks)


def _in_range(numbers: npt.NDArray[np.integer], low: int, high: int) -> tuple[pa.Array, Codes]:
    """Return `distinct` of whole numbers in a small range: to look each up takes a third of hashing it."""
    least = numbers.dtype.type(low)
    codes = (numbers - least).astype(np.int32)
    used = np.zeros(high - low + 1, dtype=bool)
    used[codes] = True
    values = np.flatnonzero(used).astype(numbers.dtype) + least
    return pa.array(values), codes if used.all() else (np.cumsum(used, dtype=np.int32) - 1)[codes]


def _hardly_repeats(column: pa.ChunkedArray) -> bool:
    """Whether a sample of rows from the whole column has hardly any repeats; False for a short column."""
    if len(column) < 4 * _SAMPLE:
        return False
    sample = column.take(pa.array(np.arange(_SAMPLE) * (len(column) // _SAMPLE)))
    # Keeping repeats means sorting more values: with long texts that costs much, with numbers little.
    share = len(sample.unique()) / _SAMPLE
    if not (pt.is_large_string(column.type) or pt.is_large_binary(column.type)):
        return share > 0.95
    return share > 0.995 or (share > 0.975 and _are_short(sample.drop_null().combine_chunks()))


def _are_short(texts: pa.LargeBinaryArray | pa.LargeStringArray) -> bool:
    """Whether a key of `KEY_BYTES` has all that texts do not have in common."""
    texts = texts.cast(pa.large_binary())
    return bool(pc.max(pc.binary_length(texts)).as_py() - common_prefix(texts) <= KEY_BYTES)


def common_prefix(texts: pa.LargeBinaryArray) -> int:
    """Return the length of what all texts begin with, in bytes; there is at least one."""
    bounds = pc.min_max(texts).as_py()
    low, high = bounds["min"], bounds["max"]
    pairs = enumerate(zip(low, high, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(low), len(high)))


def _decoded(column: pa.ChunkedArray) -> tuple[pa.Array, Codes]:
    """Return `distinct` of a dictionary-encoded column, whose chunks may have different dictionaries."""
    starts = np.cumsum([0, *(len(chunk.dictionary) for chunk in column.chunks)])
    codes = _codes(column.chunks)
    row = 0
    for chunk, start in zip(column.chunks, starts, strict=False):
        part = codes[row : row + len(chunk)]
        part[part != NULL] += start
        row += len(chunk)
    entries, inner = distinct(pa.chunked_array([chunk.dictionary for chunk in column.chunks]))
    codes = take(inner, codes)
    used = np.zeros(len(entries), dtype=bool)
    used[codes[codes != NULL]] = True
    if used.all():
        return entries, codes
    renumbered = np.cumsum(used, dtype=np.int32) - 1
    return entries.filter(pa.array(used)), take(renumbered.astype(np.int32), codes)


def _codes(chunks: list[pa.DictionaryArray]) -> Codes:
    """Return the indices of all chunks, `NULL` where null."""
    indices = [
        pc.fill_null(chunk.indices.cast(pa.int32()), NULL) if chunk.indices.null_count else chunk.indices
        for chunk in chunks
    ]
    return np.concatenate([one.to_numpy() for one in indices]).astype(np.int32, copy=False)


def binary_buffers(texts: pa.LargeBinaryArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the offsets (one more than texts, beginning with 0), and the bytes."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return ends - ends[0], np.frombuffer(data or b"", dtype=np.uint8)[ends[0] : ends[-1]]


def binary_array(ends: npt.NDArray[np.integer], data: npt.NDArray[np.generic]) -> pa.LargeBinaryArray:
    """Return the array of such offsets and bytes: the inverse of `binary_buffers`."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends) - 1, buffers)


def take(mapping: Codes, codes: Codes) -> Codes:
    """Return `mapping[code]` for every code; `NULL` stays `NULL`."""
    if len(mapping) == 0:
        return codes
    mapped = mapping[codes]
    mapped[codes == NULL] = NULL
    return mapped


def is_sorted(ids: Codes) -> bool:
    """Whether no row's id is below the one before. Ids are ranks, so the values are then sorted, too."""
    return bool(np.all(ids[1:] >= ids[:-1]))


Lengths = npt.NDArray[np.int64]


def is_list(kind: pa.DataType) -> bool:
    """Whether an Arrow type is a list, so that a row may hold several values."""
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def elements(data: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Lengths]:
    """Return all elements of a column, null ones included, and how many each row has."""
    if not is_list(data.type):
        return data, np.ones(len(data), dtype=np.int64)
    lengths = pc.fill_null(pc.list_value_length(data), 0).to_numpy()
    return pc.list_flatten(data), lengths.astype(np.int64, copy=False)


def only_elements(name: str, data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a list column as single values.

    :raises BuildError: a row has more than one element that is not null.
    """
    values, lengths = elements(data)
    valid = np.flatnonzero(pc.is_valid(values).to_numpy())
    rows = np.repeat(np.arange(len(lengths)), lengths)[valid]
    if (rows[1:] == rows[:-1]).any():
        raise BuildError(
            f"Column {name} is single-value, but a row holds several values",
            hint="Make it multi-value in the schema, or keep one value.",
        )
    place = np.zeros(len(lengths), dtype=np.int64)
    place[rows] = valid
    empty = np.ones(len(lengths), dtype=bool)
    empty[rows] = False
    return values.take(pa.array(place, mask=empty))


def filled_rows(codes: Codes, lengths: Lengths, fill: int) -> tuple[Codes, Lengths, npt.NDArray[np.bool_]]:
    """Drop null elements; return the codes, each row's length, and which rows were null.

    :param codes: one code per element, `NULL` for a null one.
    :param fill: the code that becomes the only element of a null row.
    """
    kept = codes != NULL
    ends = np.cumsum(lengths)
    upto = np.concatenate(([0], np.cumsum(kept)))
    lengths = upto[ends] - upto[ends - lengths]
    is_null = lengths == 0
    lengths = np.maximum(lengths, 1)
    filled = np.full(int(lengths.sum()), fill, dtype=np.int32)
    given = np.ones(len(filled), dtype=bool)
    given[(np.cumsum(lengths) - lengths)[is_null]] = False
    filled[given] = codes[kept]
    return filled, lengths, is_null
