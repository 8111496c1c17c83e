"""What Pinot does to a value before it counts it: type, special values, nulls, sanitising.

The order is Pinot's (`RecordTransformerUtils`). Numbers come out as a numpy array, decimals as `Decimals`,
texts and bytes as an Arrow binary array. In texts, UTF-8, half a surrogate pair (left by a cut, or
written as an escape in JSON) stands as its own three bytes, because it still counts for order and
cardinality; the dictionary makes the `?` of it that Pinot stores.

Source: docs/design/segment-format.md#s5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.errors import BuildError
from pinot_assets.segment.column.decimals import Decimals, Values, stored_decimals
from pinot_assets.segment.column.types import (
    STORAGE,
    Column,
    DataType,
    Default,
    TooLong,
    cut_utf16,
    utf16_length,
)
from pinot_assets.segment.values.distinct import (
    NULL,
    Codes,
    Lengths,
    distinct,
    elements,
    filled_rows,
    is_list,
    only_elements,
    take,
)
from pinot_assets.segment.values.json_text import JsonRefused, canonical_json, canonical_texts


class Cut(NamedTuple):
    """Values of one column, each row's, or each element of a multi-value column.

    :ivar at_nul: texts that hold a NUL: it goes, and all behind it.
    :ivar at_length: those that are longer than `maxLength`: they were cut, or became the default value.
    """

    at_nul: int = 0
    at_length: int = 0

    def __add__(self, other: tuple[int, ...]) -> Cut:  # type: ignore[override]
        """Of both together."""
        return Cut(self[0] + other[0], self[1] + other[1])


NOTHING: Final = Cut()


@dataclass(frozen=True, slots=True)
class Normalized:
    """A column's values as Pinot counts them.

    :ivar values: in no order, repeats allowed, every one used.
    :ivar codes: index into `values`, one per row, or one per element of a multi-value column.
    :ivar lengths: each row's number of elements, at least one; None for a single-value column.
    :ivar is_null: which rows were null.
    :ivar cut: how many of the rows' values lost something.
    """

    values: Values
    codes: Codes
    lengths: Lengths | None
    is_null: npt.NDArray[np.bool_]
    cut: Cut = NOTHING


def normalize(column: Column, data: pa.ChunkedArray | None, rows: int, fill: Default) -> Normalized:
    """Clean one column.

    :param data: the column, None when it is absent, which means all null.
    :param fill: what null becomes.
    :raises BuildError: a value does not fit the column, is too long for strategy ERROR, or cannot be stored.
    """
    lengths: Lengths | None = None
    if data is None or pt.is_null(data.type):
        data = pa.chunked_array([pa.nulls(rows)])
    if not column.single_value:
        data, lengths = elements(data)
    elif is_list(data.type):
        data = only_elements(column.name, data)
    values, codes = _special(*_typed(column, data))
    if lengths is None:
        is_null = codes == NULL
        if is_null.any():
            codes = np.where(is_null, np.int32(len(values)), codes)
    else:
        codes, lengths, is_null = filled_rows(codes, lengths, len(values))
    if has_null := bool(is_null.any()):
        values = _with_fill(values, fill)
    sanitised = _sanitised(column, values)
    cut = NOTHING
    if sanitised is not values:
        # What null becomes is no value of the rows.
        cut = _cut_between(values, sanitised, codes, len(values) - 1 if has_null else len(values))
    return Normalized(sanitised, codes, lengths, is_null, cut)


def _cut_between(before: Values, after: Values, codes: Codes, count: int) -> Cut:
    """How many of the rows' values are others than they were, by the reason.

    :param count: of the first values, which are the rows' own.
    """
    assert isinstance(before, pa.LargeBinaryArray)
    assert isinstance(after, pa.LargeBinaryArray)
    is_cut = pc.not_equal(before, after).to_numpy(zero_copy_only=False)
    is_cut[count:] = False
    at_nul = is_cut & (pc.find_substring(before, b"\0").to_numpy(zero_copy_only=False) >= 0)
    return Cut(int(at_nul[codes].sum()), int((is_cut & ~at_nul)[codes].sum()))


def _typed(column: Column, data: pa.ChunkedArray) -> tuple[Values, Codes]:
    """Distinct values in the column's stored type."""
    storage = STORAGE[column.data_type]
    if pt.is_null(data.type):
        empty = pa.array([], pa.int32() if storage.stored is None else storage.stored)
        return _values(column, empty), np.full(len(data), NULL, dtype=np.int32)
    kind = data.type.value_type if pt.is_dictionary(data.type) else data.type
    if not any(is_kind(kind) for is_kind in storage.kinds):
        raise BuildError(
            f"Column {column.name} cannot be built",
            why=f"its values are {kind}, its Pinot type is {column.data_type}",
            hint="Convert the column when reading the file.",
        )
    values, codes = distinct(data)
    try:
        if column.data_type is DataType.TIMESTAMP:
            values = values.cast(pa.timestamp("ms", getattr(kind, "tz", None)))
        return _values(column, values if storage.stored is None else values.cast(storage.stored)), codes
    except (pa.ArrowInvalid, ValueError) as error:
        raise BuildError(
            f"Column {column.name} holds a value that is no {column.data_type}", why=str(error)
        ) from None


def _values(column: Column, values: pa.Array) -> Values:
    """Arrow values of the stored type as they are worked with."""
    if column.data_type is DataType.BIG_DECIMAL:
        return stored_decimals(values)
    if column.data_type is DataType.JSON:
        texts, canonical = canonical_texts(values.cast(pa.large_binary()))
        return _mapped(texts, ~canonical, partial(_json, column))
    if STORAGE[column.data_type].disk is None:
        return values.cast(pa.large_binary())
    return values.to_numpy(zero_copy_only=False)


def _special(values: Values, codes: Codes) -> tuple[Values, Codes]:
    """NaN becomes null and -0.0 becomes 0.0 (`SpecialValueTransformerUtils`)."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return values, codes
    kept = ~np.isnan(values)
    if not kept.all():
        codes = take(np.where(kept, np.cumsum(kept) - 1, NULL).astype(np.int32), codes)
        values = values[kept]
    return np.add(values, values.dtype.type(0)), codes


def _with_fill(values: Values, fill: Default) -> Values:
    """The values, and last what null becomes."""
    if isinstance(values, np.ndarray):
        return np.append(values, values.dtype.type(fill))
    if isinstance(values, Decimals):
        assert isinstance(fill, Decimal)
        return values.with_last(fill)
    last = fill if isinstance(fill, bytes) else str(fill).encode("utf-8", "surrogatepass")
    return pa.concat_arrays([values, pa.array([last], pa.large_binary())])


def _json(column: Column, value: bytes) -> bytes:
    try:
        text = canonical_json(value.decode("utf-8", "surrogatepass"))
    except JsonRefused as error:
        raise BuildError(f"Column {column.name} holds JSON that cannot be built", why=str(error)) from None
    return text.encode("utf-8", "surrogatepass")


def _sanitised(column: Column, values: Values) -> Values:
    """Cut at the first NUL and at the maximum length (`SanitizationTransformerUtils`).

    Only the few values that hold a NUL or more bytes than allowed are looked at one by one.
    """
    if isinstance(values, (np.ndarray, Decimals)):
        return values
    strategy, is_string = column.effective_strategy, column.data_type is DataType.STRING
    if strategy is TooLong.NO_ACTION and not is_string:
        return values
    suspect = np.zeros(len(values), dtype=bool)
    if column.data_type.is_text:
        suspect |= pc.find_substring(values, b"\0").to_numpy(zero_copy_only=False) >= 0
    if strategy is not TooLong.NO_ACTION:
        suspect |= pc.binary_length(values).to_numpy(zero_copy_only=False) > column.max_length
    cut = _cut_text if column.data_type.is_text else _cut_bytes
    return _mapped(values, suspect, partial(cut, column))


def _cut_text(column: Column, value: bytes) -> bytes:
    text = value.decode("utf-8", "surrogatepass")
    kept = text.partition("\0")[0]
    if utf16_length(kept) > column.max_length:
        kept = cut_utf16(kept, column.max_length)
    return value if kept == text else str(_cut_value(column, kept)).encode("utf-8", "surrogatepass")


def _cut_bytes(column: Column, value: bytes) -> bytes:
    kept = _cut_value(column, value[: column.max_length])
    assert isinstance(kept, bytes)
    return kept


def _cut_value(column: Column, kept: str | bytes) -> Default:
    """What the schema's strategy makes of a value of which only `kept` may stay."""
    if column.effective_strategy is TooLong.ERROR:
        raise BuildError(
            f"Column {column.name} holds a value that is longer than {column.max_length} or contains a NUL",
            why="its maxLengthExceedStrategy is ERROR",
            hint="Shorten the value, raise maxLength, or choose another strategy.",
        )
    return column.default if column.effective_strategy is TooLong.SUBSTITUTE_DEFAULT_VALUE else kept


def _mapped(
    values: pa.LargeBinaryArray, chosen: npt.NDArray[np.bool_], change: Callable[[bytes], bytes]
) -> pa.LargeBinaryArray:
    """The values, the chosen ones changed."""
    if not chosen.any():
        return values
    mask = pa.array(chosen)
    changed = pa.array([change(value) for value in values.filter(mask).to_pylist()], pa.large_binary())
    return changed if chosen.all() else pc.replace_with_mask(values, mask, changed)
