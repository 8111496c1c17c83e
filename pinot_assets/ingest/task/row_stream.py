"""The rows of one file on their way to segments: which columns have a value, and where segments are cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


class Values:
    """Looks at the rows of one file as they pass.

    :param columns: names of the table's.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self._without = list(columns)
        self._rows = 0

    def watched(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The same tables; a column is looked at until it shows a value."""
        for table in tables:
            self._rows += table.num_rows
            self._without = [
                name for name in self._without if table.column(name).null_count == table.num_rows
            ]
            yield table

    def missing(self, lacking: tuple[str, ...]) -> tuple[str, ...]:
        """Columns without a value, once all rows have passed; of a file without rows those that it lacks.

        :param lacking: what the file has no column for, which may be more than the table's.
        """
        without = [name for name in self._without if name not in lacking] if self._rows else []
        return (*lacking, *without)


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
