"""Why a file cannot become a segment, or a row cannot be used. `code` becomes the code of the `Failure`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pinot_assets.errors import BuildError

_SHOWN = 60


class FileRejected(BuildError):
    """Base class of the errors of one file."""

    code: ClassVar[str] = "REJECTED"


class Unreadable(FileRejected):
    """The file is not of its format, is damaged, or has none of the table's columns."""

    code = "UNREADABLE"


class FileTooLarge(FileRejected):
    """The file has more of something than a worker may read, see `limits`."""

    code = "TOO_LARGE"


class TypeMismatch(FileRejected):
    """A value cannot become its column's type without loss."""

    code = "TYPE_MISMATCH"


class ZoneMissing(FileRejected):
    """A timestamp in text has no time zone: Pinot would use that of the JVM that builds the segment."""

    code = "TIMESTAMP_STRING_ZONE_DEPENDENT"


class ColumnMissing(FileRejected):
    """The file lacks columns of the table, and the table spec does not allow that."""

    code = "COLUMN_MISSING"


class TooManyBadRows(FileRejected):
    """More rows are bad than the table spec allows to put aside."""

    code = "TOO_MANY_BAD_ROWS"


class ReaderSettings(FileRejected):
    """The reader's settings cannot be used."""

    code = "READER_SETTINGS"


@dataclass(frozen=True, slots=True)
class BadRow:
    """One row that does not fit the schema.

    :ivar row: its number as people count, see the format's reader.
    :ivar column: the first wrong column; empty if the row itself is wrong.
    :ivar value: the value, shortened; empty if the row itself is wrong.
    :ivar why: continues the sentence after the value: `cannot become INT`.
    :ivar kind: the file's error if no row may be bad.
    :ivar record: the row as it was read: the text in the file, else JSON of the table's columns.
    """

    row: int
    column: str
    value: str
    why: str
    kind: type[FileRejected]
    record: str
    hint: str | None = None

    def verdict(self) -> FileRejected:
        """Return the file's error if this row may not be bad."""
        place = f"column {self.column}, row {self.row}" if self.column else f"row {self.row}"
        return self.kind(f"{place}: {' '.join(filter(None, (self.value, self.why)))}", hint=self.hint)


def shown(value: object) -> str:
    """Return a value for an error text: one line, shortened."""
    text = repr(value[: 2 * _SHOWN] if isinstance(value, (str, bytes)) else value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def one_line(error: BaseException) -> str:
    """Return a library's error text, one line, shortened: some libraries quote the rest of the file."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 4 * _SHOWN else text[: 4 * _SHOWN] + "…"
