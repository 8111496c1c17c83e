"""Build a Pinot v3 segment from an Arrow table, column by column (docs/design/segment-format.md).

The bytes are the same as those of the row-based builder of Pinot 1.5.1 or 1.6 on JDK 19 or later
(`SegmentSpec.target`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from isal.isal_zlib import adler32

from pinot_assets.errors import BuildError
from pinot_assets.segment.column.decimals import Values
from pinot_assets.segment.column.types import UNSAFE_VALUE, Column, DataType, Default, escaped_key, utf16_key
from pinot_assets.segment.config.segment_spec import Indexes, RowTimes, SegmentSpec
from pinot_assets.segment.functions.time_format import VALID_FROM_MS, VALID_TO_MS
from pinot_assets.segment.indexes.bitmaps import bloom_filter, inverted_index, roaring
from pinot_assets.segment.indexes.dictionary import (
    bits_per_value,
    check_size,
    dictionary,
    entry_dictionary,
    fixed_bit,
    multi_value,
    sorted_index,
)
from pinot_assets.segment.indexes.raw import raw_index
from pinot_assets.segment.values.distinct import Codes, Lengths
from pinot_assets.segment.values.hashing import has_halves, java_texts, plain_texts
from pinot_assets.segment.values.normalize import NOTHING, Cut, Mask, Normalized, normalize
from pinot_assets.segment.values.ordered_values import OrderedValues, order_values, unordered_values
from pinot_assets.segment.values.partition import partition_values
from pinot_assets.segment.values.valid_times import require_valid_times, valid_times
from pinot_assets.segment.write.column_lines import BuiltColumn, value_lengths
from pinot_assets.segment.write.metadata import SegmentTimes, segment_metadata

_MARKER = bytes.fromhex("deadbeefdeafbead")
_HELD = "a comma, ${ or a character beyond U+FFFF"
Order = npt.NDArray[np.int64]
_UNSAFE_NAME = re.compile(r"[/\x00-\x1f\x7f]|^$")


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Statistics of one column, with values in stored form (BOOLEAN as 0 and 1, TIMESTAMP in milliseconds).

    :ivar lowest: smallest value (of a multi-value column, smallest element), nulls replaced by the default.
    :ivar nulls: rows that were null, whether or not the segment records them.
    :ivar cut: how many values lost something.
    """

    name: str
    cardinality: int
    lowest: Default
    highest: Default
    nulls: int
    is_sorted: bool
    cut: Cut = NOTHING


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment in memory.

    :ivar files: the four files of the `v3` directory by name.
    :ivar crc: Adler-32 over all files except `creation.meta`, as Pinot's ZooKeeper metadata shows it.
    :ivar data_crc: Adler-32 over dictionaries and forward indexes only.
    :ivar start_ms: start of the time column in epoch milliseconds, None without one.
    :ivar columns: statistics, in UTF-16 order of the names.
    """

    name: str
    rows: int
    creation_time_ms: int
    crc: int
    data_crc: int
    start_ms: int | None
    end_ms: int | None
    columns: tuple[ColumnStats, ...]
    files: Mapping[str, bytes] = field(repr=False)


def build_segment(
    table: pa.Table,
    spec: SegmentSpec,
    *,
    name: str,
    table_name: str,
    creation_time_ms: int,
    now_ms: int,
    custom: Mapping[str, str] | None = None,
) -> Segment:
    """Build one segment. The same arguments make the same bytes.

    :param table: the rows, in the segment's order unless the table config has a `sortedColumn`. Columns
        that the schema lacks are ignored, missing ones are all null.
    :param name: segment name.
    :param table_name: raw table name, without type suffix.
    :param creation_time_ms: written into `creation.meta`.
    :param now_ms: replaces nulls in the time column if its default lies outside Pinot's valid range.
    :param custom: the segment's custom map.
    :raises BuildError: the table has no rows, or a value does not fit its column.
    """
    return build_and_release(
        dict(zip(table.column_names, table.columns, strict=True)),
        table.num_rows,
        spec,
        name=name,
        table_name=table_name,
        creation_time_ms=creation_time_ms,
        now_ms=now_ms,
        custom=custom,
    )


def build_and_release(
    columns: MutableMapping[str, pa.ChunkedArray],
    rows: int,
    spec: SegmentSpec,
    *,
    name: str,
    table_name: str,
    creation_time_ms: int,
    now_ms: int,
    custom: Mapping[str, str] | None = None,
    null_times: Mask | None = None,
) -> Segment:
    """Build one segment as `build_segment` does, and release each column as soon as it is built.

    Rows and segment are then not in memory as a whole at the same time.

    :param columns: the rows' columns by name; the table's columns are removed from it.
    :param rows: how many rows they have.
    :param null_times: the rows whose time was null before it was filled in `final_rows`; None if none was.
    :raises BuildError: see `build_segment`.
    """
    _check_texts(name, table_name, custom or {})
    if rows == 0:
        raise BuildError(
            f"Segment {name} would have no rows", hint="Treat the file as EMPTY, without a segment."
        )
    first = [column for name in spec.sort_order for column in spec.columns if column.name == name]
    clean = partial(cleaned_column, rows=rows, spec=spec, now_ms=now_ms, null_times=null_times)
    cleaned = {one.name: clean(columns.pop(one.name, None), column=one) for one in first}
    order = row_order([order_values(column, cleaned[column.name]).ids for column in first])
    built: list[BuiltColumn] = []
    for column in spec.columns:
        values = cleaned.pop(column.name, None)
        if values is None:
            values = clean(columns.pop(column.name, None), column=column)
        built.append(build_column(spec, column, values if order is None else reordered(values, order)))
        del values  # before the next column is cleaned
    time_range = _time_range(spec, built)
    payloads = (payload for one in built for payload in one.buffers.values())
    files = {
        "columns.psf": b"".join(part for payload in payloads for part in (_MARKER, payload)),
        "index_map": _index_map(built),
        "metadata.properties": segment_metadata(
            spec, name, table_name, rows, time_range, custom or {}, built
        ),
    }
    crc = 1
    for content in files.values():
        crc = adler32(content, crc)
    data_crc = _data_crc(built)
    files["creation.meta"] = creation_meta(crc, creation_time_ms, data_crc)
    return Segment(
        name=name,
        rows=rows,
        creation_time_ms=creation_time_ms,
        crc=crc,
        data_crc=data_crc,
        start_ms=None if time_range is None else time_range.start * time_range.unit_ms,
        end_ms=None if time_range is None else time_range.end * time_range.unit_ms,
        columns=tuple(
            ColumnStats(
                one.column.name,
                one.cardinality,
                one.lowest,
                one.highest,
                one.nulls,
                one.is_sorted,
                one.cut,
            )
            for one in built
        ),
        files=files,
    )


def cleaned_column(
    data: pa.ChunkedArray | None,
    *,
    column: Column,
    rows: int,
    spec: SegmentSpec,
    now_ms: int,
    null_times: Mask | None = None,
) -> Normalized:
    """Return one column as `build_and_release` counts it; the parameters are described there."""
    if column.name != spec.time_column:
        return normalize(column, data, rows, column.default)
    times = normalize(column, data, rows, _time_fill(spec, now_ms), _row_check(spec))
    return times if null_times is None else replace(times, is_null=null_times)


def _row_check(spec: SegmentSpec) -> Callable[[Values], npt.NDArray[np.bool_]] | None:
    if spec.row_times is RowTimes.ANY or spec.time_column is None or spec.time_format is None:
        return None
    check = require_valid_times if spec.row_times is RowTimes.VALID else valid_times
    return partial(check, spec.time_column, spec.time_format)


def row_order(keys: Sequence[Codes]) -> Order | None:
    """Return the row numbers in the order of their keys, None if the rows are already in order.

    Pinot's batch builder keeps the rows' order; its consuming segments sort by the first `sortedColumn`, its
    merge tasks by all of them. Here all of them are used, and rows with equal keys keep the file's order.

    :param keys: each row's dictionary id in each column to sort by, the most important column first.
    """
    if not keys:
        return None
    order = np.lexsort(keys[::-1])
    return None if (order[1:] > order[:-1]).all() else order


def reordered(cleaned: Normalized, order: Order) -> Normalized:
    """Return a column with its rows in another order."""
    is_null = cleaned.is_null[order]
    if cleaned.lengths is None:
        return replace(cleaned, codes=cleaned.codes[order], is_null=is_null)
    starts = np.cumsum(cleaned.lengths) - cleaned.lengths
    lengths = cleaned.lengths[order]
    before = np.cumsum(lengths) - lengths
    places = np.arange(int(lengths.sum())) + np.repeat(starts[order] - before, lengths)
    return replace(cleaned, codes=cleaned.codes[places], lengths=lengths, is_null=is_null)


def _time_fill(spec: SegmentSpec, now_ms: int) -> Default:
    """Return what replaces a null in the time column (`NullValueTransformerUtils.getDefaultTimeValue`)."""
    assert spec.time_format is not None
    column = next(column for column in spec.columns if column.name == spec.time_column)
    try:
        if VALID_FROM_MS <= spec.time_format.to_ms(str(column.default)) <= VALID_TO_MS:
            return column.default
    except ValueError:
        pass  # Pinot treats a default that is no time of this format like one out of range
    text = spec.time_format.from_ms(now_ms)
    return text if column.data_type.is_text else int(text)


def _time_range(spec: SegmentSpec, built: list[BuiltColumn]) -> SegmentTimes | None:
    """Return start and end: the time column's smallest and largest value (`BaseSegmentCreator`).

    :raises BuildError: a value is no time, or outside Pinot's valid interval.
    """
    if spec.time_format is None:
        return None
    time = next(one for one in built if one.column.name == spec.time_column)
    return times_between(spec, time.lowest, time.highest)


def times_between(spec: SegmentSpec, lowest: Default, highest: Default) -> SegmentTimes:
    """Return start and end of rows whose times are between those two.

    :raises BuildError: see `_time_range`.
    """
    assert spec.time_format is not None
    try:
        start, end = (spec.time_format.bound(str(v)) for v in (lowest, highest))
    except ValueError as error:
        raise BuildError(
            f"Time column {spec.time_column} holds a value that is no time", why=str(error)
        ) from None
    unit_ms = spec.time_format.unit_ms
    if spec.check_time and not (VALID_FROM_MS <= start * unit_ms <= end * unit_ms <= VALID_TO_MS):
        raise BuildError(
            f"Invalid segment start/end time of time column {spec.time_column}",
            why=f"{start} to {end} {spec.time_format.unit} does not lie within 1971-01-01 and 2071-01-01",
            hint="Correct values or format, or set ingestionConfig.segmentTimeValueCheck to false.",
        )
    return SegmentTimes(start, end, spec.time_format.unit, unit_ms)


def _index_map(built: list[BuiltColumn]) -> bytes:
    """Return place and size of each buffer in `columns.psf`, marker included (`SingleFileIndexDirectory`)."""
    lines, offset = [], 0
    for one in built:
        for index, payload in one.buffers.items():
            size = len(_MARKER) + len(payload)
            key = escaped_key(f"{one.column.name}.{index}")
            lines.append(f"{key}.startOffset = {offset}\n{key}.size = {size}\n")
            offset += size
    return "".join(lines).encode()


def _data_crc(built: list[BuiltColumn]) -> int:
    """Return Adler-32 over dictionaries and forward indexes, in the order of their v1 file names.

    Source: docs/design/segment-format.md#s3; trap 3.
    """
    v1_files: dict[str, bytes] = {}
    for one in built:
        name = one.column.name
        if one.has_dictionary:
            v1_files[f"{name}.dict"] = one.buffers["dictionary"]
        v1_files[f"{name}.{_forward_suffix(one)}.fwd"] = one.buffers["forward_index"]
    crc = 1
    for file_name in sorted(v1_files, key=utf16_key):
        crc = adler32(v1_files[file_name], crc)
    return crc


def _forward_suffix(one: BuiltColumn) -> str:
    if one.has_raw_forward:
        return "sv.raw" if one.column.single_value else "mv.raw"
    if not one.column.single_value:
        return "mv"
    return "sv.sorted" if one.is_sorted else "sv.unsorted"


def creation_meta(crc: int, creation_time_ms: int, data_crc: int) -> bytes:
    """Return the 24 bytes of `creation.meta`."""
    return struct.pack(">qqq", crc, creation_time_ms, data_crc)


def _check_texts(name: str, table_name: str, custom: Mapping[str, str]) -> None:
    """Refuse texts that would change when they are read back from a properties file."""
    check_name("segment name", name)
    check_name("table name", table_name)
    for key, value in custom.items():
        if UNSAFE_VALUE.search(key + value) or key != key.strip() or not key:
            raise BuildError(
                f"Custom entry {key!r} cannot be written",
                why=f"its key is empty or has blanks at the edge, or it holds {_HELD}",
            )


def check_name(what: str, text: str) -> None:
    """Refuse a segment or table name that would change in a properties file, or break a path.

    :raises BuildError: names the text and what is wrong with it.
    """
    if _UNSAFE_NAME.search(text) or UNSAFE_VALUE.search(text):
        raise BuildError(
            f"{text!r} cannot be a {what}", why=f"it is empty, has a slash or control character, or {_HELD}"
        )


_SIZES = {
    DataType.INT: 4,
    DataType.LONG: 8,
    DataType.FLOAT: 4,
    DataType.DOUBLE: 8,
    DataType.BOOLEAN: 4,
    DataType.TIMESTAMP: 8,
}


def build_column(spec: SegmentSpec, column: Column, cleaned: Normalized) -> BuiltColumn:
    """Return the column with its buffers, and what its metadata needs.

    :raises BuildError: a buffer would be too large, a bloom filter would have no bit, or a value has no
        partition.
    """
    if spec.target.exact_lengths:
        require_whole_texts(column, cleaned)
    values = (order_values if column.encoding.has_dictionary else unordered_values)(column, cleaned)
    is_sorted = column.single_value and values.ascending
    has_dictionary = uses_dictionary(column, values.cardinality, len(cleaned.is_null))
    has_raw_forward = column.encoding.raw_forward or not has_dictionary
    buffers: dict[str, bytes] = {}
    if has_dictionary:
        buffers["dictionary"] = dictionary(column.name, column.data_type, values, column.encoding)
    if has_raw_forward:
        buffers["forward_index"] = raw_index(column.name, values, cleaned.lengths, column.encoding.raw)
    else:
        buffers["forward_index"] = _forward_index(column, values, cleaned.lengths)
    indexes = spec.indexes.get(column.name, Indexes())
    if indexes.bloom is not None:
        texts = java_texts(column.data_type, cleaned.values)
        buffers["bloom_filter"] = bloom_filter(column.name, texts, values.cardinality, indexes.bloom)
    if indexes.inverted and not is_sorted:  # a sorted column's forward index also serves as inverted index
        buffers["inverted_index"] = inverted_index(
            column.name, values.ids, cleaned.lengths, values.cardinality
        )
    if column.nullable and cleaned.is_null.any():
        buffers["nullvalue_vector"] = roaring(np.flatnonzero(cleaned.is_null).astype(np.uint32))
    how, partitions = spec.partitionings.get(column.name), []
    if how is not None:
        texts = plain_texts(column.data_type, cleaned.values)
        partitions = partition_values(column.name, how, texts, cleaned.codes)
    return BuiltColumn(
        column,
        values.lowest,
        values.highest,
        values.cardinality,
        values.longest if has_dictionary else 0,
        len(values.ids),
        is_sorted,
        has_dictionary,
        has_raw_forward,
        value_lengths(values, cleaned.lengths) if spec.target.exact_lengths else None,
        longest_row=0 if cleaned.lengths is None else int(cleaned.lengths.max()),
        nulls=int(cleaned.is_null.sum()),
        cut=cleaned.cut,
        partitioning=how,
        partitions=partitions,
        buffers=dict(sorted(buffers.items())),
    )


def require_whole_texts(column: Column, cleaned: Normalized) -> None:
    """Refuse half a surrogate pair, as Pinot's builder does from 1.6 on; before, it stores a question mark.

    :raises BuildError: a text has one.
    """
    texts = cleaned.values
    if column.data_type.is_text and isinstance(texts, pa.LargeBinaryArray) and has_halves(texts):
        raise BuildError(
            f"Column {column.name} holds half a surrogate pair",
            why=f"a text of the file has one, or maxLength ({column.max_length}) cuts a character beyond "
            "U+FFFF in two; Pinot 1.6 builds no segment of such a text",
            hint="Correct the text, or set another maxLength.",
        )


def uses_dictionary(column: Column, cardinality: int, rows: int) -> bool:
    """Whether the column gets a dictionary (`DictionaryIndexType.ignoreDictionaryOverride`).

    :param cardinality: number of distinct values.
    """
    encoding = column.encoding
    if not encoding.has_dictionary or encoding.optimize is None:
        return encoding.has_dictionary
    if (size := _SIZES.get(column.data_type)) is None:
        ratio = encoding.optimize.cardinality_ratio
        return ratio is None or ratio * rows > cardinality
    with_dictionary = cardinality * size + -(-rows * bits_per_value(cardinality) // 8)
    return rows * size / with_dictionary > encoding.optimize.size_ratio


def _forward_index(column: Column, values: OrderedValues, lengths: Lengths | None) -> bytes:
    """Return the forward index of dictionary ids."""
    ids, bits = values.ids, bits_per_value(values.cardinality)
    check_size(column.name, len(ids), bits)
    if lengths is not None:
        return (entry_dictionary if column.encoding.entry_dictionary else multi_value)(ids, lengths, bits)
    return sorted_index(ids) if values.ascending else fixed_bit(ids, bits)
