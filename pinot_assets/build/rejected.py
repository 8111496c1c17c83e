"""Why a file cannot become a segment. `code` is what the `Failure` of the file says."""

from __future__ import annotations

from typing import ClassVar

from pinot_assets.errors import BuildError

_SHOWN = 60


class FileRejected(BuildError):
    """Base of what is wrong with one file."""

    code: ClassVar[str] = "REJECTED"


class Unreadable(FileRejected):
    """The file is not what its format says, is damaged, or has none of the table's columns."""

    code = "UNREADABLE"


class TypeMismatch(FileRejected):
    """A value cannot become its column's type without loss."""

    code = "TYPE_MISMATCH"


class ZoneMissing(FileRejected):
    """A timestamp in text names no zone: Pinot would take that of the JVM that builds the segment."""

    code = "TIMESTAMP_STRING_ZONE_DEPENDENT"


class ReaderSettings(FileRejected):
    """The reader's settings cannot be used."""

    code = "READER_SETTINGS"


def shown(value: object) -> str:
    """A value for an error text, on one line and cut."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def one_line(error: BaseException) -> str:
    """A library's error text, on one line and cut: some quote the rest of the file."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 4 * _SHOWN else text[: 4 * _SHOWN] + "…"
