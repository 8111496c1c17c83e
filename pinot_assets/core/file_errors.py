"""Why a file cannot become a segment, or a row cannot. `code` is what the `Failure` of the file says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pinot_assets.errors import BuildError

_SHOWN = 60


class FileRejected(BuildError):
    """Base of what is wrong with one file."""

    code: ClassVar[str] = "REJECTED"


class Unreadable(FileRejected):
    """The file is not what its format says, is damaged, or has none of the table's columns."""

    code = "UNREADABLE"


class FileTooLarge(FileRejected):
    """The file has more of something than a worker takes in, see `limits`."""

    code = "TOO_LARGE"


class TypeMismatch(FileRejected):
    """A value cannot become its column's type without loss."""

    code = "TYPE_MISMATCH"


class ZoneMissing(FileRejected):
    """A timestamp in text names no zone: Pinot would take that of the JVM that builds the segment."""

    code = "TIMESTAMP_STRING_ZONE_DEPENDENT"


class ColumnMissing(FileRejected):
    """The file lacks columns that the table has, and the table spec does not let it."""

    code = "COLUMN_MISSING"


class TooManyBadRows(FileRejected):
    """More rows are bad than the table spec lets be put aside."""

    code = "TOO_MANY_BAD_ROWS"


class ReaderSettings(FileRejected):
    """The reader's settings cannot be used."""

    code = "READER_SETTINGS"


@dataclass(frozen=True, slots=True)
class BadRow:
    """One row that cannot be taken.

    :ivar row: its number as people count, see the format's reader.
    :ivar column: the first column that is wrong; empty when the row itself is.
    :ivar value: the value, cut; empty when the row itself is wrong.
    :ivar why: goes on from the value: `cannot become INT`.
    :ivar kind: what it is for the file when no row may be bad.
    :ivar record: the row as it was read: text as it stands in the file, else JSON of the table's columns.
    """

    row: int
    column: str
    value: str
    why: str
    kind: type[FileRejected]
    record: str
    hint: str | None = None

    def verdict(self) -> FileRejected:
        """The error of a file that may not have this row."""
        place = f"column {self.column}, row {self.row}" if self.column else f"row {self.row}"
        return self.kind(f"{place}: {' '.join(filter(None, (self.value, self.why)))}", hint=self.hint)


def shown(value: object) -> str:
    """A value for an error text, on one line and cut."""
    text = repr(value[: 2 * _SHOWN] if isinstance(value, (str, bytes)) else value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def one_line(error: BaseException) -> str:
    """A library's error text, on one line and cut: some quote the rest of the file."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 4 * _SHOWN else text[: 4 * _SHOWN] + "…"
