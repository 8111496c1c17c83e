"""Limits of one file, and their reasons: a file above a limit fails by name, and its worker survives.

A variable of the driver's environment raises a limit that a valid file may reach. The build task carries the
limits, so executors need no variable. Some limits are elsewhere: a CSV row and a JSON document must fit into
one read (`content.BLOCK_BYTES`, `json_documents.DOCUMENT_BYTES`), and Python's parser and
`json_text.MAX_NESTING` limit the nesting of JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from pinot_assets.core.file_errors import FileTooLarge
from pinot_assets.errors import PinotAssetsError

_MB: Final = 1 << 20
RATIO: Final = 1000
"""A large file that unpacks to more bytes per packed byte counts as a bomb. Deflate cannot do more than
1,032. Rows that people write, even one row repeated, seldom reach more than a few hundred."""
FREE_BYTES: Final = 512 * _MB
"""Up to this size any ratio is allowed: a worker has room for it, and small files of zeros can be valid."""

COLUMNS: Final = "PINOT_ASSETS_MAX_COLUMNS"
VALUE: Final = "PINOT_ASSETS_MAX_VALUE_SIZE"
UNPACKED: Final = "PINOT_ASSETS_MAX_UNPACKED_SIZE"
MEMORY: Final = "PINOT_ASSETS_WORKER_MEMORY"

_UNPACKED: Final = 256 << 30
_SIZE: Final = re.compile(r"([0-9]{1,15})\s*([kmgt]?)b?", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The most that one file may have.

    :ivar columns: columns in its header or schema. Each column costs work in each block, also if the table
        does not use it. Pinot's own tables seldom have a thousand.
    :ivar value_bytes: size of one text or bytes value; the default is also the limit of one JSON document.
        Sorting and writing a column takes about ten times the memory of its largest values.
    :ivar unpacked_bytes: total unpacked size of a packed file. An unpacked binary file is on the worker's
        disk. If a user sets this limit, the ratio does not count: the user knows the data.
    :ivar worker_bytes: memory of the building process; None for four fifths of the memory of the machine or
        container. Without a limit the kernel kills a process, not always the right one.
    """

    columns: int = 20_000
    value_bytes: int = 64 * _MB
    unpacked_bytes: int = _UNPACKED
    worker_bytes: int | None = None

    @classmethod
    def of_environment(cls, environ: Mapping[str, str]) -> Self:
        """Return the limits, with those that the environment sets.

        :raises PinotAssetsError: the value of a variable is not a size or number.
        """
        limits = {
            field: _read(name, environ[name])
            for field, name in (
                ("columns", COLUMNS),
                ("value_bytes", VALUE),
                ("unpacked_bytes", UNPACKED),
                ("worker_bytes", MEMORY),
            )
            if environ.get(name, "").strip()
        }
        return cls(**limits)

    def check_columns(self, count: int) -> None:
        """Refuse a file with too many columns.

        :raises TooLarge: it has more columns than allowed.
        """
        if count > self.columns:
            raise FileTooLarge(
                f"the file has {count:,} columns, more than {self.columns:,}",
                why="a reader splits every column, also those that the table does not need",
                hint=f"write fewer columns, check the delimiter, or set {COLUMNS} to a larger number",
            )

    def check_value(self, column: str, size: int) -> None:
        """Refuse a value that is too large.

        :param size: bytes of the column's largest value.
        :raises TooLarge: the value is larger than allowed.
        """
        if size > self.value_bytes:
            raise FileTooLarge(
                f"column {column} has a value of {_shown(size)}, more than {_shown(self.value_bytes)}",
                why="building a segment with it takes many times its memory",
                hint=f"write shorter values, or set {VALUE} to a larger size and give workers the memory",
            )

    def check_unpacked(self, packed: int, unpacked: int) -> None:
        """Refuse a file, or a part of one, that unpacks to far more than real data do.

        :param packed: its stored size in bytes.
        :param unpacked: its unpacked size in bytes, so far or as the file declares it.
        :raises TooLarge: the unpacked size is over the limit.
        """
        if unpacked > self.unpacked_bytes:
            why = f"a file may unpack to {_shown(self.unpacked_bytes)}"
        elif unpacked > max(FREE_BYTES, RATIO * packed) and self.unpacked_bytes == _UNPACKED:
            why = f"that is more than {RATIO:,} times its compressed size"
        else:
            return
        raise FileTooLarge(
            f"{_shown(packed)} unpack to {_shown(unpacked)} or more",
            why=why,
            hint=f"split the file; or, if its data are so repetitive, set {UNPACKED} to their "
            "uncompressed size",
        )


DEFAULTS: Final = FileLimits()


def _read(name: str, text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    value = int(match[1]) * _UNITS[match[2].lower()] if match is not None else 0
    if value < 1:
        raise PinotAssetsError(
            f"{name} is {text!r}, which is not a number" + ("" if name == COLUMNS else " of bytes"),
            hint=f"write {name}={'40000' if name == COLUMNS else '8g'}",
        )
    return value


def _shown(size: int) -> str:
    for unit, name in ((1 << 40, "TB"), (1 << 30, "GB"), (_MB, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size / unit:,.3g} {name}"
    return f"{size} bytes"
