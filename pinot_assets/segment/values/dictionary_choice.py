"""Whether a column gets a dictionary: the one choice of its encoding that its values have a say in."""

from __future__ import annotations

from pinot_assets.segment.column.fields import Column
from pinot_assets.segment.column.types import DataType


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


_SIZES = {
    DataType.INT: 4,
    DataType.LONG: 8,
    DataType.FLOAT: 4,
    DataType.DOUBLE: 8,
    DataType.BOOLEAN: 4,
    DataType.TIMESTAMP: 8,
}
