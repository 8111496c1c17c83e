"""Casts between Arrow types, where there is a conversion on which everybody would agree.

A cast takes a chunked array and raises ArrowInvalid if a value cannot be converted without loss.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.ingest.contract.accepted_rows import TargetSchema
from pinot_assets.segment.column.decimals import unstorable

Cast = Callable[[pa.ChunkedArray], pa.ChunkedArray]

DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?$"
_FINER = (r"(\.[0-9]{3})[0-9]{1,6}([^0-9]|$)", r"\1\2")
"""Matches the digits of a second below milliseconds; the second text replaces the match without them."""
_DAY = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]([ T]|$)")
_FINER_UNITS = {"us": 1_000, "ns": 1_000_000}
"""How many of a unit make a millisecond."""
_ASCII = 0x7F
_LOWER = np.uint8(ord("a") ^ ord("A"))
"""The bit by which a small letter differs from its capital."""
HEX = r"^([0-9a-fA-F]{2})*$"


def cast_for(source: pa.DataType, field: pa.Field, target: TargetSchema) -> Cast | None:
    """Return the cast from a file's column to the table's, None if there is no such conversion.

    :param source: a type that `plain_column` returns.
    """
    if pt.is_null(source):
        return lambda column: column.cast(field.type)
    if field.name in target.json and (pt.is_nested(source) and not pt.is_union(source)):
        return _json
    if not pt.is_list(field.type):
        return _single(source, field.type, field.name in target.decimals)
    inner = field.type.value_type
    if pt.is_list(source) or pt.is_large_list(source):
        of_items = _single(source.value_type, inner, field.name in target.decimals)
        return None if of_items is None else lambda column: _lists(column, of_items)
    of_value = _single(source, inner, field.name in target.decimals)
    return None if of_value is None else lambda column: _wrapped(of_value(column))


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the same values without dictionaries, views, lists of fixed size and extension types (Parquet's
    JSON and UUID, which are text and bytes): not every kernel of Arrow knows those."""
    kind = _plain(column.type)
    return column if kind == column.type else column.cast(kind)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pt.is_dictionary(kind):
        return _plain(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if pt.is_string_view(kind):
        return pa.string()
    if pt.is_binary_view(kind):
        return pa.binary()
    if pt.is_large_list(kind) or pt.is_large_list_view(kind):
        return pa.large_list(_plain(kind.value_type))
    if pt.is_list(kind) or pt.is_list_view(kind) or pt.is_fixed_size_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pt.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type), kind.keys_sorted)
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    return kind


def _single(source: pa.DataType, target: pa.DataType, is_decimal: bool) -> Cast | None:
    text = pt.is_string(source) or pt.is_large_string(source)
    number = pt.is_integer(source) or pt.is_floating(source) or pt.is_decimal(source)
    if pt.is_null(source):
        return lambda column: column.cast(target)
    if pt.is_timestamp(target):
        return (lambda column: _moments(_text(column), target)) if text else _to_moment(source, target)
    if pt.is_binary(target):
        if text:
            return _hex
        is_bytes = pt.is_binary(source) or pt.is_large_binary(source) or pt.is_fixed_size_binary(source)
        return (lambda column: column.cast(pa.binary())) if is_bytes else None
    if is_decimal:
        return _decimal if text else _text if pt.is_integer(source) or pt.is_decimal(source) else None
    if pt.is_string(target):
        return _text if text or pt.is_integer(source) or pt.is_boolean(source) else None
    if text:
        return lambda column: _from_text(column, target)
    if pt.is_floating(target) and number:
        return lambda column: column.cast(options=pc.CastOptions(target, allow_float_truncate=True))
    exact = source == target or (number and pt.is_integer(target))
    return (lambda column: column.cast(target)) if exact else None


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = column.cast(pa.string())
    # The formats' readers do not check UTF-8. To see that all bytes are ASCII takes a tenth of the check.
    if any(_bytes(chunk).max(initial=0) > _ASCII for chunk in texts.chunks):
        texts.validate(full=True)
    return texts


def _decimal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = pc.utf8_trim_whitespace(_text(column))
    if pc.all(pc.match_substring_regex(texts, DECIMAL)).as_py() is False:
        raise pa.ArrowInvalid("not a number")
    if unstorable(texts).any():
        raise pa.ArrowInvalid("a number that cannot be stored")
    return texts


def _from_text(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    if pt.is_integer(target) and _has_hex(column):
        raise pa.ArrowInvalid("Arrow reads 0x10 as a number, Pinot does not")
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        trimmed = pc.utf8_trim_whitespace(_text(column))  # Pinot trims, too, and takes a plus
        return pc.replace_substring_regex(trimmed, r"^\+([0-9])", r"\1").cast(target)


def _has_hex(column: pa.ChunkedArray) -> bool:
    # The check of the bytes is nearly free; only if they hold an x, the values are checked.
    if not any((_bytes(chunk) | _LOWER == ord("x")).any() for chunk in column.chunks):
        return False
    return bool(pc.any(pc.match_substring_regex(column, r"^[^0-9A-Za-z]*0[xX]")).as_py())


def _bytes(texts: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the bytes of all texts, one after the other; of a slice, only its own bytes."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return np.empty(0, np.uint8)
    places = np.frombuffer(offsets, np.int64 if pt.is_large_string(texts.type) else np.int32)
    first, last = places[texts.offset], places[texts.offset + len(texts)]
    return np.frombuffer(data, np.uint8)[first:last]


def _hex(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert pairs of hex digits to bytes, as Pinot reads BYTES from text."""
    if pc.all(pc.match_substring_regex(column, HEX)).as_py() is False:
        raise pa.ArrowInvalid("not an even number of hex digits")
    return pa.chunked_array([_unhexed(chunk) for chunk in column.cast(pa.large_string()).chunks], pa.binary())


def _unhexed(texts: pa.LargeStringArray) -> pa.Array:
    valid = texts.is_valid().to_numpy(zero_copy_only=False)
    dense = texts.drop_null()
    offsets = np.frombuffer(dense.buffers()[1] or bytes(8), np.int64)[dense.offset :][: len(dense) + 1]
    digits = dense.buffers()[2].slice(offsets[0], offsets[-1] - offsets[0]) if len(dense) else b""
    values = pa.Array.from_buffers(
        pa.large_binary(),
        len(dense),
        [
            None,
            pa.py_buffer((offsets - offsets[0]) // 2),
            pa.py_buffer(bytes.fromhex(bytes(digits).decode())),
        ],
    )
    return values.take(pa.array(np.cumsum(valid) - 1, mask=~valid)).cast(pa.binary())


def _to_moment(source: pa.DataType, target: pa.DataType) -> Cast | None:
    if pt.is_integer(source):
        return lambda column: column.cast(pa.int64()).cast(target)
    # Typed formats may have timestamps without a zone; Pinot takes them as UTC, and so does this.
    return (lambda column: _floored(column, target)) if pt.is_timestamp(source) else None


def _moments(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Convert texts with epoch milliseconds, or ISO-8601 times with a zone."""
    try:
        if not _has_hex(column):
            return column.cast(pa.int64()).cast(target)  # usually all values are epoch milliseconds
    except pa.ArrowInvalid:
        pass
    column = pc.utf8_trim_whitespace(column)
    epoch = pc.match_substring_regex(column, r"^[+-]?[0-9]+$")
    millis = pc.if_else(epoch, pc.utf8_ltrim(column, "+"), None).cast(pa.int64()).cast(target)
    iso = pc.if_else(epoch, None, column)
    return pc.coalesce(millis, _iso(iso, target))


def _iso(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    # Cast in milliseconds: nanoseconds would have no room for a year like 9999.
    return pc.replace_substring_regex(column, *_FINER).cast(target)


def _floored(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Round times down to their millisecond, before 1970 as well as after.

    Arrow's cast rounds towards 1970, and its `floor_temporal` overflows at the ends of its calendar.
    """
    if (finer := _FINER_UNITS.get(column.type.unit)) is None:
        return column.cast(target)
    ticks = column.cast(pa.int64())
    millis = pc.divide(ticks, finer)
    later = pc.greater(pc.multiply(millis, finer), ticks)
    return pc.subtract(millis, later.cast(pa.int64())).cast(target)


def is_local_time(text: str) -> bool:
    """Whether a text is a valid time that only lacks a zone."""
    if not _DAY.match(text):
        return False
    try:
        _iso(pa.chunked_array([[text]], pa.string()), pa.timestamp("ms"))
    except pa.ArrowInvalid:
        return False
    return True


def _lists(column: pa.ChunkedArray, of_items: Cast) -> pa.ChunkedArray:
    array = column.combine_chunks()
    items = of_items(pa.chunked_array([array.flatten()])).combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    return _list_array(lengths, items, array.is_null())


def _wrapped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return single values as lists of one; a null stays null."""
    array = column.combine_chunks()
    lengths = array.is_valid().to_numpy(zero_copy_only=False)
    return _list_array(lengths, array.drop_null(), array.is_null())


def _list_array(lengths: np.ndarray, items: pa.Array, is_null: pa.Array) -> pa.ChunkedArray:
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pa.chunked_array([pa.ListArray.from_arrays(offsets, items, mask=is_null)])


def _json(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return structures as JSON text, row by row, because Arrow has no kernel for it.

    Values that JSON cannot hold are refused: times, decimals, bytes, NaN, a map with the same key twice.
    """
    dump = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
    try:
        values = column.to_pylist(maps_as_pydicts="strict")
        texts = [None if value is None else dump(value) for value in values]
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise pa.ArrowInvalid(str(error)) from error
    return pa.chunked_array([pa.array(texts, pa.string())])
