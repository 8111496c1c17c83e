"""Parquet through Arrow: the table's columns by name, nothing else is read. Rows are counted from 1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pinot_assets.ingest.contract.bad_rows import BadRowPolicy
from pinot_assets.ingest.contract.target_schema import TargetSchema
from pinot_assets.ingest.formats.typed import BATCH_ROWS, columns_of, conform_all, damaged
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits


def read_parquet(
    path: Path, wanted: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits = DEFAULTS
) -> Iterator[pa.Table]:
    """Rows as the columns of `wanted`, some at a time.

    :raises FileRejected: the file is damaged, has none of the columns, or a value does not fit.
    """
    yield from conform_all(_batches(path, wanted, verdicts, limits), wanted, verdicts, limits)


def first_parquet(path: Path, count: int, limits: FileLimits = DEFAULTS) -> pa.Table:
    """Up to so many rows, in the file's own types; none of a file without any.

    :raises FileRejected: the file is damaged, or has more than it may.
    """
    with (
        damaged("Parquet"),
        pq.ParquetFile(path, memory_map=True, pre_buffer=False, coerce_int96_timestamp_unit="us") as file,
    ):
        schema = file.schema_arrow
        limits.check_columns(len(schema))
        check_pages(file.metadata, frozenset(schema.names), limits)
        batch = next(file.iter_batches(count, use_threads=False), None)
        return schema.empty_table() if batch is None else pa.Table.from_batches([batch])


def _batches(
    path: Path, wanted: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits
) -> Iterator[pa.Table]:
    with (
        damaged("Parquet"),
        pq.ParquetFile(
            path,
            memory_map=True,
            page_checksum_verification=True,
            pre_buffer=False,
            coerce_int96_timestamp_unit="us",  # nanoseconds would end in 2262, without a word
        ) as file,
    ):
        names = file.schema_arrow.names
        verdicts.holds(file.metadata.num_rows)
        if file.metadata.num_rows == 0:
            return  # one without columns is still an empty one (edge case E5)
        columns = columns_of(names, wanted, verdicts, limits)
        check_pages(file.metadata, frozenset(columns), limits)
        for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
            yield pa.Table.from_batches([batch])


def check_pages(metadata: pq.FileMetaData, columns: frozenset[str], limits: FileLimits) -> None:
    """Refuse column chunks that say of themselves that they unpack to far too much.

    :raises TooLarge: one does.
    """
    for n in range(metadata.num_row_groups):
        group = metadata.row_group(n)
        for m in range(group.num_columns):
            chunk = group.column(m)
            if chunk.path_in_schema.partition(".")[0] in columns:
                limits.check_unpacked(chunk.total_compressed_size, chunk.total_uncompressed_size)
