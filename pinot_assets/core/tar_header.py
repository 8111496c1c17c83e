"""Headers of tars that others may have written."""

from __future__ import annotations

import tarfile
from typing import Final, Self

_MOST_HEADER: Final = 1 << 16
"""Bytes of a name that does not fit into a plain header; Python reads it whole."""


class BoundedHeader(tarfile.TarInfo):
    """One whose long names are as long as names are."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """As `tarfile` calls it.

        :raises tarfile.ReadError: a long name is longer than names are.
        """
        found = super().frombuf(buf, encoding, errors)
        if not (found.isreg() or found.isdir()) and found.size > _MOST_HEADER:
            raise tarfile.ReadError(f"a header of {found.size} bytes")
        return found
