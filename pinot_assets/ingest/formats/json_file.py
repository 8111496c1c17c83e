"""Read JSON documents, one after the other or in one array: with Arrow, or with Python's parser.

Arrow is about ten times faster, but it knows one kind of value per column, does not keep an object's text,
and does not say in which row a value failed. So its refusal is never final: Python's parser then reads the
block document by document. That accepts what Pinot accepts without loss, and names row and column of other
values. Rows are counted from 1, without blank lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson
import pyarrow.types as pt

from pinot_assets.core.file_errors import BadRow, FileRejected, TypeMismatch, Unreadable, shown
from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.ingest.cast.conform import conform
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats.binary_formats import check_values
from pinot_assets.ingest.formats.json_documents import (
    BLANKS,
    document_blocks,
    enough_for,
    is_document,
    key_pattern,
    members_of,
)
from pinot_assets.ingest.formats.json_values import NOT_UTF_8, Real, arrow_type, converter, parse_json
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits

_LOOK_AHEAD: Final = 1 << 16


def read_documents(
    blocks: Iterator[bytes], target: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits = DEFAULTS
) -> Iterator[pa.Table]:
    """Yield the documents as the columns of `target`; missing members are null, unknown ones are dropped.

    :param blocks: the file, see `text_blocks`.
    :raises FileRejected: names column and row.
    """
    reader = _JsonReader(target, verdicts, limits)
    held, enough = b"", 1
    for block in document_blocks(blocks):
        if len(held) >= enough:
            yield reader.read(held)
            held, enough = reader.rest, max(1, enough_for(reader.rest))
        held = held + block if held else block
    if held:
        yield reader.read(held, is_last=True)
    reader.finish()


class _NotForArrow(Exception):
    pass


class _JsonReader:
    """Reads one file, block by block.

    :ivar rest: the start of a document that ends in a later block.
    """

    def __init__(self, target: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits = DEFAULTS) -> None:
        self.rest = b""
        self._target, self._verdicts, self._limits = target, verdicts, limits
        self._plan = [(f, converter(f, target)) for f in target.schema]
        self._row, self._line = 1, 1
        self._by_line: bool | None = None  # whether every document has its own line
        self._unseen = {name: key_pattern(name) for name in target.schema.names}  # in no document so far
        self._known: bool | None = None  # whether a document has a wanted member; None before the first one
        self._names = ""

    def read(self, block: bytes, *, is_last: bool = False) -> pa.Table:
        """Return the rows of one block; put a document that does not end in it into `rest`."""
        self.rest = b""
        if self._by_line is None:
            self._by_line = is_document(block.lstrip().partition(b"\n")[0])
        try:
            table = self._by_arrow(block)
            self._row += table.num_rows
            for members in members_of(block.decode(errors="surrogateescape")) if not self._known else ():
                self._note(members)
                if self._known:
                    break
            self._look(table, block)
        except MemoryError:
            raise  # Arrow's is also an ArrowException, but Python's parser would need even more memory
        except (pa.ArrowException, ValueError, OverflowError, RecursionError, _NotForArrow, FileRejected):
            table = self._by_python(block, is_last)
        self._line += block.count(b"\n") - self.rest.count(b"\n")
        check_values(table, self._limits)
        return table

    def finish(self) -> None:
        """Check what only the whole file shows.

        :raises FileRejected: the file has none of the columns, or lacks one that must not be missing.
        """
        self._verdicts.rows = self._row - 1
        if self._row == 1:
            return
        if self._known is False:
            raise Unreadable(
                "the file has none of the table's columns", why=f"its first row has {self._names or 'none'}"
            )
        self._verdicts.lacks(tuple(self._unseen))

    def _look(self, table: pa.Table, block: bytes) -> None:
        """Note the columns of a block that Arrow read; a column may be present and null in all documents."""
        self._appeared([name for name in self._unseen if table.column(name).null_count < table.num_rows])
        if any(key.search(block) for key in self._unseen.values()):
            for members in members_of(block.decode(errors="surrogateescape")):
                self._appeared(members)
                if not self._unseen:
                    break

    def _appeared(self, names: Iterable[str]) -> None:
        for name in names:
            self._unseen.pop(name, None)

    def _note(self, members: JsonObject) -> None:
        self._names = self._names or ", ".join(members)[:200]
        self._known = bool(self._known) or not members.keys().isdisjoint(self._target.schema.names)

    # --- by Arrow ------------------------------------------------------------------------------------

    def _by_arrow(self, block: bytes) -> pa.Table:
        # Most documents are short, so for the first one do not decode the whole block.
        if (first := next(members_of(block[:_LOOK_AHEAD].decode(errors="surrogateescape")), None)) is None:
            raise _NotForArrow
        self._limits.check_columns(len(first))
        # Arrow does not keep the text of an object, so Python reads only these columns, document by document.
        own = [
            f
            for f in self._target.schema
            if f.name in self._target.json and not isinstance(first.get(f.name), str | None)
        ]
        guess = [(f.name, _guessed(f, first.get(f.name))) for f in self._target.schema if f not in own]
        table = pajson.read_json(
            pa.BufferReader(block),
            read_options=pajson.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=pajson.ParseOptions(
                explicit_schema=pa.schema(guess),
                newlines_in_values=not self._by_line,
                unexpected_field_behavior="ignore",
            ),
        )
        if any(_holds_constants(column) for column in table.columns):
            raise _NotForArrow
        for name, values in self._texts(block, own).items():
            table = table.append_column(name, [values])
        return conform(table, self._target, range(table.num_rows), BadRowPolicy())

    def _texts(self, block: bytes, fields: list[pa.Field]) -> dict[str, pa.Array]:
        """Return the JSON columns of a block whose other columns Arrow read."""
        if not fields:
            return {}
        plan = [(field.name, converter(field, self._target)) for field in fields]
        texts: dict[str, list[JsonValue]] = {name: [] for name, _ in plan}
        for members in members_of(block.decode(errors="surrogateescape")):
            for name, convert in plan:
                value = members.get(name)
                texts[name].append(None if value is None else convert(value))
        return {name: pa.array(values, pa.string()) for name, values in texts.items()}

    # --- by Python -----------------------------------------------------------------------------------

    def _by_python(self, block: bytes, is_last: bool) -> pa.Table:
        bad: list[BadRow] = []
        rows: list[int] = []
        cells: list[list[JsonValue]] = [[] for _ in self._plan]
        end = self._row
        for row, members, text in self._documents(block, is_last, bad):
            end = row + 1
            if not self._known:
                self._note(members)
            if self._unseen:
                self._appeared(members)
            if (values := self._cells(row, members, text, bad)) is not None:
                rows.append(row)
                for column, value in zip(cells, values, strict=True):
                    column.append(value)
        self._row = max([end, *(one.row + 1 for one in bad)])
        if bad:
            self._verdicts.bad(bad)
        arrays = {
            f.name: pa.array(column, arrow_type(f)) for (f, _), column in zip(self._plan, cells, strict=True)
        }
        return conform(pa.table(arrays), self._target, rows, self._verdicts)

    def _cells(self, row: int, members: JsonObject, text: str, bad: list[BadRow]) -> list[JsonValue] | None:
        """Return the row's values; None if one is wrong, which is then added to `bad`.

        :param text: the row's document.
        """
        cells = []
        for field, convert in self._plan:
            value = members.get(field.name)
            try:
                cells.append(None if value is None else convert(value))
            except (ValueError, OverflowError, RecursionError):
                self._add(bad, _wrong(row, field, value, self._target.type_name(field), text))
                return None
        return cells

    def _add(self, bad: list[BadRow], bad_row: BadRow) -> None:
        bad.append(bad_row)
        if len(bad) >= self._verdicts.room:
            self._verdicts.bad(bad)

    def _documents(
        self, block: bytes, is_last: bool, bad: list[BadRow]
    ) -> Iterator[tuple[int, JsonObject, str]]:
        """Yield row, members and text of a block's documents. What is no document goes to `bad`, a document
        without its end to `rest`."""
        text = block.decode(errors="surrogateescape")
        position, row, end = 0, self._row, len(text)
        while (position := BLANKS.match(text, position).end()) < end:  # type: ignore[union-attr]
            try:
                value, stop = parse_json(text, position)
            except (ValueError, RecursionError) as error:
                place = getattr(error, "pos", position)
                if not is_last and not text[place:].strip():
                    self.rest = text[position:].encode(errors="surrogateescape")
                    return
                stop = self._skip(text, position, row, error, bad)
            else:
                if isinstance(value, dict):
                    self._limits.check_columns(len(value))
                    yield row, value, text[position:stop]
                else:
                    why = f"{shown(value)} is not a JSON object"
                    hint = "write one object per row"
                    self._add(bad, BadRow(row, "", "", why, Unreadable, text[position:stop], hint))
            row, position = row + 1, stop

    def _skip(self, text: str, position: int, row: int, error: Exception, bad: list[BadRow]) -> int:
        """Return the position after a document that cannot be parsed; add it to `bad`."""
        if isinstance(error, RecursionError):
            why = "values are nested too deeply"
        else:
            place = getattr(error, "pos", position)
            line, column = self._line + text.count("\n", 0, place), place - text.rfind("\n", 0, place)
            # Python's own texts are to be followed by a place; some of them end with "at".
            what = (getattr(error, "msg", None) or str(error)).removesuffix(" at")
            why = f"line {line}: {what} at character {column}"
        stop = text.find("\n", position)
        stop = len(text) if stop < 0 else stop
        bad_row = BadRow(row, "", "", why, Unreadable, text[position:stop])
        if self._by_line:
            self._add(bad, bad_row)
            return stop
        # Where objects span several lines, it cannot be known where the next one begins.
        if bad:
            self._verdicts.bad(bad)
        raise bad_row.verdict()


def _guessed(field: pa.Field, value: object) -> pa.DataType:
    is_list = pt.is_list(field.type)
    item = field.type.value_type if is_list else field.type
    if is_list and isinstance(value, list):
        value = next((one for one in value if one is not None), None)
    elif is_list and value is not None:
        is_list = False  # single values in a multi-value column
    if pt.is_timestamp(item) or pt.is_string(item) or pt.is_binary(item):
        item = pa.int64() if type(value) is int else pa.string()
    return pa.list_(item) if is_list else item


def _holds_constants(column: pa.ChunkedArray) -> bool:
    """Whether numbers may include `NaN` or `Infinity`, which Arrow accepts but JSON does not know."""
    if pt.is_list(column.type):
        column = pc.list_flatten(column)
    return pt.is_floating(column.type) and pc.all(pc.is_finite(column)).as_py() is False


def _wrong(row: int, field: pa.Field, value: object, target: str, text: str) -> BadRow:
    if isinstance(value, str) and NOT_UTF_8.search(value):
        raw = value.encode(errors="surrogateescape")
        return BadRow(row, field.name, shown(raw), "is not UTF-8", Unreadable, text)
    value = value.text if isinstance(value, Real) else shown(value)
    return BadRow(row, field.name, value, f"cannot become {target}", TypeMismatch, text)
