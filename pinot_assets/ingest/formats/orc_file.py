"""ORC through Arrow, a stripe at a time: the table's columns by name. Rows are counted from 1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.orc as paorc

from pinot_assets.core.file_errors import FileTooLarge, Unreadable
from pinot_assets.ingest.contract.bad_rows import BadRowPolicy
from pinot_assets.ingest.contract.target_schema import TargetSchema
from pinot_assets.ingest.formats.typed import columns_of, conform_all, damaged
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits

_MOST_AT_ONCE: Final = 64 << 20
"""Bytes of a compression block as the file declares them; the default is 256 KB, the format ends at 8 MB."""


def read_orc(
    path: Path, wanted: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits = DEFAULTS
) -> Iterator[pa.Table]:
    """Rows as the columns of `wanted`, a stripe at a time.

    :raises FileRejected: the file is damaged, has none of the columns, or a value does not fit.
    """
    yield from conform_all(_stripes(path, wanted, verdicts, limits), wanted, verdicts, limits)


def first_orc(path: Path, count: int, limits: FileLimits = DEFAULTS) -> pa.Table:
    """Up to so many rows of the first stripe, in the file's own types; none of a file without any.

    :raises FileRejected: the file is damaged, or has more than it may.
    """
    with damaged("ORC"), pa.memory_map(str(path)) as data:
        file = paorc.ORCFile(data)
        limits.check_columns(len(file.schema))
        if file.nrows == 0:
            return file.schema.empty_table()
        _check_blocks(file)
        return pa.Table.from_batches([_stripe(file, 0, file.schema.names).slice(0, count)])


def _stripes(
    path: Path, wanted: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits
) -> Iterator[pa.Table]:
    with damaged("ORC"), pa.memory_map(str(path)) as data:
        file = paorc.ORCFile(data)
        verdicts.holds(file.nrows)
        if file.nrows == 0:
            return
        columns = columns_of(file.schema.names, wanted, verdicts, limits)
        _check_blocks(file)
        for n in range(file.nstripes):
            yield pa.Table.from_batches([_stripe(file, n, columns)])


def _check_blocks(file: paorc.ORCFile) -> None:
    if file.compression_size > _MOST_AT_ONCE:
        raise FileTooLarge(
            f"the file is packed in blocks of up to {file.compression_size >> 20:,} MB, "
            f"more than {_MOST_AT_ONCE >> 20} MB",
            why="a reader takes the memory for a whole one at once",
            hint="write it with orc.compress.size of some hundred KB",
        )


def _stripe(file: paorc.ORCFile, n: int, columns: list[str]) -> pa.RecordBatch:
    try:
        found = file.read_stripe(n, columns=columns)
        if not set(columns).issubset(found.schema.names):
            # ORC's reader takes a.b for the member of a struct that follows, even if it is asked by number.
            found = file.read_stripe(n)
        return found.select(columns)
    except pa.ArrowInvalid as error:
        if "out of range for nanosecond" not in str(error):
            raise
        raise Unreadable(
            "a timestamp lies before 1677 or after 2262",
            why="Arrow's ORC reader counts in nanoseconds",
            hint="read the table with engine: spark, or write Parquet",
        ) from error
