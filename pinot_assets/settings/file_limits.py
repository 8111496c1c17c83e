"""How much of one file a worker takes in, and why; more is a named failure of the file, not of its worker.

A limit that an honest file may meet can be raised by a variable of the driver's environment. It travels in
the order, so that executors need no variable. Not here: a row of CSV and a document of JSON, which must fit
into what is read at a time (`content.BLOCK_BYTES`, `json_documents.DOCUMENT_BYTES`), and the nesting of JSON,
which Python's parser and `json_text.MAX_NESTING` bound.
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
"""Bytes unpacked for each packed one from which on a large file counts as a bomb. Deflate cannot do more than
1,032; rows that people write, even the same row again and again, seldom do more than some hundred."""
FREE_BYTES: Final = 512 * _MB
"""So much may be unpacked at any ratio: a worker takes it easily, and small files of zeros are honest."""

COLUMNS: Final = "PINOT_ASSETS_MAX_COLUMNS"
VALUE: Final = "PINOT_ASSETS_MAX_VALUE_SIZE"
UNPACKED: Final = "PINOT_ASSETS_MAX_UNPACKED_SIZE"
MEMORY: Final = "PINOT_ASSETS_WORKER_MEMORY"

_UNPACKED: Final = 256 << 30
_SIZE: Final = re.compile(r"([0-9]{1,15})\s*([kmgt]?)b?", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True, slots=True)
class FileLimits:
    """What one file may have.

    :ivar columns: of its header or schema. Each costs work for each block, wanted or not; Pinot's own tables
        seldom have a thousand.
    :ivar value_bytes: of one text or bytes value, as of one JSON document. Sorting and writing a column takes
        some ten times the memory of its largest values.
    :ivar unpacked_bytes: of a packed file, all in all. An unpacked binary file lies on the worker's disk. Who
        says a number of bytes knows the data: then no ratio counts.
    :ivar worker_bytes: memory of the process that builds; None for four fifths of what the machine, or the
        container, has. Without it, the kernel ends a process where memory runs out, not always the right one.
    """

    columns: int = 20_000
    value_bytes: int = 64 * _MB
    unpacked_bytes: int = _UNPACKED
    worker_bytes: int | None = None

    @classmethod
    def of_environment(cls, environ: Mapping[str, str]) -> Self:
        """The limits with what the environment says otherwise.

        :raises PinotAssetsError: a variable holds no size, or no number.
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

        :raises TooLarge: it has more than it may.
        """
        if count > self.columns:
            raise FileTooLarge(
                f"the file has {count:,} columns, more than {self.columns:,}",
                why="every one is taken apart, wanted or not",
                hint=f"write fewer columns, check the delimiter, or set {COLUMNS} to a larger number",
            )

    def check_value(self, column: str, size: int) -> None:
        """Refuse a value that is too large.

        :param size: bytes of the largest value that the column has.
        :raises TooLarge: it is larger than one may be.
        """
        if size > self.value_bytes:
            raise FileTooLarge(
                f"column {column} has a value of {_shown(size)}, more than {_shown(self.value_bytes)}",
                why="building a segment with it takes many times its memory",
                hint=f"write shorter values, or set {VALUE} to a larger size and give workers the memory",
            )

    def check_unpacked(self, packed: int, unpacked: int) -> None:
        """Refuse a file, or a part of one, that unpacks to far more than honest data do.

        :param packed: its bytes as they are stored.
        :param unpacked: its bytes unpacked, so far or as it says.
        :raises TooLarge: it is too much.
        """
        if unpacked > self.unpacked_bytes:
            why = f"a file may unpack to {_shown(self.unpacked_bytes)}"
        elif unpacked > max(FREE_BYTES, RATIO * packed) and self.unpacked_bytes == _UNPACKED:
            why = f"that is more than {RATIO:,} times as much"
        else:
            return
        raise FileTooLarge(
            f"{_shown(packed)} unpack to {_shown(unpacked)} or more",
            why=why,
            hint=f"split the file; or, if its data are that repetitive, set {UNPACKED} to what it unpacks to",
        )


DEFAULTS: Final = FileLimits()


def _read(name: str, text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    value = int(match[1]) * _UNITS[match[2].lower()] if match is not None else 0
    if value < 1:
        raise PinotAssetsError(
            f"{name} is {text!r}, which is no number" + ("" if name == COLUMNS else " of bytes"),
            hint=f"write {name}={'40000' if name == COLUMNS else '8g'}",
        )
    return value


def _shown(size: int) -> str:
    for unit, name in ((1 << 40, "TB"), (1 << 30, "GB"), (_MB, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size / unit:,.3g} {name}"
    return f"{size} bytes"
