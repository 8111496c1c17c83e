"""Parquet that was read into memory: snapshots and plans, and their columns of a later release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pinot_assets.stored import Open


def table_of(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows, by one thread.

    Arrow's pool would start its threads for that, and a command that ends while they start is aborted by C++
    after its work is done, with exit code 134. Of a million rows, one thread is no slower here.

    :param columns: all if none is named; part of a nested one by its path.
    """
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        return file.read(columns, use_threads=False)


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
