"""One column of a segment: what metadata says of it, and its buffers."""

from __future__ import annotations

import numpy as np

from pinot_assets.segment.column.fields import Column
from pinot_assets.segment.config.indexes import Indexes
from pinot_assets.segment.config.segment_spec import SegmentSpec
from pinot_assets.segment.indexes.dictionary import dictionary
from pinot_assets.segment.indexes.extra import index_buffers, partitions_of
from pinot_assets.segment.indexes.forward import (
    bits_per_value,
    check_size,
    entry_dictionary,
    fixed_bit,
    multi_value,
    sorted_index,
)
from pinot_assets.segment.indexes.raw import raw_index
from pinot_assets.segment.indexes.roaring import roaring
from pinot_assets.segment.values.dictionary_choice import uses_dictionary
from pinot_assets.segment.values.dictionary_order import order_values
from pinot_assets.segment.values.multi_value import Lengths
from pinot_assets.segment.values.normalize import Normalized
from pinot_assets.segment.values.value_stats import unordered_values
from pinot_assets.segment.write.metadata import BuiltColumn, BuiltPartitions


def build_column(
    spec: SegmentSpec, column: Column, cleaned: Normalized
) -> tuple[BuiltColumn, int, dict[str, bytes]]:
    """The column as metadata shows it, its number of nulls, and its buffers in file order.

    :raises BuildError: a buffer would be too large, or a value has no partition.
    """
    values = (order_values if column.encoding.has_dictionary else unordered_values)(column, cleaned)
    how = spec.partitionings.get(column.name)
    one = BuiltColumn(
        column,
        values,
        is_sorted=column.single_value and values.ascending,
        has_dictionary=uses_dictionary(column, values.cardinality, len(cleaned.is_null)),
        longest_row=0 if cleaned.lengths is None else int(cleaned.lengths.max()),
        partitions=None if how is None else BuiltPartitions(how, partitions_of(column, how, cleaned)),
    )
    parts: dict[str, bytes] = {}
    if one.has_dictionary:
        parts["dictionary"] = dictionary(
            column.name, column.data_type, values, column.encoding.variable_length
        )
    parts["forward_index"] = _forward_index(one, cleaned.lengths)
    wanted = spec.indexes.get(column.name, Indexes())
    parts |= index_buffers(column, wanted, cleaned, values, one.is_sorted)
    nulls = int(cleaned.is_null.sum())
    if column.nullable and nulls:
        parts["nullvalue_vector"] = roaring(np.flatnonzero(cleaned.is_null).astype(np.uint32))
    return one, nulls, dict(sorted(parts.items()))


def _forward_index(one: BuiltColumn, lengths: Lengths | None) -> bytes:
    encoding, ids = one.column.encoding, one.values.ids
    if not one.has_dictionary:
        return raw_index(one.column.name, one.values, lengths, encoding.raw)
    bits = bits_per_value(one.values.cardinality)
    check_size(one.column.name, len(ids), bits)
    if lengths is not None:
        return (entry_dictionary if encoding.entry_dictionary else multi_value)(ids, lengths, bits)
    return sorted_index(ids) if one.is_sorted else fixed_bit(ids, bits)
