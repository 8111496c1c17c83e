"""CSV through Arrow, with the settings of Pinot's `CSVRecordReaderConfig`.

An empty cell is null, in text columns too and quoted or not, as in Pinot's `CSVRecordExtractor`. Nothing else
is: Arrow's own list (`NA`, `null`, `nan`, …) is off. Blanks around the names of columns do not count.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.types as pt

from pinot_assets.build.conform import conform
from pinot_assets.build.content import is_blank
from pinot_assets.build.rejected import ReaderSettings, TypeMismatch, Unreadable, one_line

_FORMATS: Final = {"DEFAULT": ",", "EXCEL": ",", "RFC4180": ",", "TDF": "\t"}
_KEYS: Final = (
    "delimiter",
    "escapeCharacter",
    "fileFormat",
    "header",
    "nullStringValue",
    "quoteCharacter",
    "skipHeader",
)
_FIXED: Final = {
    "ignoreEmptyLines": "true",
    "ignoreSurroundingSpaces": "false",
    "skipUnParseableLines": "false",
}
WITHOUT_USE: Final = ("multiValueDelimiter", "multiValueDelimiterEnabled")
"""Settings of Pinot's reader that change nothing for single-value columns."""
_HEADER_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 64 << 20  # a row must fit into one block
_CONVERSION = re.compile(r"In CSV column #(\d+): Row #(\d+): .*?(invalid .*)", re.DOTALL)
_BAD_ROW = re.compile(r"CSV parse error: Row #(\d+): (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CsvSettings:
    """How to take a CSV file apart.

    :ivar header: the columns' names, None if the file's first row holds them.
    :ivar skip_header: whether the first row is to be left out although `header` is given.
    :ivar nulls: cells that are null.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str | None = None
    header: tuple[str, ...] | None = None
    skip_header: bool = False
    nulls: tuple[str, ...] = ("",)

    @classmethod
    def from_reader(cls, reader: Mapping[str, str]) -> Self:
        """Read `recordReader.prop.*`, in Pinot's spelling.

        :raises ReaderSettings: a setting is unknown, not supported or contradicts another.
        """
        known = (*_KEYS, *WITHOUT_USE)
        unknown = sorted(k for k in reader if k not in known and reader[k].lower() != _FIXED.get(k))
        if unknown:
            raise ReaderSettings(
                f"csv reader settings {', '.join(unknown)} are not supported",
                hint=f"known: {', '.join(_KEYS)}",
            )
        name = reader.get("fileFormat", "DEFAULT").upper()
        if name not in _FORMATS:
            raise ReaderSettings(f"fileFormat {name} is not supported", hint=f"one of {', '.join(_FORMATS)}")
        delimiter = _character(reader, "delimiter") or _FORMATS[name]
        header = reader.get("header")
        skip_header = reader.get("skipHeader", "false").lower() == "true"
        if skip_header and header is None:
            raise ReaderSettings(
                "skipHeader without header leaves no names for the columns", hint="set header too"
            )
        null = reader.get("nullStringValue")
        return cls(
            delimiter=delimiter,
            quote=_character(reader, "quoteCharacter") or '"',
            escape=_character(reader, "escapeCharacter"),
            header=None if header is None else tuple(next(csv.reader([header], delimiter=delimiter), ())),
            skip_header=skip_header,
            nulls=("",) if null is None else ("", null),
        )


def read_csv(data: pa.Buffer, schema: pa.Schema, settings: CsvSettings) -> pa.Table:
    """Rows as the columns of `schema`.

    :param data: the whole file, not blank.
    :raises FileRejected: names column and row; rows are counted from the file's first, blank ones left out.
    """
    names, rows, offset = _header(data, settings)
    _check_names(names, schema)
    body = data.slice(offset)
    if is_blank(body):
        return schema.empty_table()
    # No column of a table begins with #, so the others do not get into the way.
    names = [name if name in schema.names else f"#{n}" for n, name in enumerate(names)]
    end = _end_marker(body, len(names), settings)
    body = body if end is None else pa.py_buffer(body.to_pybytes() + end)
    known = [field for field in schema if field.name in names]
    try:
        table = pacsv.read_csv(
            pa.BufferReader(body),
            read_options=pacsv.ReadOptions(
                use_threads=False, block_size=min(body.size + 1, _BLOCK_BYTES), column_names=names
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=settings.delimiter,
                quote_char=settings.quote,
                escape_char=settings.escape or False,
                newlines_in_values=True,
            ),
            convert_options=pacsv.ConvertOptions(
                include_columns=[*dict.fromkeys([*(field.name for field in known), names[-1]])],
                # Arrow would take a timestamp without a zone, so these come as text.
                column_types={names[-1]: pa.string()}
                | {f.name: pa.string() if pt.is_timestamp(f.type) else f.type for f in known},
                null_values=list(settings.nulls),
                strings_can_be_null=True,
                true_values=["true", "True", "TRUE", "1"],
                false_values=["false", "False", "FALSE", "0"],
            ),
        )
    except (pa.ArrowException, ValueError) as error:
        raise _refusal(error, names, rows) from error
    if end is not None:
        table = _without_end(table, names[-1], rows)
    return conform(table, schema, first_row=1 + rows)


def _end_marker(body: pa.Buffer, columns: int, settings: CsvSettings) -> bytes | None:
    """A last row of empty cells; a quote that is never closed swallows it.

    Arrow takes such a quote (a file cut in the middle, a stray quote) for a long cell that ends with the
    file, and the rows in it would be lost without a word. None where no quote is.
    """
    quote = settings.quote.encode()
    if quote not in body.to_pybytes():
        return None
    return b"\n" + settings.delimiter.encode().join([quote * 2] * columns) + b"\n"


def _without_end(table: pa.Table, last: str, rows: int) -> pa.Table:
    if table.column(last)[-1].is_valid:
        raise Unreadable(f"row {table.num_rows + rows}: a quote is opened and never closed")
    return table.slice(0, table.num_rows - 1)


def _header(data: pa.Buffer, settings: CsvSettings) -> tuple[list[str], int, int]:
    """The names of the file's columns; rows and bytes to leave out before the data."""
    if settings.header is not None and not settings.skip_header:
        return [name.strip() for name in settings.header], 0, 0
    start = data.slice(0, min(_HEADER_BYTES, data.size)).to_pybytes()
    lines = start.splitlines(keepends=True)
    text = [line.decode(errors="replace") for line in lines]
    reader = csv.reader(
        io.StringIO("".join(text), newline=""), delimiter=settings.delimiter, quotechar=settings.quote
    )
    try:
        first = next(row for row in reader if row)
    except (StopIteration, csv.Error) as error:
        raise Unreadable("the file has no header that could be read", why=one_line(error)) from error
    offset = sum(len(line) for line in lines[: reader.line_num])
    return [name.strip() for name in settings.header or first], 1, offset


def _check_names(names: list[str], schema: pa.Schema) -> None:
    twice = sorted({name for name in names if names.count(name) > 1} & set(schema.names))
    if twice:
        raise Unreadable(f"the header names {', '.join(twice)} twice")
    if not set(names) & set(schema.names):
        raise Unreadable(
            "the file has none of the table's columns",
            why=f"its columns are {', '.join(names)[:200]}",
            hint="check delimiter and header",
        )


def _refusal(error: Exception, names: list[str], rows: int) -> Unreadable | TypeMismatch:
    text = str(error)
    if found := _CONVERSION.search(text):
        column, row, reason = names[int(found[1])], int(found[2]) + rows, " ".join(found[3].split())[:100]
        what = f"column {column}, row {row}: {reason}"
        return Unreadable(what) if "UTF8" in reason else TypeMismatch(what)
    if found := _BAD_ROW.search(text):
        return Unreadable(f"row {int(found[1]) + rows}: {' '.join(found[2].split())[:100]}")
    return Unreadable("not a CSV file that can be read", why=one_line(error))


def _character(reader: Mapping[str, str], key: str) -> str | None:
    text = reader.get(key)
    if text is None:
        return None
    character = {r"\t": "\t"}.get(text, text)  # as people write a tab in JSON and YAML
    if len(character) != 1 or not character.isascii():
        raise ReaderSettings(f"{key} {text!r} is not a single ASCII character")
    return character
