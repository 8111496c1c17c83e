"""What is written of a column beside dictionary, forward index and null vector."""

from __future__ import annotations

from pinot_assets.segment.column.fields import Column
from pinot_assets.segment.config.indexes import Indexes
from pinot_assets.segment.indexes.bloom import bloom_filter
from pinot_assets.segment.indexes.inverted import inverted_index
from pinot_assets.segment.values.dictionary_order import OrderedValues
from pinot_assets.segment.values.java_text import java_texts, plain_texts
from pinot_assets.segment.values.normalize import Normalized
from pinot_assets.segment.values.partition import Partitioning, partition_values


def index_buffers(
    column: Column, wanted: Indexes, cleaned: Normalized, values: OrderedValues, is_sorted: bool
) -> dict[str, bytes]:
    """The indexes by their ids.

    :param is_sorted: whether the column's rows ascend; the forward index serves as inverted index then.
    :raises BuildError: an index would be too large, or a bloom filter would have no bit.
    """
    parts: dict[str, bytes] = {}
    if wanted.bloom is not None:
        texts = java_texts(column.data_type, cleaned.values)
        parts["bloom_filter"] = bloom_filter(column.name, texts, values.cardinality, wanted.bloom)
    if wanted.inverted and not is_sorted:
        parts["inverted_index"] = inverted_index(column.name, values.ids, cleaned.lengths, values.cardinality)
    return parts


def partitions_of(column: Column, how: Partitioning, cleaned: Normalized) -> list[int]:
    """The partitions that a column's rows are in, in Pinot's order of them.

    :raises BuildError: a value has no partition.
    """
    texts = plain_texts(column.data_type, cleaned.values)
    return partition_values(column.name, how, texts, cleaned.codes)
