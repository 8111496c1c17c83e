"""What Pinot does to a value before it counts it: type, special values, nulls, sanitising (spec section 5).

The order is Pinot's (`RecordTransformerUtils`). Numbers come out as a numpy array, texts as an Arrow binary
array of UTF-8, in which half a surrogate pair (left by a cut, or written as an escape in JSON) stands as its
own three bytes, because it still counts for order and cardinality; the dictionary makes the `?` of it that
Pinot stores.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.errors import BuildError
from pinot_assets.segment.distinct import NULL, Codes, distinct, take
from pinot_assets.segment.fields import Column, TooLong
from pinot_assets.segment.json_text import JsonRefused, canonical_json
from pinot_assets.segment.text import cut_utf16, utf16_length
from pinot_assets.segment.types import STORAGE, DataType, Default


def clean_numbers(
    column: Column, data: pa.ChunkedArray | None, rows: int, fill: Default
) -> tuple[npt.NDArray[np.generic], Codes, npt.NDArray[np.bool_]]:
    """Stored values of a numeric column, each row's index into them, and which rows were null.

    The values may repeat and are in no order.

    :param data: the column, None when it is absent, which means all null.
    :param fill: what null becomes.
    :raises BuildError: a value does not fit the column's type.
    """
    values, codes = _typed(column, data, rows)
    numbers = values.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind == "f":
        kept = ~np.isnan(numbers)
        if not kept.all():
            codes = take(np.where(kept, np.cumsum(kept) - 1, NULL).astype(np.int32), codes)
        numbers = numbers[kept] + numbers.dtype.type(0)  # -0.0 becomes 0.0
    is_null = codes == NULL
    if is_null.any():
        numbers = np.append(numbers, numbers.dtype.type(fill))
        codes = np.where(is_null, np.int32(len(numbers) - 1), codes)
    return numbers, codes, is_null


def clean_texts(
    column: Column, data: pa.ChunkedArray | None, rows: int, fill: Default
) -> tuple[pa.Array, Codes, npt.NDArray[np.bool_]]:
    """As `clean_numbers`, for a column whose stored type is STRING.

    :raises BuildError: a text is too long for strategy ERROR, or JSON that Pinot cannot build either.
    """
    texts, codes = _typed(column, data, rows)
    if column.data_type is DataType.JSON:
        texts = _mapped(texts, np.ones(len(texts), dtype=bool), lambda text: _json(column, text))
    else:
        texts = texts.cast(pa.large_binary())
    is_null = codes == NULL
    if is_null.any():
        default = pa.array([str(fill).encode("utf-8", "surrogatepass")], pa.large_binary())
        texts = pa.concat_arrays([texts, default])
        codes = np.where(is_null, np.int32(len(texts) - 1), codes)
    return _sanitised(column, texts), codes, is_null


def _typed(column: Column, data: pa.ChunkedArray | None, rows: int) -> tuple[pa.Array, Codes]:
    """Distinct values in the column's stored type."""
    storage = STORAGE[column.data_type]
    if data is None or pt.is_null(data.type):
        return pa.array([], storage.stored), np.full(rows, NULL, dtype=np.int32)
    kind = data.type.value_type if pt.is_dictionary(data.type) else data.type
    if not storage.accepts(kind):
        raise BuildError(
            f"Column {column.name} cannot be built",
            why=f"its values are {kind}, its Pinot type is {column.data_type}",
            hint="Convert the column when reading the file.",
        )
    values, codes = distinct(data)
    try:
        if column.data_type is DataType.TIMESTAMP:
            values = values.cast(pa.timestamp("ms", getattr(kind, "tz", None)))
        return values.cast(storage.stored), codes
    except pa.ArrowInvalid as error:
        raise BuildError(
            f"Column {column.name} holds a value that is no {column.data_type}", why=str(error)
        ) from None


def _json(column: Column, text: str) -> str:
    try:
        return canonical_json(text)
    except JsonRefused as error:
        raise BuildError(f"Column {column.name} holds JSON that cannot be built", why=str(error)) from None


def _sanitised(column: Column, texts: pa.Array) -> pa.Array:
    """Cut at the first NUL and at the maximum length (`SanitizationTransformerUtils`).

    Only the few texts that hold a NUL or more bytes than units allowed are looked at one by one.
    """
    strategy = column.effective_strategy
    if column.data_type is DataType.JSON and strategy is TooLong.NO_ACTION:
        return texts
    suspect = pc.find_substring(texts, b"\0").to_numpy(zero_copy_only=False) >= 0
    if strategy is not TooLong.NO_ACTION:
        suspect |= pc.binary_length(texts).to_numpy(zero_copy_only=False) > column.max_length
    return _mapped(texts, suspect, lambda text: _cut(column, strategy, text))


def _cut(column: Column, strategy: TooLong, text: str) -> str:
    kept = text.partition("\0")[0]
    if utf16_length(kept) > column.max_length:
        kept = cut_utf16(kept, column.max_length)
    if kept == text:
        return text
    if strategy is TooLong.ERROR:
        raise BuildError(
            f"Column {column.name} holds a text that is longer than {column.max_length} or contains a NUL",
            why="its maxLengthExceedStrategy is ERROR",
            hint="Shorten the text, raise maxLength, or choose another strategy.",
        )
    return str(column.default) if strategy is TooLong.SUBSTITUTE_DEFAULT_VALUE else kept


def _mapped(texts: pa.Array, chosen: npt.NDArray[np.bool_], change: Callable[[str], str]) -> pa.Array:
    """The texts as binary, the chosen ones changed."""
    binary = texts.cast(pa.large_binary())
    if not chosen.any():
        return binary
    mask = pa.array(chosen)
    changed = [
        change(data.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")
        for data in binary.filter(mask).to_pylist()
    ]
    return pc.replace_with_mask(binary, mask, pa.array(changed, pa.large_binary()))
