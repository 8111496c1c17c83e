"""What readers of formats with types of their own (Parquet, ORC, Avro) have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from pinot_assets.build.conform import conform
from pinot_assets.build.rejected import Unreadable, one_line
from pinot_assets.build.verdicts import Verdicts
from pinot_assets.build.wanted import Wanted

BATCH_ROWS: Final = 1 << 16


def columns_of(names: list[str], wanted: Wanted, verdicts: Verdicts) -> list[str]:
    """The columns to read.

    :param names: those of the file.
    :raises FileRejected: it has none of the table's, has one twice, or lacks one that it may not lack.
    """
    present = wanted.present(names)
    if not present:
        raise Unreadable(
            "the file has none of the table's columns", why=f"its columns are {', '.join(names)[:200]}"
        )
    twice = [name for name in present if names.count(name) > 1]
    if twice:
        raise Unreadable(f"the file has two columns {', '.join(twice)}")
    verdicts.lacks(wanted.missing(names))
    return present


def conform_all(tables: Iterator[pa.Table], wanted: Wanted, verdicts: Verdicts) -> Iterator[pa.Table]:
    """The tables in the types that are wanted."""
    row = 1
    for table in tables:
        yield conform(table, wanted, range(row, row + table.num_rows), verdicts)
        row += table.num_rows


@contextmanager
def damaged(what: str) -> Iterator[None]:
    """Errors of the library as ours.

    :param what: name of the format.
    :raises Unreadable: the file is damaged.
    """
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: names of columns
        raise Unreadable(f"the {what} file is damaged or cut short", why=one_line(error)) from error
