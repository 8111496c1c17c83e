"""Values of a column that needs no order of them, because it is stored without dictionary.

Only the least and the greatest, their number and whether they ascend are written; sorting all of them would
take most of the time that such a column costs.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.segment.column.decimals import Decimals
from pinot_assets.segment.column.fields import Column
from pinot_assets.segment.column.types import Default
from pinot_assets.segment.values.dictionary_order import OrderedValues, order_values, utf16_keys
from pinot_assets.segment.values.distinct import Codes
from pinot_assets.segment.values.hashing import murmur2
from pinot_assets.segment.values.java_text import has_halves
from pinot_assets.segment.values.normalize import Normalized

_BLOCK = 1 << 16
_LONG = 256  # bytes of a value from which on hashing it takes longer than Arrow's own way


def unordered_values(column: Column, cleaned: Normalized) -> OrderedValues:
    """As `rank`, with texts and bytes in no order and possibly repeated among the entries.

    Numbers are put in order all the same: that costs no more than to look at them.

    :raises BuildError: see `rank`.
    """
    values = cleaned.values
    if isinstance(values, (np.ndarray, Decimals)) or (column.data_type.is_text and has_halves(values)):
        return order_values(column, cleaned)
    keys = utf16_keys(values, halves=False) if column.data_type.is_text else values
    bounds = pc.min_max(keys).as_py()
    lowest, highest = (_value(column, values, keys, bounds[which]) for which in ("min", "max"))
    ascending = _ascending(keys, cleaned.codes)
    return OrderedValues(values, lowest, highest, cleaned.codes, _count_distinct(values), ascending)


def _value(column: Column, values: pa.LargeBinaryArray, keys: pa.LargeBinaryArray, key: bytes) -> Default:
    found: bytes = values[pc.index(keys, pa.scalar(key, keys.type)).as_py()].as_py()
    return found.decode() if column.data_type.is_text else found


def _count_distinct(values: pa.LargeBinaryArray) -> int:
    """How many there are, exactly: only those whose hash another one has, too, are compared themselves."""
    if pc.max(pc.binary_length(values)).as_py() > _LONG:
        return len(values.unique())
    hashes = murmur2(values)
    found, counts = np.unique(hashes, return_counts=True)
    if len(found) == len(values):
        return len(values)
    alike = values.filter(pa.array(np.isin(hashes, found[counts > 1])))
    return len(values) - len(alike) + len(alike.unique())


def _ascending(keys: pa.LargeBinaryArray, codes: Codes) -> bool:
    """Whether the keys of the codes ascend; mostly the first few tell that they do not."""
    for start in range(0, len(codes) - 1, _BLOCK):
        some = keys.take(pa.array(codes[start : start + _BLOCK + 1]))
        if pc.any(pc.less(some[1:], some[:-1])).as_py():
            return False
    return True
