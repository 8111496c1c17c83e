"""One column of a segment: what metadata says of it, and its buffers."""

from __future__ import annotations

import numpy as np

from pinot_assets.segment.column.types import Column, DataType
from pinot_assets.segment.config.indexes import Indexes
from pinot_assets.segment.config.segment_spec import SegmentSpec
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
from pinot_assets.segment.values.distinct import Lengths
from pinot_assets.segment.values.java_text import java_texts, plain_texts
from pinot_assets.segment.values.normalize import Normalized
from pinot_assets.segment.values.ordered_values import OrderedValues, order_values, unordered_values
from pinot_assets.segment.values.partition import partition_values
from pinot_assets.segment.write.metadata import BuiltColumn

_SIZES = {
    DataType.INT: 4,
    DataType.LONG: 8,
    DataType.FLOAT: 4,
    DataType.DOUBLE: 8,
    DataType.BOOLEAN: 4,
    DataType.TIMESTAMP: 8,
}


def build_column(spec: SegmentSpec, column: Column, cleaned: Normalized) -> BuiltColumn:
    """The column as metadata shows it, and its buffers by their ids.

    :raises BuildError: a buffer would be too large, a bloom filter would have no bit, or a value has no
        partition.
    """
    values = (order_values if column.encoding.has_dictionary else unordered_values)(column, cleaned)
    is_sorted = column.single_value and values.ascending
    has_dictionary = uses_dictionary(column, values.cardinality, len(cleaned.is_null))
    buffers: dict[str, bytes] = {}
    if has_dictionary:
        buffers["dictionary"] = dictionary(
            column.name, column.data_type, values, column.encoding.variable_length
        )
        buffers["forward_index"] = _forward_index(column, values, cleaned.lengths)
    else:
        buffers["forward_index"] = raw_index(column.name, values, cleaned.lengths, column.encoding.raw)
    wanted = spec.indexes.get(column.name, Indexes())
    if wanted.bloom is not None:
        texts = java_texts(column.data_type, cleaned.values)
        buffers["bloom_filter"] = bloom_filter(column.name, texts, values.cardinality, wanted.bloom)
    if wanted.inverted and not is_sorted:  # the forward index of a sorted column serves as inverted index
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
        values,
        is_sorted,
        has_dictionary,
        longest_row=0 if cleaned.lengths is None else int(cleaned.lengths.max()),
        nulls=int(cleaned.is_null.sum()),
        cut=cleaned.cut,
        partitioning=how,
        partitions=partitions,
        buffers=dict(sorted(buffers.items())),
    )


def uses_dictionary(column: Column, cardinality: int, rows: int) -> bool:
    """Whether the column gets a dictionary (`DictionaryIndexType.ignoreDictionaryOverride`).

    :param cardinality: number of distinct values.
    """
    encoding = column.encoding
    if not encoding.has_dictionary or encoding.optimize is None:
        return encoding.has_dictionary
    size = _SIZES.get(column.data_type)
    if size is None:
        ratio = encoding.optimize.cardinality_ratio
        return ratio is None or ratio * rows > cardinality
    bits = max(1, (cardinality - 1).bit_length())
    with_dictionary = cardinality * size + -(-rows * bits // 8)
    return rows * size / with_dictionary > encoding.optimize.size_ratio


def _forward_index(column: Column, values: OrderedValues, lengths: Lengths | None) -> bytes:
    """The forward index of dictionary ids."""
    ids, bits = values.ids, bits_per_value(values.cardinality)
    check_size(column.name, len(ids), bits)
    if lengths is not None:
        return (entry_dictionary if column.encoding.entry_dictionary else multi_value)(ids, lengths, bits)
    return sorted_index(ids) if values.ascending else fixed_bit(ids, bits)
