"""Parquet that was read into memory: snapshots and plans, and their columns of a later release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pinot_assets.limits import MOST_ROWS, OBJECT, UNPACKED
from pinot_assets.stored import Open


def table_of(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows, by one thread.

    Arrow's pool would start its threads for that, and a command that ends while they start is aborted by C++
    after its work is done, with exit code 134. Of a million rows, one thread is no slower here.

    :param columns: all if none is named; part of a nested one by its path.
    :raises ValueError: unpacked, they would be larger than is read. What is no Parquet is an error of Arrow.
    """
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        _refuse_large(file.metadata)
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
    unpacked = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if metadata.num_rows > MOST_ROWS or unpacked > most:
        raise ValueError(
            f"its {metadata.num_rows:,} rows of {unpacked:,} bytes are more than {MOST_ROWS:,} rows or "
            f"{most:,} bytes, which is the most that is read; {OBJECT.variable} changes that"
        )


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


def kept_of(row: Mapping[str, Any], unknown: Sequence[str]) -> dict[str, Any]:
    """What a row is to keep.

    :param unknown: columns that this release does not know.
    """
    return {name: row[name] for name in unknown if row[name] is not None}
