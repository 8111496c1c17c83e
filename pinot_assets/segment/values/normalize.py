"""Clean values as Pinot does before it counts them: type, special values, nulls, sanitising.

The order is Pinot's (`RecordTransformerUtils`). Numbers become a numpy array, decimals `Decimals`, texts and
bytes an Arrow binary array. Half a surrogate pair (left by a cut, or written as an escape in JSON) is encoded
in UTF-8 texts as its own three bytes, because it still counts for order and cardinality. The dictionary then
replaces it by `?`, as Pinot stores it.

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
    binary_buffers,
    distinct,
    elements,
    filled_rows,
    is_list,
    only_elements,
    take,
)
from pinot_assets.segment.values.json_text import JsonRefused, canonical_texts, pinot_json


class Cut(NamedTuple):
    """How many values of one column lost something; elements, if the column is multi-value.

    :ivar at_nul: texts with a NUL: Pinot removes it and everything after it.
    :ivar at_length: values longer than `maxLength`: they were cut, or replaced by the default value.
    :ivar out_of_time: times outside Pinot's valid interval: they became null.
    """

    at_nul: int = 0
    at_length: int = 0
    out_of_time: int = 0

    def __add__(self, other: tuple[int, ...]) -> Cut:  # type: ignore[override]
        """Add the counts of both."""
        return Cut(*map(sum, zip(self, other, strict=True)))


NOTHING: Final = Cut()


@dataclass(frozen=True, slots=True)
class Normalized:
    """A column's values as Pinot counts them.

    :ivar values: in no order, repeats allowed; every value is used.
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


Mask = npt.NDArray[np.bool_]


def normalize(
    column: Column,
    data: pa.ChunkedArray | None,
    rows: int,
    fill: Default,
    valid: Callable[[Values], Mask] | None = None,
) -> Normalized:
    """Return one column, cleaned.

    :param data: the column, None if it is absent, which means all null.
    :param fill: the value that replaces null.
    :param valid: returns a mask of the values that are valid, the others become null; None if all are.
    :raises BuildError: a value does not fit the column, is too long for strategy ERROR, or cannot be stored.
    """
    lengths: Lengths | None = None
    if data is None or pt.is_null(data.type):
        data = pa.chunked_array([pa.nulls(rows)])
    if not column.single_value:
        data, lengths = elements(data)
    elif is_list(data.type):
        data = only_elements(column.name, data)
    values, codes = _typed(column, data)
    invalid = 0
    if valid is not None:
        is_valid = valid(values)
        invalid = int((~is_valid)[codes[codes != NULL]].sum())
        values, codes = _kept(values, codes, is_valid)
    values, codes = _special(values, codes)
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
        # The value that replaced null, which is the last, is no value of the file.
        cut = _cut_between(values, sanitised, codes, len(values) - 1 if has_null else len(values))
    return Normalized(sanitised, codes, lengths, is_null, cut._replace(out_of_time=invalid))


def _cut_between(before: Values, after: Values, codes: Codes, count: int) -> Cut:
    """Count the rows' values that were changed, by reason.

    :param count: how many of the first values are the rows' own.
    """
    assert isinstance(before, pa.LargeBinaryArray)
    assert isinstance(after, pa.LargeBinaryArray)
    is_cut = pc.not_equal(before, after).to_numpy(zero_copy_only=False)
    is_cut[count:] = False
    at_nul = is_cut & (pc.find_substring(before, b"\0").to_numpy(zero_copy_only=False) >= 0)
    return Cut(int(at_nul[codes].sum()), int((is_cut & ~at_nul)[codes].sum()))


def _typed(column: Column, data: pa.ChunkedArray) -> tuple[Values, Codes]:
    """Return the distinct values in the column's stored type, and each row's index into them."""
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
    """Return Arrow values of the stored type in the form that `Normalized` holds."""
    if column.data_type is DataType.BIG_DECIMAL:
        return stored_decimals(values)
    if column.data_type is DataType.JSON:
        texts, canonical = canonical_texts(values.cast(pa.large_binary()))
        return _mapped(texts, ~canonical, partial(_json, column))
    if STORAGE[column.data_type].disk is None:
        return values.cast(pa.large_binary())
    return values.to_numpy(zero_copy_only=False)


def _special(values: Values, codes: Codes) -> tuple[Values, Codes]:
    """Make NaN null and -0.0 into 0.0 (`SpecialValueTransformerUtils`)."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return values, codes
    kept, codes = _kept(values, codes, ~np.isnan(values))
    assert isinstance(kept, np.ndarray)
    return np.add(kept, kept.dtype.type(0)), codes


def _kept(values: Values, codes: Codes, kept: Mask) -> tuple[Values, Codes]:
    """Make the values null that are not kept."""
    if kept.all():
        return values, codes
    codes = take(np.where(kept, np.cumsum(kept) - 1, NULL).astype(np.int32), codes)
    if isinstance(values, pa.Array):
        return values.filter(pa.array(kept)), codes
    assert isinstance(values, np.ndarray)  # decimals are always kept
    return values[kept], codes


def _with_fill(values: Values, fill: Default) -> Values:
    """Return the values, with the value that replaces null added last."""
    if isinstance(values, np.ndarray):
        return np.append(values, values.dtype.type(fill))
    if isinstance(values, Decimals):
        assert isinstance(fill, Decimal)
        return values.with_last(fill)
    last = fill if isinstance(fill, bytes) else str(fill).encode("utf-8", "surrogatepass")
    return pa.concat_arrays([values, pa.array([last], pa.large_binary())])


def _json(column: Column, value: bytes) -> bytes:
    try:
        text = pinot_json(value.decode("utf-8", "surrogatepass"))
    except JsonRefused as error:
        raise BuildError(f"Column {column.name} holds JSON that cannot be built", why=str(error)) from None
    return text.encode("utf-8", "surrogatepass")


def is_sanitised(column: Column, texts: pa.LargeBinaryArray) -> bool:
    """Whether texts have neither a NUL nor more characters than their column may have; none is null.

    :raises BuildError: one is too long for strategy ERROR.
    """
    return len(texts) == 0 or _sanitised(column, texts) is texts


def _sanitised(column: Column, values: Values) -> Values:
    """Cut values at the first NUL and at the maximum length (`SanitizationTransformerUtils`).

    Only the few values that hold a NUL or more bytes than allowed are checked one by one.
    """
    if isinstance(values, (np.ndarray, Decimals)):
        return values
    strategy, is_string = column.effective_strategy, column.data_type is DataType.STRING
    if strategy is TooLong.NO_ACTION and not is_string:
        return values
    suspect = np.zeros(len(values), dtype=bool)
    if column.data_type.is_text and not binary_buffers(values)[1].all():  # there is a NUL somewhere
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
    """Apply the schema's strategy to a value of which only `kept` may stay; return what is stored."""
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
    """Return the values, with `change` applied to the chosen ones."""
    if not chosen.any():
        return values
    mask = pa.array(chosen)
    changed = pa.array([change(value) for value in values.filter(mask).to_pylist()], pa.large_binary())
    return changed if chosen.all() else pc.replace_with_mask(values, mask, changed)
