"""Guess from its first rows how a CSV file is written: delimiter, header, the word for null.

Columns whose own names a table cannot have, or only in quotes, get other names.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pinot_assets.authoring.infer.column import ValueKind, of_cell
from pinot_assets.core.file_errors import Unreadable
from pinot_assets.table_spec.blocks.pinot_json import has_blank

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def usable_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of letters, digits and `_`, each once; a reserved word (`order`) still needs quotes."""
    taken: list[str] = []
    for number, name in enumerate(names, 1):
        usable = name if _PLAIN_NAME.fullmatch(name) else _made_usable(name, number)
        while usable in taken:
            usable = f"{usable}_{number}"
        taken.append(usable)
    return tuple(taken)


def pinot_names(names: Iterable[str]) -> dict[str, str]:
    """Return names that Pinot accepts for columns that have names: another name only where it is needed.

    :param names: each once.
    :returns: the name in the table by the name in the files.
    """
    whole = list(names)
    taken = {name for name in whole if not has_blank(name)}
    called: dict[str, str] = {}
    for number, name in enumerate(whole, 1):
        usable = name
        if has_blank(name):
            usable = _made_usable(name, number)
            while usable in taken:
                usable = f"{usable}_{number}"
            taken.add(usable)
        called[name] = usable
    return called


def _made_usable(name: str, number: int) -> str:
    words = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    return words if _PLAIN_NAME.fullmatch(words) else f"c{number}_{words}".rstrip("_")


DELIMITERS: Final = ",\t;|"
_LOOKED_AT: Final = 200
_NULL_WORDS: Final = ("NULL", "null", "\\N", "NA", "N/A", "NaN", "None", "-")
_YEAR: Final = re.compile(r"(19|20)[0-9]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CsvShape:
    """How a CSV file is written.

    :ivar names: of the columns, each once, of letters, digits and `_`.
    :ivar has_header: whether the first row holds names.
    :ivar renamed: names of the header that were not usable, with the new names.
    :ivar null: the word that means no value, besides an empty cell; empty if there is none.
    :ivar doubt: about the first row, for people; empty if the types show what the row is.
    """

    delimiter: str
    names: tuple[str, ...]
    has_header: bool
    renamed: tuple[tuple[str, str], ...] = ()
    null: str = ""
    doubt: str = ""

    @property
    def reader(self) -> dict[str, str]:
        """The settings of the csv reader that differ from its defaults."""
        settings = {}
        if self.delimiter != ",":
            settings["delimiter"] = self.delimiter
        if not self.has_header or self.renamed:
            settings["header"] = self.delimiter.join(self.names)
        if self.has_header and self.renamed:
            settings["skipHeader"] = "true"
        if self.null:
            settings["nullStringValue"] = self.null
        return settings


def shape_of(text: str) -> CsvShape:
    """Guess how a file is written.

    :param text: its beginning, in whole lines.
    :raises Unreadable: the file has no row.
    """
    delimiter = max(DELIMITERS, key=lambda d: _agreement(text, d))
    rows = list(islice(rows_of(text, delimiter), _LOOKED_AT))
    if not rows:
        raise Unreadable("the file has no rows")
    first = [cell.strip() for cell in rows[0]]
    has_header, doubt = _header(first, rows[1:])
    header = first if has_header else [f"c{n + 1}" for n in range(len(first))]
    names = usable_names(header)
    renamed = tuple((old, new) for old, new in zip(header, names, strict=True) if old != new)
    return CsvShape(delimiter, names, has_header, renamed, _null_word(rows[has_header:]), doubt)


def rows_of(text: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the rows of a text that are not blank.

    :raises csv.Error: while iterating, if the text cannot be parsed.
    """
    return filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


def _agreement(text: str, delimiter: str) -> float:
    """Score how well rows agree on a number of columns, times that number less one; 0 for one column.

    A row that differs lowers the score a little, the first row much: it is the header, if there is one.
    """
    try:
        widths = [len(row) for row in islice(rows_of(text, delimiter), _LOOKED_AT)]
    except csv.Error:
        return 0.0
    if not widths:
        return 0.0
    width, count = max(Counter(widths).items(), key=lambda item: (item[1], item[0]))
    of_first = 1.0 if widths[0] == width else 0.1
    return (width - 1) * (count / len(widths)) ** 4 * of_first


def _header(first: Sequence[str], below: Sequence[Sequence[str]]) -> tuple[bool, str]:
    """Return whether the first row holds names, and a doubt about it for people.

    Types decide: a text above numbers is a name, a number above numbers a value. If all cells are texts,
    words that occur once in the row and never below it are taken for names.
    """
    columns = [[row[n].strip() for row in below if n < len(row)] for n in range(len(first))]
    names = sum(_is_name(cell, column) for cell, column in zip(first, columns, strict=True))
    values = sum(not _is_word(cell) for cell in first)
    if _are_years(first, columns):
        names, values = names + values, 0
    if names > values:
        return True, ""
    if values or not _may_be_names(first, columns):
        return False, "no header found: the first row has values, so the columns are numbered"
    return True, "taken as the header, although all rows below are texts, too" if below else ""


def _is_name(cell: str, column: Sequence[str]) -> bool:
    """Whether a text, or nothing, is above values that are no texts."""
    there = [text for text in column if text and text not in _NULL_WORDS]
    return bool(there) and _is_word(cell) and cell not in _NULL_WORDS and not any(map(_is_word, there))


def _is_word(cell: str) -> bool:
    """Whether the cell is empty, or a text that is no date."""
    return not cell or (of_cell(cell) is ValueKind.STRING and not re.match(r"[0-9]{4}-", cell))


def _are_years(first: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether the numbers are years, each once, above values that are not all years: `country,2019,2020`."""
    years = [(cell, column) for cell, column in zip(first, columns, strict=True) if not _is_word(cell)]
    return len({cell for cell, _ in years}) == len(years) and all(
        _YEAR.fullmatch(cell) and column and not all(map(_YEAR.fullmatch, column)) for cell, column in years
    )


def _may_be_names(first: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether the words occur once. The first and the last name may be empty: some programs do that."""
    words = [cell for cell in first if cell]
    if not words or not all(first[1:-1]) or len(set(words)) < len(words):
        return False
    return not any(cell in column for cell, column in zip(first, columns, strict=True) if cell)


def _null_word(rows: Sequence[Sequence[str]]) -> str:
    """Return the word for null: the only text in a column whose other values are no texts."""
    words: Counter[str] = Counter()
    for column in zip(*(row for row in rows if len(row) == len(rows[0])), strict=True):
        texts = {cell for cell in column if cell and of_cell(cell) is ValueKind.STRING}
        if len(texts) == 1 and texts <= set(_NULL_WORDS) and len({*column} - texts - {""}) > 0:
            words.update(cell for cell in column if cell in texts)
    return words.most_common(1)[0][0] if words else ""
