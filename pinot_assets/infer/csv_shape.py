"""How a CSV file is written: delimiter, header, the word for null. Guessed from its first rows."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pinot_assets.build.rejected import Unreadable
from pinot_assets.infer.kinds import Kind, of_cell

DELIMITERS: Final = ",\t;|"
_LOOKED_AT: Final = 200
_NULL_WORDS: Final = ("NULL", "null", "\\N", "NA", "N/A", "NaN", "None", "-")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class CsvShape:
    """How to take the file apart.

    :ivar names: of the columns, usable in SQL without quotes.
    :ivar has_header: the first row holds names.
    :ivar renamed: names of the header that were not usable, with what they are called instead.
    :ivar null: the word that stands for no value, besides an empty cell; empty if there is none.
    """

    delimiter: str
    names: tuple[str, ...]
    has_header: bool
    renamed: tuple[tuple[str, str], ...] = ()
    null: str = ""

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
    """How a file is written.

    :param text: its beginning, in whole lines.
    :raises Unreadable: there is no row.
    """
    delimiter = max(DELIMITERS, key=lambda d: (_agreement(text, d), -DELIMITERS.index(d)))
    rows = list(islice(rows_of(text, delimiter), _LOOKED_AT))
    if not rows:
        raise Unreadable("the file has no rows")
    has_header = _is_header(rows)
    header = [cell.strip() for cell in rows[0]] if has_header else [f"c{n + 1}" for n in range(len(rows[0]))]
    names = usable_names(header)
    renamed = tuple((old, new) for old, new in zip(header, names, strict=True) if old != new)
    return CsvShape(delimiter, names, has_header, renamed, _null_word(rows[has_header:]))


def rows_of(text: str, delimiter: str) -> Iterator[list[str]]:
    """The rows of a text that are not blank.

    :raises csv.Error: while iterating, where it cannot be taken apart.
    """
    return filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


def usable_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names that queries need no quotes for, each once."""
    found: list[str] = []
    for number, name in enumerate(names, 1):
        usable = name if _PLAIN_NAME.fullmatch(name) else _made_usable(name, number)
        while usable in found:
            usable = f"{usable}_{number}"
        found.append(usable)
    return tuple(found)


def _made_usable(name: str, number: int) -> str:
    words = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    return words if _PLAIN_NAME.fullmatch(words) else f"c{number}_{words}".rstrip("_")


def _agreement(text: str, delimiter: str) -> int:
    """How many columns all rows have; 1 where they differ."""
    try:
        widths = {len(row) for row in islice(rows_of(text, delimiter), _LOOKED_AT)}
    except csv.Error:
        return 0
    return widths.pop() if len(widths) == 1 else 1


def _is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names: texts, each once, none of them a value like those below it."""
    first = [cell.strip() for cell in rows[0]]
    if not all(first) or len(set(first)) < len(first):
        return False
    if any(of_cell(cell) is not Kind.STRING or re.match(r"[0-9]{4}-", cell) for cell in first):
        return False
    below = [[row[n] for row in rows[1:] if n < len(row)] for n in range(len(first))]
    # With texts alone below, a word that is there again is a value.
    return not any(cell in column for cell, column in zip(first, below, strict=True))


def _null_word(rows: Sequence[Sequence[str]]) -> str:
    """A word for null: it is the only text of a column of anything but texts."""
    found: Counter[str] = Counter()
    for column in zip(*(row for row in rows if len(row) == len(rows[0])), strict=True):
        texts = {cell for cell in column if cell and of_cell(cell) is Kind.STRING}
        if len(texts) == 1 and texts <= set(_NULL_WORDS) and len({*column} - texts - {""}) > 0:
            found.update(cell for cell in column if cell in texts)
    return found.most_common(1)[0][0] if found else ""
