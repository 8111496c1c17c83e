"""Which rows of a file its table accepts: the columns as Arrow types, and how many rows may be bad.

Readers report bad rows to a `BadRowPolicy`. Rows that are put aside go into a Parquet file and are not lost.
`cut` divides the accepted rows into segments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from pinot_assets.core.file_errors import BadRow, ColumnMissing, TooManyBadRows
from pinot_assets.segment.column.types import DataType

if TYPE_CHECKING:
    from pinot_assets.segment.config.segment_spec import SegmentSpec


@dataclass(frozen=True, slots=True)
class TargetSchema:
    """The columns of a table.

    :ivar schema: names and types, `SegmentSpec.arrow_schema()`; multi-value columns are lists.
    :ivar json: text columns that hold JSON: if a file's format knows more than text, they take any value.
    :ivar decimals: text columns that hold numbers of any length (BIG_DECIMAL).
    """

    schema: pa.Schema
    json: frozenset[str] = frozenset()
    decimals: frozenset[str] = frozenset()

    @classmethod
    def of(cls, spec: SegmentSpec) -> Self:
        """Return the columns that the segment writer takes."""
        kinds = {column.name: column.data_type.value for column in spec.columns}
        return cls(
            spec.arrow_schema(),
            frozenset(name for name, kind in kinds.items() if kind == DataType.JSON),
            frozenset(name for name, kind in kinds.items() if kind == "BIG_DECIMAL"),
        )

    def present(self, names: list[str]) -> list[str]:
        """Return the table's columns that a file has."""
        there = frozenset(names)
        return [name for name in self.schema.names if name in there]

    def missing(self, names: list[str]) -> tuple[str, ...]:
        """Return the table's columns that a file lacks."""
        there = frozenset(names)
        return tuple(name for name in self.schema.names if name not in there)

    def type_name(self, field: pa.Field) -> str:
        """Return a column's type under Pinot's name."""
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
"""From this many bad rows on, a percentage is also applied to the rows read so far: a file that is plainly
bad need not be read to its end."""


@dataclass(frozen=True, slots=True)
class BadRowAllowance:
    """How many rows of a file may be bad: a number, or a percentage."""

    rows: int | None = None
    percent: float | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `100` or `0.5%`.

        :raises ValueError: it is neither; its text continues a sentence that begins with the key's name.
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
    """Accepts no bad row.

    :param provenance: a column that files lack, since each row gets its file's path there; "" for none.
    :ivar missing: columns of the table that the file lacks.
    :ivar bad_rows: rows put aside so far.
    :ivar rows: rows of the file as its footer or its parser counts them, None until it is known. Bad rows are
        included, whatever happens to them. The audit compares this number with the rows that were written.
    :ivar room: how many bad rows a reader should look for at a time.
    """

    def __init__(self, missing_column: MissingColumn = "null", provenance: str = "") -> None:
        self._missing_column, self._provenance = missing_column, provenance
        self.missing: tuple[str, ...] = ()
        self.bad_rows = 0
        self.rows: int | None = None

    @property
    def room(self) -> int:
        """Return how many bad rows a reader should look for; the last of them exceeds the limit."""
        return 1

    def bad(self, rows: Sequence[BadRow]) -> None:
        """Report bad rows, in ascending order, at least one.

        :raises FileRejected: the file has too many bad rows.
        """
        raise rows[0].verdict()

    def lacks(self, columns: tuple[str, ...]) -> None:
        """Report columns that the file lacks; they are null in all of its rows.

        :raises ColumnMissing: the table requires all columns.
        """
        self.missing = columns = tuple(name for name in columns if name != self._provenance)
        if columns and self._missing_column == "fail":
            raise ColumnMissing(
                f"the file has no column {', '.join(columns)}",
                why="onMissingColumn is fail",
                hint="add the columns to the file, or let them be null with onMissingColumn: null",
            )

    def finish(self, rows: int) -> None:
        """Report that the file is read to its end.

        :param rows: number of good rows.
        :raises TooManyBadRows: compared with them, too many rows were bad.
        """


class Quarantine(BadRowPolicy):
    """Puts bad rows aside, up to a limit.

    :param path: the Parquet file to write; it is only made if a row is bad.
    :param file: URI of the source file.
    """

    def __init__(
        self,
        path: Path,
        file: str,
        limit: BadRowAllowance,
        missing_column: MissingColumn = "null",
        provenance: str = "",
    ) -> None:
        super().__init__(missing_column, provenance)
        self._path, self._file, self._limit = path, file, limit
        self._writer: pq.ParquetWriter | None = None
        self._first: BadRow | None = None
        self._last = 0  # number of the last bad row

    @property
    def room(self) -> int:
        """Return the number that `BadRowPolicy.room` describes."""
        return _NO_LIMIT if self._limit.rows is None else self._limit.rows - self.bad_rows + 1

    def bad(self, rows: Sequence[BadRow]) -> None:
        """Write the bad rows to the Parquet file; see `BadRowPolicy.bad`.

        :raises TooManyBadRows: there are more than the limit allows.
        """
        self._first = self._first or rows[0]
        self.bad_rows += len(rows)
        if self._limit.rows is not None and self.bad_rows > self._limit.rows:
            raise self._too_many(f"more than {self._limit.rows} rows are bad")
        percent, read = self._limit.percent, rows[-1].row
        self._last = read
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
        """Close the Parquet file and apply a percentage; see `BadRowPolicy.finish`."""
        if self._writer is None:
            return
        self._writer.close()
        percent = self._limit.percent
        # A filter drops rows of the file, which count as its rows all the same.
        read = max(self.bad_rows + rows, self.rows or 0, self._last)
        if percent is not None and self.bad_rows * 100 > percent * read:
            raise self._too_many(f"{self.bad_rows:,} of {read:,} rows are bad")

    def _too_many(self, what: str) -> TooManyBadRows:
        assert self._first is not None
        return TooManyBadRows(
            f"{what}, maxBadRows is {self._limit}",
            why=f"the first is {self._first.verdict().what}",
            hint="correct the file, or raise maxBadRows",
        )


class EmptyColumns:
    """Finds the columns that are null in all rows of one file.

    :param columns: names of the table's columns.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self._without = list(columns)
        self._rows = 0

    def watched(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield the same tables; check each column until it has a value."""
        for table in tables:
            self._rows += table.num_rows
            self._without = [
                name for name in self._without if table.column(name).null_count == table.num_rows
            ]
            yield table

    def missing(self, lacking: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns without a value, after all rows have passed. Without rows, return `lacking`.

        :param lacking: columns that the file does not have; may name more than the table's.
        """
        without = [name for name in self._without if name not in lacking] if self._rows else []
        return (*lacking, *without)


def cut(tables: Iterator[pa.Table], max_rows: int, desired_bytes: int | None) -> Iterator[pa.Table]:
    """Yield tables of as many rows as a segment may have; the last table may have fewer.

    :param desired_bytes: size of a segment, measured as its rows take memory. Rows that arrive in one table
        count as equally large. So only the file and its reader decide where it is cut: a task that runs twice
        cuts in the same places.
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
            table = table.slice(part.num_rows)
            pending.append(part)
            del part
            yield _joined(pending)
            rows = size = 0
    if pending:
        yield _joined(pending)


def _joined(pending: list[pa.Table]) -> pa.Table:
    """Empty the list; return its tables as one. Who takes that one may release its memory."""
    table = pa.concat_tables(pending)
    pending.clear()
    return table
