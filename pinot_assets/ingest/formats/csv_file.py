"""Read CSV through Arrow, a block at a time.

Arrow parses all cells as text; then each column is cast. That costs no more than Arrow's own conversion
while it parses, and shows for every single value whether it fits.

An empty cell is null, in text columns too and quoted or not, as in Pinot's `CSVRecordExtractor`. Nothing else
is null: Arrow's own list (`NA`, `null`, `nan`, …) is off. Blanks around column names are ignored.
Rows are counted from the file's first, header included, without blank lines and comments.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.types as pt

from pinot_assets.core.file_errors import BadRow, Unreadable, one_line, shown
from pinot_assets.ingest.cast.conform import conform
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.contract.csv_settings import CsvSettings, twice
from pinot_assets.ingest.formats.content import BLOCK_BYTES, Readable
from pinot_assets.ingest.formats.csv_text import ForeignBytes, Quotes, without_comment_lines
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits

_FIRST_BYTES: Final = 1 << 12
"""Bytes that are looked at first: nearly every header is shorter, and a small file is often longer."""
_HEADER_BYTES: Final = 1 << 20
_END: Final = "\x1a pinot-assets: end of file \x1a"
_BEHIND: Final = "\x1a pinot-assets: text behind a quote \x1a"


def read_csv(
    blocks: Iterator[bytes],
    target: TargetSchema,
    settings: CsvSettings,
    verdicts: BadRowPolicy,
    limits: FileLimits = DEFAULTS,
) -> Iterator[pa.Table]:
    """Yield the rows as the columns of `target`, in several tables.

    :param blocks: the file, see `text_blocks`.
    :raises FileRejected: names column and row.
    """
    if settings.comment is not None:
        blocks = without_comment_lines(blocks, settings)
    if (start := next(blocks, None)) is None:
        return
    names, rows, offset = _header(start, settings)
    limits.check_columns(len(names))
    _check_names(names, target)
    if settings.header is None and (bad := Quotes(settings).first_bad(start[:offset])) is not None:
        raise Unreadable(
            f"row 1: the header has text after a closing quote: {shown(bad.decode(errors='replace'))}",
            hint="check quoteCharacter and escapeCharacter",
        )
    verdicts.lacks(target.missing(names))
    body = chain([start[offset:]], blocks)
    if (first := next((block for block in body if block.strip()), None)) is not None:
        yield from _Rows(names, target, settings, verdicts, 1 + rows).read(chain([first], body))


class _Rows:
    """Reads the rows below the header.

    It appends a row with a mark in its last cell; if the mark is read back, no quote was left open. Arrow
    takes an open quote (a file cut in the middle, a stray quote) for a long cell that ends with the file, and
    would silently lose the rows in it.
    """

    def __init__(
        self,
        names: list[str],
        target: TargetSchema,
        settings: CsvSettings,
        verdicts: BadRowPolicy,
        first: int,
    ) -> None:
        # No column of a table begins with #, so the file's other columns get names that cannot clash.
        self._known = frozenset(target.schema.names)
        self._lists = frozenset(field.name for field in target.schema if pt.is_list(field.type))
        self._names = [name if name in self._known else f"#{n}" for n, name in enumerate(names)]
        self._target, self._settings, self._verdicts = target, settings, verdicts
        self._foreign = ForeignBytes()
        self._next = first  # number of the next row
        self._first = first
        self._torn: list[BadRow] = []  # rows with too few or too many cells, or text after a closing quote
        self._behind: dict[str, bytes] = {}  # rows with such text, by the text that replaced them
        self._behind_count = 0
        self._met = 0  # rows that Arrow parsed, torn ones and the mark included

    def read(self, body: Iterator[bytes]) -> Iterator[pa.Table]:
        """Yield the rows, in the table's types."""
        last = self._names[-1]
        held: pa.Table | None = None
        for table in self._tables(body):
            if held is not None:
                yield self._conform(held)
            held = table
        if held is None or held.num_rows == 0 or held.column(last)[-1].as_py() != _END:
            count = self._next + (0 if held is None else held.num_rows)
            raise _open_quote(max([count - 1, *(torn.row for torn in self._torn)]))
        yield self._conform(held.slice(0, held.num_rows - 1))
        if self._torn:
            self._verdicts.bad(self._torn)
        self._verdicts.rows = self._met - 1

    def _tables(self, body: Iterator[bytes]) -> Iterator[pa.Table]:
        names, settings = self._names, self._settings
        text = pa.string()
        known = [name for name in names if name in self._known]
        mark = settings.delimiter.join(
            [settings.quote * 2] * (len(names) - 1) + [f"{settings.quote}{_END}{settings.quote}"]
        )
        body = self._foreign.hidden(Quotes(settings, BLOCK_BYTES).checked(body, self._set_aside))
        try:
            with pacsv.open_csv(
                pa.PythonFile(Readable(chain(body, [f"\n{mark}\n".encode()])), mode="r"),
                read_options=pacsv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, column_names=names),
                parse_options=pacsv.ParseOptions(
                    delimiter=settings.delimiter,
                    quote_char=settings.quote,
                    escape_char=settings.escape or False,
                    newlines_in_values=True,
                    invalid_row_handler=self._on_torn,
                ),
                convert_options=pacsv.ConvertOptions(
                    include_columns=[*dict.fromkeys([*known, names[-1]])],
                    column_types=dict.fromkeys({*known, names[-1]}, text),
                    check_utf8=False,  # `conform` checks it and names the row
                    null_values=list(settings.nulls),
                    strings_can_be_null=True,
                ),
            ) as reader:
                for batch in reader:
                    self._met += batch.num_rows
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, ValueError) as error:
            self._refuse(error)

    def _set_aside(self, row: bytes) -> bytes:
        """Return Arrow's replacement for a row with text after a closing quote: too many cells."""
        self._behind_count += 1
        instead = f"{_BEHIND}{self._behind_count}{self._settings.delimiter * len(self._names)}"
        self._behind[instead] = row
        return instead.encode()

    def _on_torn(self, row: pacsv.InvalidRow) -> str:
        """Note a row with the wrong number of cells; Arrow calls this."""
        self._torn.append(self._torn_row(row))
        self._met += 1
        return "error" if _END in row.text or len(self._torn) >= self._verdicts.room else "skip"

    def _torn_row(self, row: pacsv.InvalidRow) -> BadRow:
        number = row.number + self._first - 1
        # A file may contain that mark, too, so look only for replacements that were really made.
        if (aside := self._behind.pop(row.text.rstrip("\r\n"), None)) is not None:
            text = aside.decode(errors="surrogateescape")
            why = f"has text after a closing quote: {shown(text)}"
            hint = "double the quotes inside a cell; or check quoteCharacter and escapeCharacter"
            return BadRow(number, "", "", why, Unreadable, text, hint)
        cells = "1 cell" if row.actual_columns == 1 else f"{row.actual_columns} cells"
        text = self._foreign.shown(row.text)
        why = f"has {cells}, not {row.expected_columns}: {shown(text)}"
        return BadRow(number, "", "", why, Unreadable, text)

    def _refuse(self, error: Exception) -> None:
        if self._torn and _END in self._torn[-1].record:
            raise _open_quote(self._torn[-1].row) from error
        if self._torn:
            self._verdicts.bad(self._torn)
        if "straddling" in str(error):
            raise Unreadable(
                f"a row after row {self._next - 1} is longer than {BLOCK_BYTES >> 20} MB",
                why="or a quote is opened and never closed",
                hint="check quoteCharacter and escapeCharacter",
            ) from error
        raise Unreadable("it is not a CSV file that can be read", why=one_line(error)) from error

    def _conform(self, table: pa.Table) -> pa.Table:
        numbers = self._numbers(table.num_rows)
        end = self._next if len(numbers) == 0 else int(numbers[-1]) + 1
        torn = [bad for bad in self._torn if bad.row < end]
        self._torn = self._torn[len(torn) :]
        self._next = end
        if torn:
            self._verdicts.bad(torn)
        columns = {
            name: self._foreign.restored(column)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        if (delimiter := self._settings.multi_value) is not None:
            for name in self._lists.intersection(columns):
                columns[name] = split_cells(columns[name], delimiter)
        return conform(pa.table(columns), self._target, numbers, self._verdicts)

    def _numbers(self, count: int) -> Sequence[int]:
        torn = [bad.row for bad in self._torn]
        if not torn:
            return range(self._next, self._next + count)
        numbers = np.arange(self._next, self._next + count + len(torn))
        return list(numbers[~np.isin(numbers, torn)][:count].tolist())


def split_cells(column: pa.ChunkedArray, delimiter: str) -> pa.ChunkedArray:
    """Split texts into lists of text.

    As `StringUtils.split`: delimiters side by side count as one, and no value is empty. Bytes that are not
    UTF-8 do not change; `conform` reports their row.
    """
    instead = delimiter.replace("\\", r"\\")
    texts = pc.replace_substring_regex(column, f"({re.escape(delimiter)})+", instead)
    texts = pc.ascii_trim(texts, characters=delimiter)
    return pc.split_pattern(pc.if_else(pc.equal(texts, ""), None, texts), delimiter)


def _open_quote(row: int) -> Unreadable:
    return Unreadable(
        f"row {row}: a quote is opened and never closed",
        hint="the file is incomplete, or it was written with another quoteCharacter or escapeCharacter",
    )


def _header(start: bytes, settings: CsvSettings) -> tuple[list[str], int, int]:
    """Return the names of the file's columns; then how many rows and bytes precede the data."""
    if settings.header is not None and not settings.skip_header:
        return [name.strip() for name in settings.header], 0, 0
    for most in (_FIRST_BYTES, _HEADER_BYTES):
        lines = start[:most].splitlines(keepends=True)
        text = "".join(line.decode(errors="replace") for line in lines)
        try:
            first, count = settings.first_row(text)
        except csv.Error as error:
            if most == _FIRST_BYTES < len(start):
                continue  # it may begin behind these bytes
            raise Unreadable("the file has no header that can be read", why=one_line(error)) from error
        if count < len(lines):  # else it may end behind these bytes
            break
    offset = sum(len(line) for line in lines[:count])
    return [name.strip() for name in settings.header or first], 1, offset


def _check_names(names: list[str], target: TargetSchema) -> None:
    known = frozenset(target.schema.names)
    if again := twice(name for name in names if name in known):
        raise Unreadable(f"the header names {', '.join(again)} twice")
    if not target.present(names):
        raise Unreadable(
            "the file has none of the table's columns",
            why=f"its columns are {', '.join(names)[:200]}",
            hint="check delimiter and header",
        )
