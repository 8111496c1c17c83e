"""Which rows of a file its table accepts: the columns as Arrow types, and how many rows may be bad.

Readers tell a `BadRowPolicy` what they find. Rows that are put aside go to a Parquet file, never away.
Accepted rows are cut into segments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from pinot_assets.core.file_errors import BadRow, ColumnMissing, TooManyBadRows
from pinot_assets.segment import DataType, SegmentSpec


@dataclass(frozen=True, slots=True)
class TargetSchema:
    """The columns of a table.

    :ivar schema: names and types, `SegmentSpec.arrow_schema()`; multi-value columns are lists.
    :ivar json: text columns that hold JSON: they take any value of a file that knows more than text.
    :ivar decimals: text columns that hold numbers of any length (BIG_DECIMAL).
    """

    schema: pa.Schema
    json: frozenset[str] = frozenset()
    decimals: frozenset[str] = frozenset()

    @classmethod
    def of(cls, spec: SegmentSpec) -> Self:
        """The columns that the segment writer takes."""
        kinds = {column.name: column.data_type.value for column in spec.columns}
        return cls(
            spec.arrow_schema(),
            frozenset(name for name, kind in kinds.items() if kind == DataType.JSON),
            frozenset(name for name, kind in kinds.items() if kind == "BIG_DECIMAL"),
        )

    def present(self, names: list[str]) -> list[str]:
        """Those of the table's columns that a file has."""
        there = frozenset(names)
        return [name for name in self.schema.names if name in there]

    def missing(self, names: list[str]) -> tuple[str, ...]:
        """Those that it lacks."""
        there = frozenset(names)
        return tuple(name for name in self.schema.names if name not in there)

    def type_name(self, field: pa.Field) -> str:
        """A column's type in Pinot's words."""
        if field.name in self.json:
            return "JSON"
        kind = field.type.value_type if pt.is_list(field.type) else field.type
        name = "TIMESTAMP" if pt.is_timestamp(kind) else _NAMES.get(kind, str(kind))
        name = "BIG_DECIMAL" if field.name in self.decimals else name
        return f"multi-value {name}" if pt.is_list(field.type) else name


_NAMES = {
    pa.int32(): "INT",
    pa.int64(): "LONG",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.string(): "STRING",
    pa.binary(): "BYTES",
}


MissingColumn = Literal["null", "fail"]
_LIMIT: Final = re.compile(r"([0-9]{1,9})|([0-9]{1,3}(?:\.[0-9]{1,4})?)\s*%")
_TEXTS: Final = ("column", "value", "reason", "code", "record")
_SCHEMA: Final = pa.schema(
    [("file", pa.string()), ("row", pa.int64()), *((name, pa.string()) for name in _TEXTS)]
)
_NO_LIMIT: Final = 1 << 62
_ENOUGH: Final = 100_000
"""From so many bad rows on a percentage is measured by the rows read so far, too: a file that is plainly bad
is not worth reading to its end."""


@dataclass(frozen=True, slots=True)
class BadRowAllowance:
    """How many rows of a file may be bad: so many, or so many of a hundred."""

    rows: int | None = None
    percent: float | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """`100` or `0.5%`.

        :raises ValueError: it is neither; goes on from the key's name.
        """
        if (match := _LIMIT.fullmatch(text.strip())) is None:
            raise ValueError("is neither a number of rows nor a percentage; write 100 or 0.5%")
        if match[1]:
            return cls(rows=int(match[1]))
        if float(match[2]) > 100:
            raise ValueError("is above 100%")
        return cls(percent=float(match[2]))

    def __str__(self) -> str:
        return f"{self.percent:g}%" if self.percent is not None else f"{self.rows}"


class BadRowPolicy:
    """Forgives no bad row.

    :ivar missing: columns of the table that the file lacks.
    :ivar bad_rows: rows put aside so far.
    :ivar rows: rows of the file by its reader's own count, None as long as it did not say. Bad ones are
        included, whatever becomes of them: the file's footer says so, or its parser met them. The audit holds
        it against what was written.
    :ivar room: how many bad rows are worth looking for at a time.
    """

    def __init__(self, missing_column: MissingColumn = "null") -> None:
        self._missing_column = missing_column
        self.missing: tuple[str, ...] = ()
        self.bad_rows = 0
        self.rows: int | None = None

    @property
    def room(self) -> int:
        """How many bad rows are worth looking for: the last of them is one too many."""
        return 1

    def bad(self, rows: Sequence[BadRow]) -> None:
        """Some rows, ascending and not empty, cannot be taken.

        :raises FileRejected: that is too much for the file.
        """
        raise rows[0].verdict()

    def lacks(self, columns: tuple[str, ...]) -> None:
        """The file lacks columns; they are null in all of its rows.

        :raises ColumnMissing: the table wants them all.
        """
        self.missing = columns
        if columns and self._missing_column == "fail":
            raise ColumnMissing(
                f"the file has no column {', '.join(columns)}",
                why="onMissingColumn is fail",
                hint="add the columns to the file, or let them be null with onMissingColumn: null",
            )

    def finish(self, rows: int) -> None:
        """The file is read to its end.

        :param rows: good ones.
        :raises TooManyBadRows: measured by them, too many were bad.
        """


class Quarantine(BadRowPolicy):
    """Puts bad rows aside, up to a limit.

    :param path: the Parquet file to write; there is none without a bad row.
    :param file: URI of the source file.
    """

    def __init__(
        self, path: Path, file: str, limit: BadRowAllowance, missing_column: MissingColumn = "null"
    ) -> None:
        super().__init__(missing_column)
        self._path, self._file, self._limit = path, file, limit
        self._writer: pq.ParquetWriter | None = None
        self._first: BadRow | None = None

    @property
    def room(self) -> int:
        """As `BadRowPolicy.room`."""
        return _NO_LIMIT if self._limit.rows is None else self._limit.rows - self.bad_rows + 1

    def bad(self, rows: Sequence[BadRow]) -> None:
        """Write them down; see `BadRowPolicy.bad`.

        :raises TooManyBadRows: they are more than the limit.
        """
        self._first = self._first or rows[0]
        self.bad_rows += len(rows)
        if self._limit.rows is not None and self.bad_rows > self._limit.rows:
            raise self._too_many(f"more than {self._limit.rows} rows are bad")
        percent, read = self._limit.percent, rows[-1].row
        if percent is not None and self.bad_rows >= _ENOUGH and self.bad_rows * 100 > percent * read:
            raise self._too_many(f"{self.bad_rows} of the first {read} rows are bad")
        self._writer = self._writer or pq.ParquetWriter(self._path, _SCHEMA, compression="zstd")
        records = (bad.record.encode(errors="backslashreplace").decode() for bad in rows)  # UTF-8 throughout
        cells = [
            (self._file, bad.row, bad.column, bad.value, bad.why, bad.kind.code, record)
            for bad, record in zip(rows, records, strict=True)
        ]
        self._writer.write_table(pa.table([[*column] for column in zip(*cells, strict=True)], _SCHEMA))

    def finish(self, rows: int) -> None:
        """As `BadRowPolicy.finish`; also closes the Parquet file."""
        if self._writer is None:
            return
        self._writer.close()
        percent = self._limit.percent
        if percent is not None and self.bad_rows * 100 > percent * (self.bad_rows + rows):
            raise self._too_many(f"{self.bad_rows} of {self.bad_rows + rows} rows are bad")

    def _too_many(self, what: str) -> TooManyBadRows:
        assert self._first is not None
        return TooManyBadRows(
            f"{what}, maxBadRows is {self._limit}",
            why=f"the first is {self._first.verdict().what}",
            hint="correct the file, or raise maxBadRows",
        )


class EmptyColumns:
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
