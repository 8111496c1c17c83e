"""Parquet that was read into memory: snapshots and plans, and their columns of a later release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.limits import MOST_ROWS, OBJECT, UNPACKED
from pinot_assets.core.stored_format import Open

_ROWS_AT_ONCE: Final = 1 << 16
_OFFSET: Final = 4
"""Bytes that Arrow has for where a text, or a list, begins."""


def table_of(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows, by one thread.

    Arrow's pool would start its threads for that, and a command that ends while they start is aborted by C++
    after its work is done, with exit code 134. Of a million rows, one thread is no slower here.

    :param columns: all if none is named; part of a nested one by its path.
    :raises ValueError: unpacked, they would be larger than is read. What is no Parquet is an error of Arrow.
    """
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        _refuse_large(file.metadata)
        _refuse_repeated(data, file.schema, columns)
        return file.read(columns, use_threads=False)


def require_schema(found: pa.Schema, wanted: pa.Schema, added: Sequence[str] = ()) -> None:
    """See that columns are those of a stored object; there may be others.

    :param added: columns that older releases did not write.
    :raises ValueError: one is missing, or of another type.
    """
    for field in wanted:
        if field.name in found.names:
            _require_type(field.name, found.field(field.name).type, field.type)
        elif field.name not in added:
            raise ValueError(f"it lacks the column {field.name}")


def require_values(table: pa.Table, wanted: pa.Schema) -> None:
    """See that no value is missing where each row has one.

    :raises ValueError: one is.
    """
    for name in table.column_names:
        if name in wanted.names:
            for path, values in _required(name, table[name], wanted.field(name)):
                if values.null_count:
                    raise ValueError(f"{path} lacks a value")


def _required(path: str, values: pa.ChunkedArray, wanted: pa.Field) -> Iterator[tuple[str, pa.ChunkedArray]]:
    if not wanted.nullable:
        yield path, values
    if pa.types.is_list(wanted.type):
        item, of = pc.list_flatten(values), wanted.type.value_type
        yield path, item
        for field in of if pa.types.is_struct(of) else ():
            if item.type.get_field_index(field.name) >= 0:
                yield from _required(f"{path}.{field.name}", pc.struct_field(item, field.name), field)


def _require_type(name: str, found: pa.DataType, wanted: pa.DataType) -> None:
    if pa.types.is_list(wanted) and pa.types.is_list(found):
        _require_type(name, found.value_type, wanted.value_type)
    elif pa.types.is_struct(wanted) and pa.types.is_struct(found):
        for field in wanted:
            if found.get_field_index(field.name) >= 0:
                _require_type(f"{name}.{field.name}", found.field(field.name).type, field.type)
    elif found != wanted and not pa.types.is_null(found):
        raise ValueError(f"{name} is of type {found}, not {wanted}")


def _refuse_large(metadata: pq.FileMetaData) -> None:
    most = OBJECT.bytes * UNPACKED
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    # A list may have any number of values in one row.
    values = max(
        (group.column(n).num_values for group in groups for n in range(group.num_columns)), default=0
    )
    if max(metadata.num_rows, values) > MOST_ROWS or unpacked > most:
        raise ValueError(
            f"its {metadata.num_rows:,} rows of {unpacked:,} bytes are more than {MOST_ROWS:,} rows or "
            f"{most:,} bytes, which is the most that is read; {OBJECT.variable} changes that"
        )


def _refuse_repeated(data: bytes, schema: pq.ParquetSchema, columns: Sequence[str] | None) -> None:
    """Refuse what becomes large by repeating: a text that stands once in the file, and in a million rows.

    The footer counts it once. So the rows are read with texts as numbers into a dictionary,
    a part at a time, and what they would be without it is added up.
    """
    leaves = (schema.column(n) for n in range(len(schema)))
    texts = [
        leaf.path
        for leaf in leaves
        if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"
    ]
    most, found = OBJECT.bytes * UNPACKED, 0
    with pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=columns, use_threads=False):
            found += sum(map(_plain_size, batch.columns))
            if found > most:
                raise ValueError(
                    f"its values, some of which it repeats, have more than {most:,} bytes, which is the most "
                    f"that is read; {OBJECT.variable} changes that"
                )


def _plain_size(values: pa.Array) -> int:
    """Bytes of values once no dictionary stands for them."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        lengths = pc.take(pc.binary_length(values.dictionary), values.indices)
        return int(pc.sum(lengths).as_py() or 0) + len(values) * _OFFSET
    if pa.types.is_struct(kind):
        return sum(map(_plain_size, values.flatten()))
    if pa.types.is_map(kind):
        return _plain_size(values.keys) + _plain_size(values.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _plain_size(values.flatten()) + len(values) * _OFFSET
    return int(values.nbytes)


def metadata_of(data: bytes) -> dict[str, str]:
    """What stands beside the rows; none of them is read."""
    found = pq.read_schema(pa.BufferReader(data)).metadata or {}
    return {key.decode(): value.decode() for key, value in found.items()}


def kept_fields(rows: Iterable[Open]) -> list[pa.Field]:
    """Columns for what these rows keep of a later release, with types that hold it."""
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.kept.items():
            columns.setdefault(name, []).append(value)
    return [pa.field(name, pa.infer_type(values)) for name, values in columns.items()]


def kept_of(row: JsonMapping, unknown: Sequence[str]) -> JsonObject:
    """What a row is to keep.

    :param unknown: columns that this release does not know.
    """
    return {name: row[name] for name in unknown if row[name] is not None}
