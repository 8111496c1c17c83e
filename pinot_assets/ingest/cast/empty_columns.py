"""Which columns of a file have a value at all."""

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
