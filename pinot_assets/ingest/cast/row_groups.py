"""A stream of rows cut into segments; no more than one segment's rows are held."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def cut(tables: Iterator[pa.Table], max_rows: int, desired_bytes: int | None) -> Iterator[pa.Table]:
    """Tables of as many rows as a segment may have, the last one fewer.

    :param desired_bytes: size of a segment, measured by what its rows take in memory. Rows that come together
        count as equally large, so that nothing but the file and its reader say where it is cut: a task run
        twice cuts in the same places.
    """
    pending: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        while table.num_rows:
            room = max_rows - rows
            if desired_bytes is not None:
                room = min(room, (desired_bytes - size) * table.num_rows // max(1, table.nbytes))
            if table.num_rows < room:
                pending.append(table)
                rows, size = rows + table.num_rows, size + table.nbytes
                break
            part = table.slice(0, room if pending else max(1, room))
            yield pa.concat_tables([*pending, part])
            pending, rows, size = [], 0, 0
            table = table.slice(part.num_rows)
    if pending:
        yield pa.concat_tables(pending)
