"""A stream of rows cut into segments; no more than one segment's rows are held."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def cut(tables: Iterator[pa.Table], max_rows: int, desired_bytes: int | None) -> Iterator[pa.Table]:
    """Tables of as many rows as a segment may have, the last one fewer.

    :param desired_bytes: size of a segment, measured by what its rows take in memory. How many rows that is
        is judged once, by the first rows of the file, so that a task run twice cuts in the same places.
    """
    pending: list[pa.Table] = []
    rows, limit = 0, None
    for table in tables:
        if not table.num_rows:
            continue
        limit = limit or _limit(table, max_rows, desired_bytes)
        start = 0
        while rows + table.num_rows - start >= limit:
            part = table.slice(start, limit - rows)
            yield pa.concat_tables([*pending, part])
            pending, rows, start = [], 0, start + part.num_rows
        if start < table.num_rows:
            pending.append(table.slice(start))
            rows += table.num_rows - start
    if pending:
        yield pa.concat_tables(pending)


def _limit(first: pa.Table, max_rows: int, desired_bytes: int | None) -> int:
    if desired_bytes is None:
        return max_rows
    rows: int = desired_bytes * first.num_rows // max(1, first.nbytes)
    return max(1, min(max_rows, rows))
