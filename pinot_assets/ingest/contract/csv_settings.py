"""The settings of Pinot's `CSVRecordReaderConfig`, as they are written in a table spec."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from pinot_assets.core.file_errors import ReaderSettings

_FORMATS: Final = {"DEFAULT": ",", "EXCEL": ",", "RFC4180": ",", "TDF": "\t"}
_KEYS: Final = (
    "commentMarker",
    "delimiter",
    "escapeCharacter",
    "fileFormat",
    "header",
    "multiValueDelimiter",
    "multiValueDelimiterEnabled",
    "nullStringValue",
    "quoteCharacter",
    "skipHeader",
)
_FIXED: Final = {
    "ignoreEmptyLines": "true",
    "ignoreSurroundingSpaces": "false",
    "skipUnParseableLines": "false",
    "stopOnError": "true",
}
_INSTEAD: Final = {
    "ignoreSurroundingSpaces": "blanks around a cell are part of a text, and an error in any other type; "
    "remove them with transforms.<column>: trim(<column>)",
    "skipUnParseableLines": "rows that cannot be read are put aside with onBadRow: quarantine",
}


@dataclass(frozen=True, slots=True)
class CsvSettings:
    """How to parse a CSV file.

    :ivar header: the columns' names, None if the file's first row holds them.
    :ivar skip_header: whether to skip the first row although `header` is given.
    :ivar nulls: cell texts that mean null.
    :ivar comment: first character of lines to skip.
    :ivar multi_value: delimiter between the values in a cell of a multi-value column, None: do not split.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str | None = None
    header: tuple[str, ...] | None = None
    skip_header: bool = False
    nulls: tuple[str, ...] = ("",)
    comment: str | None = None
    multi_value: str | None = ";"

    @classmethod
    def from_reader(cls, reader: Mapping[str, str]) -> Self:
        """Read `recordReader.prop.*`, in Pinot's spelling.

        :raises ReaderSettings: a setting is unknown, not supported or contradicts another.
        """
        if unknown := sorted(k for k in reader if k not in _KEYS and reader[k].lower() != _FIXED.get(k)):
            raise ReaderSettings(
                f"csv reader settings {', '.join(unknown)} are not supported",
                hint="; ".join(
                    [*(_INSTEAD[key] for key in unknown if key in _INSTEAD), f"known: {', '.join(_KEYS)}"]
                ),
            )
        name = reader.get("fileFormat", "DEFAULT").upper()
        if name not in _FORMATS:
            raise ReaderSettings(f"fileFormat {name} is not supported", hint=f"one of {', '.join(_FORMATS)}")
        delimiter = _character(reader, "delimiter") or _FORMATS[name]
        header = reader.get("header")
        skip_header = _flag(reader, "skipHeader", "false")
        if skip_header and header is None:
            raise ReaderSettings(
                "skipHeader without header leaves no names for the columns", hint="set header, too"
            )
        null = reader.get("nullStringValue")
        quote, escape = _character(reader, "quoteCharacter") or '"', _character(reader, "escapeCharacter")
        is_split = _flag(reader, "multiValueDelimiterEnabled", "true")
        return cls(
            delimiter=delimiter,
            quote=quote,
            escape=None if escape == quote else escape,  # a quote escapes itself in every CSV
            header=None if header is None else _names(header, delimiter),
            skip_header=skip_header,
            nulls=("",) if null is None else ("", null),
            comment=_character(reader, "commentMarker"),
            multi_value=(_character(reader, "multiValueDelimiter") or ";") if is_split else None,
        )._consistent(reader)

    def first_row(self, text: str) -> tuple[list[str], int]:
        """Return the cells of the first row that is not blank, and how many lines end with it.

        :raises csv.Error: there is no such row, or it cannot be parsed.
        """
        rows = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=self.delimiter,
            quotechar=self.quote,
            escapechar=self.escape if self.escape != self.quote else None,
        )
        for row in rows:
            if row:
                return row, rows.line_num
        raise csv.Error("all lines are blank")

    def _consistent(self, reader: Mapping[str, str]) -> Self:
        named = {
            "delimiter": self.delimiter,
            "quoteCharacter": self.quote,
            "escapeCharacter": self.escape,
            "commentMarker": self.comment,
            "multiValueDelimiter": self.multi_value if "multiValueDelimiter" in reader else None,
        }
        keys: dict[str, str] = {}
        for key, character in named.items():
            if character is not None and (first := keys.setdefault(character, key)) != key:
                raise ReaderSettings(f"{key} and {first} are both {character!r}")
        return self


def _flag(reader: Mapping[str, str], key: str, default: str) -> bool:
    text = reader.get(key, default).strip().lower()
    if text not in ("true", "false"):
        raise ReaderSettings(f"{key} {text!r} is neither true nor false")
    return text == "true"


def _names(header: str, delimiter: str) -> tuple[str, ...]:
    """:raises ReaderSettings: the header names no column, or it cannot be parsed."""
    try:
        names = tuple(next(csv.reader([header], delimiter=delimiter), ()))
    except (csv.Error, ValueError) as error:
        raise ReaderSettings(
            f"header {header!r} cannot be split into columns",
            why=str(error),
            hint="write the names in one line, with the delimiter between them",
        ) from error
    if not any(name.strip() for name in names):
        raise ReaderSettings(
            f"header {header!r} names no column",
            hint="write the names of the files' columns, or remove header if the first row has them",
        )
    return names


def twice(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted; columns without a name do not count."""
    return sorted(name for name, count in Counter(names).items() if name and count > 1)


def character_problem(text: str) -> str | None:
    """Return what is wrong with a setting that must be one character, None if nothing is."""
    character = _meant(text)
    is_one = len(character) == 1 and character.isascii() and character not in "\r\n"
    return None if is_one else "is not a single ASCII character"


def _character(reader: Mapping[str, str], key: str) -> str | None:
    if (text := reader.get(key)) is None:
        return None
    if problem := character_problem(text):
        raise ReaderSettings(f"{key} {text!r} {problem}")
    return _meant(text)


def _meant(text: str) -> str:
    return {r"\t": "\t"}.get(text, text)  # as people write a tab in JSON and YAML
