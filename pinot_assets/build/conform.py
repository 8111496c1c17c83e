"""What a format's reader found, in the table's types; nothing is lost on the way, or the row is named.

Kinder than Pinot's own conversion nowhere, stricter in some: Pinot truncates 1.5 to an INT and takes a
timestamp without a zone in the zone of the JVM; both are refused here.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.build.rejected import FileRejected, TypeMismatch, Unreadable, ZoneMissing, one_line, shown

_Cast = Callable[[pa.ChunkedArray], pa.ChunkedArray]


def conform(table: pa.Table, schema: pa.Schema, first_row: int = 1) -> pa.Table:
    """The columns of `schema`, in its order and types; one that the table lacks is all null.

    :param first_row: what people call the first row, for errors.
    :raises FileRejected: a value cannot become its column's type, or text is not UTF-8.
    """
    columns = []
    for field in schema:
        if field.name in table.column_names:
            columns.append(_convert(table.column(field.name), field, first_row))
        else:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
    result = pa.table(columns, schema=schema)
    try:
        result.validate(full=True)  # Arrow's JSON and Parquet readers do not look at UTF-8
    except pa.ArrowInvalid as error:
        raise Unreadable("the file holds text that is not UTF-8", why=one_line(error)) from error
    return result


def _convert(column: pa.ChunkedArray, field: pa.Field, first_row: int) -> pa.ChunkedArray:
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.type == field.type:
        return column
    cast = _cast_for(column.type, field.type)
    if cast is None:
        raise TypeMismatch(f"column {field.name}: {column.type} cannot become {field.type}")
    try:
        return cast(column)
    except pa.ArrowInvalid as error:
        row = _first_bad(column, cast)
        value = column[row].as_py()
        where = f"column {field.name}, row {row + first_row}"
        raise _refusal(where, value, field.type) from error


def _refusal(where: str, value: object, target: pa.DataType) -> FileRejected:
    if pt.is_timestamp(target) and isinstance(value, str) and _is_local_time(value):
        return ZoneMissing(f"{where}: {shown(value)} names no zone", hint="write it with Z or an offset")
    return TypeMismatch(f"{where}: {shown(value)} cannot become {target}")


def _cast_for(source: pa.DataType, target: pa.DataType) -> _Cast | None:
    """How to get from one type to the other, None if there is no way that everybody would agree on."""
    text = pt.is_string(source) or pt.is_large_string(source) or pt.is_string_view(source)
    number = pt.is_integer(source) or pt.is_floating(source) or pt.is_decimal(source)
    if pt.is_null(source):
        return lambda column: column.cast(target)
    if pt.is_timestamp(target):
        if text:
            return lambda column: _moments(column, target)
        if pt.is_integer(source):
            return lambda column: column.cast(pa.int64()).cast(target)
        # Parquet's zone-less timestamps are taken as UTC, as Pinot takes them.
        return (lambda column: _truncate(column, target)) if pt.is_timestamp(source) else None
    if pt.is_floating(target) and number:
        return lambda column: column.cast(options=pc.CastOptions(target, allow_float_truncate=True))
    if pt.is_string(target):
        exact = text or pt.is_integer(source) or pt.is_boolean(source)
    else:
        exact = text or (number and pt.is_integer(target))
    return (lambda column: column.cast(target)) if exact else None


def _moments(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Epoch milliseconds or ISO-8601 with a zone, in text."""
    epoch = pc.match_substring_regex(column, r"^[+-]?[0-9]+$")
    millis = pc.if_else(epoch, column, None).cast(pa.int64()).cast(target)
    iso = pc.if_else(epoch, None, column)
    return pc.coalesce(millis, _iso(iso, target))


def _iso(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    for unit in ("ms", "us"):
        try:
            return _truncate(column.cast(pa.timestamp(unit, "UTC")), target)
        except pa.ArrowInvalid:
            continue
    return _truncate(column.cast(pa.timestamp("ns", "UTC")), target)


def _truncate(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    return column.cast(options=pc.CastOptions(target, allow_time_truncate=True))


def _is_local_time(text: str) -> bool:
    try:
        pa.scalar(text).cast(pa.timestamp("ns"))
    except pa.ArrowInvalid:
        return False
    return True


def _first_bad(column: pa.ChunkedArray, cast: _Cast) -> int:
    """Index of the first value that cannot be cast, by halving."""
    start, length = 0, len(column)
    while length > 1:
        half = length // 2
        try:
            cast(column.slice(start, half))
        except pa.ArrowInvalid:
            length = half
        else:
            start, length = start + half, length - half
    return start
