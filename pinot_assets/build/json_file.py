"""JSON documents, one after the other: Arrow where it can, Python's own parser where it cannot.

Arrow is about ten times faster but knows one kind of value per column, keeps no object's text and does not
say in which row a value failed. So its refusal is never final: the file is then read document by document,
which accepts what Pinot accepts without loss and names row and column of what nobody can accept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.json as pajson
import pyarrow.types as pt

from pinot_assets.build.conform import conform
from pinot_assets.build.rejected import FileRejected, TypeMismatch, Unreadable, shown

_BLOCK_BYTES: Final = 16 << 20  # a longer document is left to Python's parser
_BLANKS: Final = " \t\r\n"
_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,20}")
_TRUE: Final = frozenset(("true", "1"))
_FALSE: Final = frozenset(("false", "0"))
_DECODER: Final = json.JSONDecoder()


def read_json(data: pa.Buffer, schema: pa.Schema, json_columns: Collection[str]) -> pa.Table:
    """Documents as the columns of `schema`; a missing member is null, an unknown one is left out.

    :param data: the whole file, not blank.
    :param json_columns: text columns that take any value, as compact JSON.
    :raises FileRejected: names column and row; rows are counted from 1, blank lines left out.
    """
    text = None
    try:
        first = _first_document(data)
        table = conform(_by_arrow(data, _guess(first, schema, json_columns)), schema)
    except (pa.ArrowException, ValueError, _NotForArrow, FileRejected):
        text = _text(data)
        table = _by_python(text, schema, json_columns)
    if table.num_rows and all(column.null_count == table.num_rows for column in table.columns):
        _check_names(_text(data) if text is None else text, schema)
    return table


class _NotForArrow(Exception):
    pass


def _by_arrow(data: pa.Buffer, schema: pa.Schema) -> pa.Table:
    return pajson.read_json(
        pa.BufferReader(data),
        read_options=pajson.ReadOptions(use_threads=False, block_size=min(data.size + 1, _BLOCK_BYTES)),
        parse_options=pajson.ParseOptions(
            explicit_schema=schema, newlines_in_values=True, unexpected_field_behavior="ignore"
        ),
    )


def _guess(first: dict[str, Any], schema: pa.Schema, json_columns: Collection[str]) -> pa.Schema:
    """What Arrow is to expect, judged by the first document. A wrong guess costs time, never a value."""
    fields = []
    for field in schema:
        value = first.get(field.name)
        if field.name in json_columns and not isinstance(value, str):
            raise _NotForArrow
        if pt.is_timestamp(field.type) or pt.is_string(field.type):
            fields.append((field.name, pa.int64() if type(value) is int else pa.string()))
        else:
            fields.append((field.name, field.type))
    return pa.schema(fields)


def _by_python(text: str, schema: pa.Schema, json_columns: Collection[str]) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    plan = [(f.name, columns[f.name], _converter(f, f.name in json_columns)) for f in schema]
    for row, document in enumerate(_documents(text), 1):
        for name, values, convert in plan:
            value = document.get(name)
            try:
                values.append(None if value is None else convert(value))
            except (ValueError, OverflowError) as error:
                raise TypeMismatch(
                    f"column {name}, row {row}: {shown(value)} cannot become {schema.field(name).type}"
                ) from error
    arrays = {
        # Timestamps go on as text, so that one place knows how to read them.
        f.name: pa.array(columns[f.name], pa.string() if pt.is_timestamp(f.type) else f.type)
        for f in schema
    }
    return conform(pa.table(arrays), schema)


def _converter(field: pa.Field, is_json: bool) -> Any:
    if is_json:
        return _json_text
    if pt.is_integer(field.type):
        limit = 1 << (field.type.bit_width - 1)
        return lambda value: _integer(value, limit)
    if pt.is_floating(field.type):
        return _floating
    if pt.is_boolean(field.type):
        return _boolean
    return _moment if pt.is_timestamp(field.type) else _string


def _integer(value: Any, limit: int) -> int:
    if (type(value) is str and _DIGITS.fullmatch(value)) or (type(value) is float and value.is_integer()):
        value = int(value)
    if type(value) is not int or not -limit <= value < limit:
        raise ValueError
    return value


def _floating(value: Any) -> float:
    if type(value) not in (int, float, str) or (type(value) is str and "_" in value):
        raise ValueError
    return float(value)


def _boolean(value: Any) -> bool:
    if type(value) is bool:
        return value
    text = value.lower() if type(value) is str else ""
    if text not in _TRUE | _FALSE:
        raise ValueError
    return text in _TRUE


def _string(value: Any) -> str:
    if type(value) is str:
        value.encode()  # half a surrogate pair is a ValueError
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is not int:
        raise ValueError  # of a float, the text is not known any more
    return str(value)


def _moment(value: Any) -> str:
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) not in (int, str):
        raise ValueError
    return str(value)


def _json_text(value: Any) -> str:
    if type(value) is str:
        return _string(value)
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text.encode()
    return text


def _first_document(data: pa.Buffer) -> dict[str, Any]:
    # Most first documents are short; the rest of the file need not become text for them.
    start = bytes(memoryview(data)[: 1 << 16]).decode(errors="replace")
    return next(_documents(start), {})


def _text(data: pa.Buffer) -> str:
    try:
        return bytes(memoryview(data)).decode()
    except UnicodeDecodeError as error:
        raise Unreadable("the file holds text that is not UTF-8", why=f"byte {error.start}") from error


def _documents(text: str) -> Iterator[dict[str, Any]]:
    position, row, end = 0, 0, len(text)
    while True:
        while position < end and text[position] in _BLANKS:
            position += 1
        if position == end:
            return
        row += 1
        try:
            value, position = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise Unreadable(f"row {row}, line {error.lineno}: {error.msg}") from error
        except RecursionError as error:
            raise Unreadable(f"row {row}: values are nested too deeply") from error
        if not isinstance(value, dict):
            raise Unreadable(
                f"row {row}: {shown(value)} is not a JSON object",
                hint="write one object per row, no array around",
            )
        yield value


def _check_names(text: str, schema: pa.Schema) -> None:
    if not any(set(schema.names) & document.keys() for document in _documents(text)):
        names = ", ".join(next(_documents(text)))[:200]
        raise Unreadable(
            "the file has none of the table's columns", why=f"its first row has {names or 'none'}"
        )
