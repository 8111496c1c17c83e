"""Which values of a column certainly cannot be cast, seen all at once.

What is missed here is found by trying, which takes a thousand times as long for each value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.ingest.cast.casts import DECIMAL, HEX
from pinot_assets.ingest.contract.target_schema import TargetSchema
from pinot_assets.segment.column.decimals import unstorable

Mask = npt.NDArray[np.bool_]

# Any blanks around, whatever counts as one.
_LONG = r"^[^0-9A-Za-z.]*0*[0-9]{1,19}[^0-9A-Za-z.]*$"
_FLOAT = r"(?i)^[^0-9a-z.]*(\.?[0-9][0-9.e+-]*|nan|inf|infinity)[^0-9a-z.]*$"
_BOOLEAN = r"(?i)^[^0-9a-z]*(true|false|0|1)[^0-9a-z]*$"
_MOMENT = (
    r"^[^0-9A-Za-z]*(0*[0-9]{1,19}|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"[ T]([01][0-9]|2[0-3])[0-9:.]*(Z|[+-][0-9:]{2,5}))[^0-9A-Za-z]*$"
)
_SHORT = r"^[^0-9A-Za-z.]*[0-9]{1,18}[^0-9A-Za-z.]*$"
"""Digits that a LONG has room for."""


def certain_failures(column: pa.ChunkedArray, field: pa.Field, wanted: TargetSchema) -> Mask:
    """Which values certainly cannot become the field's type.

    :param column: of a type that `casts.plain` leaves.
    """
    if pt.is_list(column.type) and pt.is_list(field.type):
        return _lists(column, field, wanted)
    kind = field.type.value_type if pt.is_list(field.type) else field.type
    if pt.is_string(column.type) or pt.is_large_string(column.type):
        return _texts(column, kind, field.name in wanted.decimals)
    if pt.is_integer(kind) and (pt.is_integer(column.type) or pt.is_floating(column.type)):
        return _numbers(column, kind)
    return np.zeros(len(column), dtype=bool)


def _lists(column: pa.ChunkedArray, field: pa.Field, wanted: TargetSchema) -> Mask:
    found = np.zeros(len(column), dtype=bool)
    array = column.combine_chunks()
    items = certain_failures(pa.chunked_array([array.flatten()]), field, wanted)
    found[pc.list_parent_indices(array).to_numpy()[items]] = True
    return found


def _texts(column: pa.ChunkedArray, kind: pa.DataType, is_decimal: bool) -> Mask:
    if is_decimal:
        found = ~_matches(column, rf"^[^0-9A-Za-z.]*{DECIMAL.strip('^$')}[^0-9A-Za-z.]*$")
        return found | unstorable(column)
    if pt.is_integer(kind):
        found = ~_matches(column, _LONG)
        return found | _beyond(column, kind) if kind == pa.int32() else found
    for is_kind, pattern in (
        (pt.is_floating, _FLOAT),
        (pt.is_boolean, _BOOLEAN),
        (pt.is_timestamp, _MOMENT),
        (pt.is_binary, HEX),
    ):
        if is_kind(kind):
            return ~_matches(column, pattern)
    return np.zeros(len(column), dtype=bool)


def _beyond(column: pa.ChunkedArray, kind: pa.DataType) -> Mask:
    """Which texts are whole numbers that the type has no room for."""
    digits = pc.replace_substring_regex(column, r"[^0-9]", "")
    digits = pc.if_else(pa.array(_matches(column, _SHORT)), digits, None)
    value = pc.fill_null(pc.cast(digits, pa.int64()), 0).to_numpy()
    found: Mask = value > (1 << (kind.bit_width - 1)) - 1 + _matches(column, "-")
    return found | ~_matches(column, _SHORT.replace("[0-9]{1,18}", "0*[0-9]{1,18}"))


def _matches(column: pa.ChunkedArray, pattern: str) -> Mask:
    found: Mask = pc.fill_null(pc.match_substring_regex(column, pattern), True).to_numpy().astype(bool)
    return found


def _numbers(column: pa.ChunkedArray, kind: pa.DataType) -> Mask:
    values = pc.fill_null(column, 0).to_numpy()
    limit = 1 << (kind.bit_width - 1)
    found: Mask = values > limit - 1 if values.dtype.kind in "iu" else ~(values < limit)
    if values.dtype.kind != "u":
        found |= values < -limit
    return found | (values != np.floor(values)) if values.dtype.kind == "f" else found
