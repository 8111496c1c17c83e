"""What readers of formats with types of their own (Parquet, ORC, Avro) have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.core.file_errors import Unreadable, one_line
from pinot_assets.ingest.cast.conform import conform
from pinot_assets.ingest.contract.bad_rows import BadRowPolicy
from pinot_assets.ingest.contract.machine_trouble import trouble_of
from pinot_assets.ingest.contract.target_schema import TargetSchema
from pinot_assets.settings.file_limits import FileLimits

BATCH_ROWS: Final = 1 << 16


def columns_of(
    names: list[str], wanted: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits
) -> list[str]:
    """The columns to read.

    :param names: those of the file.
    :raises FileRejected: it has none of the table's, has one twice, or lacks one that it may not lack; or has
        too many.
    """
    limits.check_columns(len(names))
    present = wanted.present(names)
    if not present:
        raise Unreadable(
            "the file has none of the table's columns", why=f"its columns are {', '.join(names)[:200]}"
        )
    counted = Counter(names)
    twice = [name for name in present if counted[name] > 1]
    if twice:
        raise Unreadable(f"the file has two columns {', '.join(twice)}")
    verdicts.lacks(wanted.missing(names))
    return present


def conform_all(
    tables: Iterator[pa.Table], wanted: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits
) -> Iterator[pa.Table]:
    """The tables in the types that are wanted.

    :raises TooLarge: a value is larger than one may be.
    """
    row = 1
    for table in tables:
        check_values(table, limits)
        yield conform(table, wanted, range(row, row + table.num_rows), verdicts)
        row += table.num_rows


def check_values(table: pa.Table, limits: FileLimits) -> None:
    """Refuse a table with a value that is larger than one may be.

    :raises TooLarge: it has one.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        limits.check_value(name, _largest(column))


def _largest(column: pa.ChunkedArray) -> int:
    """Bytes of the largest text or bytes value, 0 where there is none. Looks at offsets alone.

    Nested columns are few; what becomes of them is text of the same size at the least.
    """
    most = 0
    for array in column.chunks:
        while pt.is_list(array.type) or pt.is_large_list(array.type):
            array = array.flatten()
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pt.is_dictionary(array.type):
            array = array.dictionary
        if _is_text(array.type) and len(array):
            most = max(most, pc.max(pc.binary_length(array)).as_py() or 0)
    return most


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pt.is_string(kind) or pt.is_large_string(kind) or pt.is_binary(kind) or pt.is_large_binary(kind)
    )


@contextmanager
def damaged(what: str) -> Iterator[None]:
    """Errors of the library as ours.

    :param what: name of the format.
    :raises Unreadable: the file is damaged. Trouble of the machine stays what it is.
    """
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: names of columns
        if trouble_of(error) is not None:
            raise
        raise Unreadable(f"the {what} file is damaged or cut short", why=one_line(error)) from error
