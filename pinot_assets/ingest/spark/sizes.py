"""Values and pages of a binary file, looked at before Spark's readers have it.

They hold a page and the values of many rows several times in the memory of their JVM. One that dies of that
takes the jobs of all other files with it, so what can be told beforehand is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq

from pinot_assets.ingest.formats.parquet_file import check_pages
from pinot_assets.ingest.formats.typed import check_values, damaged
from pinot_assets.settings.file_limits import RATIO, FileLimits

_ROWS: Final = 1 << 10


def check_sizes(local: Path, input_format: str, columns: frozenset[str], limits: FileLimits) -> None:
    """Whether the values of a Parquet or ORC file may be so large; nothing is said of others.

    :param columns: those that are read.
    :raises TooLarge: one is larger, or a part of the file unpacks to far too much.
    :raises Unreadable: the file is damaged.
    """
    if input_format == "parquet":
        _check_parquet(local, columns, limits)
    elif input_format == "orc":
        _check_orc(local, columns, limits)


def _check_parquet(local: Path, columns: frozenset[str], limits: FileLimits) -> None:
    with damaged("Parquet"), pq.ParquetFile(local, memory_map=True, pre_buffer=False) as file:
        check_pages(file.metadata, columns, limits)
        # Where all values of a row group together are no larger than one may be, none is.
        large = sorted(columns.intersection(_large_columns(file.metadata, limits.value_bytes)))
        for batch in file.iter_batches(_ROWS, columns=large, use_threads=False) if large else ():
            check_values(pa.Table.from_batches([batch]), limits)


def _large_columns(metadata: pq.FileMetaData, most: int) -> set[str]:
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    chunks = (group.column(m) for group in groups for m in range(group.num_columns))
    return {
        chunk.path_in_schema.partition(".")[0]
        for chunk in chunks
        if chunk.physical_type == "BYTE_ARRAY" and chunk.total_uncompressed_size > most
    }


def _check_orc(local: Path, columns: frozenset[str], limits: FileLimits) -> None:
    if local.stat().st_size * RATIO <= limits.value_bytes:
        return
    with damaged("ORC"), pa.memory_map(str(local)) as data:
        file = paorc.ORCFile(data)
        # Times need not be Arrow's, whose range is smaller than Spark's.
        texts = [field.name for field in file.schema if field.name in columns and _holds_text(field.type)]
        for n in range(file.nstripes) if texts else ():
            check_values(pa.Table.from_batches([file.read_stripe(n, columns=texts)]), limits)


def _holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return _holds_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
