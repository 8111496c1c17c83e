"""What a format's reader found, in the table's types; nothing is lost on the way, or the row is named.

Kinder than Pinot's own conversion nowhere, stricter in some: Pinot truncates 1.5 to an INT and takes a
timestamp without a zone in the zone of the JVM; both are refused here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from pinot_assets.core.file_errors import BadRow, TypeMismatch, Unreadable, ZoneMissing, one_line, shown
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.cast.casts import Cast, cast_for, is_local_time, plain
from pinot_assets.ingest.cast.precheck import certain_failures
from pinot_assets.ingest.contract.bad_rows import BadRowPolicy
from pinot_assets.ingest.contract.target_schema import TargetSchema

_MANY: Final = 100


def conform(table: pa.Table, wanted: TargetSchema, rows: Sequence[int], verdicts: BadRowPolicy) -> pa.Table:
    """The columns of `wanted`, in its order and types, without the rows that are bad.

    A column that the table lacks is all null; one that is not wanted is left out.

    :param rows: what people call each row.
    :param verdicts: is told of every bad row, once for each.
    :raises FileRejected: a whole column cannot become its type, or `verdicts` has enough.
    """
    bad: dict[int, pa.Field] = {}
    columns = []
    found = {name: plain(table.column(name)) for name in wanted.present(table.column_names)}
    for field in wanted.schema:
        column = found.get(field.name)
        if column is None:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
            continue
        cast = cast_for(column.type, field, wanted)
        if cast is None:
            raise _no_way(column.type, field, wanted)
        try:
            columns.append(cast(column))
        except pa.ArrowInvalid:
            wrong = bad_values(column, cast, certain_failures(column, field, wanted), verdicts.room)
            for n in wrong:
                bad.setdefault(n, field)
            columns.append(_without(column, cast, wrong, field, verdicts.room))
    result = pa.table(columns, schema=wanted.schema)
    if not bad:
        return result
    indices = sorted(bad)
    records = _records(pa.table(found).take(indices))
    verdicts.bad(
        [_verdict(record, bad[n], rows[n], wanted) for n, record in zip(indices, records, strict=True)]
    )
    return result.filter(pa.array(_all_but(table.num_rows, indices)))


def bad_values(column: pa.ChunkedArray, cast: Cast, known: npt.NDArray[np.bool_], most: int) -> list[int]:
    """Indices of the first values that cannot be cast, ascending.

    :param known: which values certainly cannot; the others are found by halving, and one by one where there
        are many.
    :param most: how many are looked for.
    """
    certain: list[int] = np.flatnonzero(known)[:most].tolist()
    if certain:
        column = column.take(pa.array(np.arange(len(column)), mask=known))
    found: list[int] = []
    stack = [(0, len(column))]
    while stack and len(found) < most:
        start, length = stack.pop()
        try:
            cast(column.slice(start, length))
        except pa.ArrowInvalid:
            if length == 1:
                found.append(start)
            elif len(found) > _MANY:
                stack += [(n, 1) for n in reversed(range(start, start + length))]
            else:
                half = length // 2
                stack += [(start + half, length - half), (start, half)]
    return sorted([*certain, *found])[:most]


def record_text(values: object) -> str:
    """A row for people and for repair."""
    return json.dumps(values, ensure_ascii=False, default=str)


def _no_way(source: pa.DataType, field: pa.Field, wanted: TargetSchema) -> TypeMismatch:
    hint = "change the file or the schema; every value of the column is of this type"
    if pt.is_temporal(source):
        hint = f"say with transforms.{field.name} what is meant, or change the file or the schema"
    return TypeMismatch(f"column {field.name}: {source} cannot become {wanted.type_name(field)}", hint=hint)


def _without(
    column: pa.ChunkedArray, cast: Cast, wrong: list[int], field: pa.Field, most: int
) -> pa.ChunkedArray:
    if len(wrong) >= most:  # more may be wrong; `verdicts` ends the file anyway
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


def _verdict(record: JsonObject, field: pa.Field, row: int, wanted: TargetSchema) -> BadRow:
    value = record[field.name]
    text = record_text(record)
    item = field.type.value_type if pt.is_list(field.type) else field.type
    if pt.is_string(item) and any(isinstance(one, bytes) for one in _items(value)):
        return BadRow(row, field.name, shown(value), "is not UTF-8", Unreadable, text)
    if pt.is_timestamp(item) and isinstance(value, str) and is_local_time(value):
        hint = "write it with Z or an offset"
        return BadRow(row, field.name, shown(value), "names no zone", ZoneMissing, text, hint)
    why = f"cannot become {wanted.type_name(field)}"
    return BadRow(row, field.name, shown(value), why, TypeMismatch, text)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _records(table: pa.Table) -> list[JsonObject]:
    try:
        records: list[JsonObject] = table.to_pylist()
    except (ValueError, OverflowError):  # text that is not UTF-8; a time that Python's calendar does not know
        columns = {name: table.column(name) for name in table.column_names}
        return [{name: _value(column, n) for name, column in columns.items()} for n in range(table.num_rows)]
    return records


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
