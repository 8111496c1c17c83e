"""Cast what a format's reader read into the table's types. If a value would be lost, name its row.

The rules are never more lenient than Pinot's own conversion, and sometimes stricter: Pinot truncates 1.5 to
an INT, and reads a timestamp without a zone in the zone of the JVM; here both are refused.

`certain_failures` finds values that certainly cannot be cast, all at once. The others that fail are found by
trying, which takes a thousand times as long for each value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.core.file_errors import BadRow, TypeMismatch, Unreadable, ZoneMissing, one_line, shown
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.cast.casts import DECIMAL, HEX, Cast, cast_for, is_local_time, plain_column
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.segment.column.decimals import unstorable

Mask = npt.NDArray[np.bool_]

# These patterns allow any blanks around a value, whatever counts as a blank.
_LONG = r"^[^0-9A-Za-z.]*0*[0-9]{1,19}[^0-9A-Za-z.]*$"
_PATTERNS: Final = (
    (pt.is_floating, r"(?i)^[^0-9a-z.]*(\.?[0-9][0-9.e+-]*|nan|inf|infinity)[^0-9a-z.]*$"),
    (pt.is_boolean, r"(?i)^[^0-9a-z]*(true|false|0|1)[^0-9a-z]*$"),
    (
        pt.is_timestamp,
        r"^[^0-9A-Za-z]*(0*[0-9]{1,19}|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
        r"[ T]([01][0-9]|2[0-3])[0-9:.]*(Z|[+-][0-9:]{2,5}))[^0-9A-Za-z]*$",
    ),
    (pt.is_binary, HEX),
)
_SHORT = r"^[^0-9A-Za-z.]*[0-9]{1,18}[^0-9A-Za-z.]*$"
"""Matches as many digits as a LONG always has room for."""


def certain_failures(column: pa.ChunkedArray, field: pa.Field, target: TargetSchema) -> Mask:
    """Return a mask of the values that certainly cannot become the field's type.

    :param column: of a type that `casts.plain_column` returns.
    """
    if pt.is_list(column.type) and pt.is_list(field.type):
        return _failing_lists(column, field, target)
    kind = field.type.value_type if pt.is_list(field.type) else field.type
    if pt.is_string(column.type) or pt.is_large_string(column.type):
        is_decimal = field.name in target.decimals
        return _failing_decimals(column) if is_decimal else _failing_texts(column, kind)
    if pt.is_integer(kind) and (pt.is_integer(column.type) or pt.is_floating(column.type)):
        return _failing_numbers(column, kind)
    return np.zeros(len(column), dtype=bool)


def _failing_lists(column: pa.ChunkedArray, field: pa.Field, target: TargetSchema) -> Mask:
    failing = np.zeros(len(column), dtype=bool)
    array = column.combine_chunks()
    items = certain_failures(pa.chunked_array([array.flatten()]), field, target)
    failing[pc.list_parent_indices(array).to_numpy()[items]] = True
    return failing


def _failing_decimals(column: pa.ChunkedArray) -> Mask:
    failing = ~_matches(column, rf"^[^0-9A-Za-z.]*{DECIMAL.strip('^$')}[^0-9A-Za-z.]*$")
    return failing | unstorable(column)


def _failing_texts(column: pa.ChunkedArray, kind: pa.DataType) -> Mask:
    if pt.is_integer(kind):
        failing = ~_matches(column, _LONG)
        return failing | _beyond(column, kind) if kind == pa.int32() else failing
    pattern = next((pattern for is_kind, pattern in _PATTERNS if is_kind(kind)), None)
    return np.zeros(len(column), dtype=bool) if pattern is None else ~_matches(column, pattern)


def _beyond(column: pa.ChunkedArray, kind: pa.DataType) -> Mask:
    """Return a mask of the texts that are whole numbers too large for the type."""
    digits = pc.replace_substring_regex(column, r"[^0-9]", "")
    digits = pc.if_else(pa.array(_matches(column, _SHORT)), digits, None)
    value = pc.fill_null(pc.cast(digits, pa.int64()), 0).to_numpy()
    beyond: Mask = value > (1 << (kind.bit_width - 1)) - 1 + _matches(column, "-")
    return beyond | ~_matches(column, _SHORT.replace("[0-9]{1,18}", "0*[0-9]{1,18}"))


def _matches(column: pa.ChunkedArray, pattern: str) -> Mask:
    return np.asarray(pc.fill_null(pc.match_substring_regex(column, pattern), True).to_numpy(), dtype=bool)


def _failing_numbers(column: pa.ChunkedArray, kind: pa.DataType) -> Mask:
    values = pc.fill_null(column, 0).to_numpy()
    limit = 1 << (kind.bit_width - 1)
    failing: Mask = values > limit - 1 if values.dtype.kind in "iu" else ~(values < limit)
    if values.dtype.kind != "u":
        failing |= values < -limit
    return failing | (values != np.floor(values)) if values.dtype.kind == "f" else failing


_MANY: Final = 100


def conform(table: pa.Table, target: TargetSchema, rows: Sequence[int], verdicts: BadRowPolicy) -> pa.Table:
    """Return the columns of `target`, in its order and types, without the bad rows.

    A column that the table lacks is all null; a column that is not in `target` is dropped.

    :param rows: each row's number, for errors.
    :param verdicts: receives every bad row, once.
    :raises FileRejected: a whole column cannot become its type, or `verdicts` has too many bad rows.
    """
    bad: dict[int, pa.Field] = {}
    columns = []
    present = {name: plain_column(table.column(name)) for name in target.present(table.column_names)}
    for field in target.schema:
        if (column := present.get(field.name)) is None:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
            continue
        if (cast := cast_for(column.type, field, target)) is None:
            raise _no_way(column.type, field, target)
        try:
            columns.append(cast(column))
        except pa.ArrowInvalid:
            wrong = bad_values(column, cast, certain_failures(column, field, target), verdicts.room)
            for n in wrong:
                bad.setdefault(n, field)
            columns.append(_without(column, cast, wrong, field, verdicts.room))
    result = pa.table(columns, schema=target.schema)
    if not bad:
        return result
    indices = sorted(bad)
    records = _records(pa.table(present).take(indices))
    verdicts.bad(
        [_verdict(record, bad[n], rows[n], target) for n, record in zip(indices, records, strict=True)]
    )
    return result.filter(pa.array(_all_but(table.num_rows, indices)))


def bad_values(column: pa.ChunkedArray, cast: Cast, known: npt.NDArray[np.bool_], most: int) -> list[int]:
    """Return the indices of the first values that cannot be cast, ascending.

    :param known: mask of the values that certainly cannot. The others are found by halving, or one by one if
        there are many.
    :param most: how many to look for.
    """
    certain: list[int] = np.flatnonzero(known)[:most].tolist()
    if certain:
        column = column.take(pa.array(np.arange(len(column)), mask=known))
    failing: list[int] = []
    stack = [(0, len(column))]
    while stack and len(failing) < most:
        start, length = stack.pop()
        try:
            cast(column.slice(start, length))
        except pa.ArrowInvalid:
            if length == 1:
                failing.append(start)
            elif len(failing) > _MANY:
                stack += [(n, 1) for n in reversed(range(start, start + length))]
            else:
                half = length // 2
                stack += [(start + half, length - half), (start, half)]
    return sorted([*certain, *failing])[:most]


def _no_way(source: pa.DataType, field: pa.Field, target: TargetSchema) -> TypeMismatch:
    hint = "change the file or the schema; every value of the column is of this type"
    if pt.is_temporal(source):
        hint = f"state with transforms.{field.name} what is meant, or change the file or the schema"
    return TypeMismatch(f"column {field.name}: {source} cannot become {target.type_name(field)}", hint=hint)


def _without(
    column: pa.ChunkedArray, cast: Cast, wrong: list[int], field: pa.Field, most: int
) -> pa.ChunkedArray:
    if len(wrong) >= most:  # more may be wrong, but `verdicts` rejects the file anyway
        return pa.chunked_array([pa.nulls(len(column), field.type)])
    try:
        return cast(column.take(pa.array(np.arange(len(column)), mask=~_all_but(len(column), wrong))))
    except pa.ArrowInvalid as error:
        what = f"column {field.name}: values that can be read one by one cannot be read together"
        raise TypeMismatch(what, why=one_line(error)) from error


def _all_but(count: int, indices: list[int]) -> npt.NDArray[np.bool_]:
    mask = np.ones(count, dtype=bool)
    mask[indices] = False
    return mask


def _verdict(record: JsonObject, field: pa.Field, row: int, target: TargetSchema) -> BadRow:
    value = record[field.name]
    text = json.dumps(record, ensure_ascii=False, default=str)  # for people and for repair
    item = field.type.value_type if pt.is_list(field.type) else field.type
    values = value if isinstance(value, list) else [value]
    if pt.is_string(item) and any(isinstance(one, bytes) for one in values):
        return BadRow(row, field.name, shown(value), "is not UTF-8", Unreadable, text)
    if pt.is_timestamp(item) and isinstance(value, str) and is_local_time(value):
        hint = "write it with Z or an offset"
        return BadRow(row, field.name, shown(value), "names no zone", ZoneMissing, text, hint)
    why = f"cannot become {target.type_name(field)}"
    return BadRow(row, field.name, shown(value), why, TypeMismatch, text)


def _records(table: pa.Table) -> list[JsonObject]:
    try:
        return list(table.to_pylist())
    except (ValueError, OverflowError):  # text that is not UTF-8; a time outside Python's calendar
        columns = {name: table.column(name) for name in table.column_names}
        return [{name: _value(column, n) for name, column in columns.items()} for n in range(table.num_rows)]


def _value(column: pa.ChunkedArray, n: int) -> object:
    scalar = column[n]
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        if pt.is_list(scalar.type) and pt.is_string(scalar.type.value_type):
            return scalar.values.cast(pa.binary()).to_pylist()
        return scalar.as_buffer().to_pybytes() if hasattr(scalar, "as_buffer") else b"\xff"
    except (ValueError, OverflowError):
        return str(scalar.value)
