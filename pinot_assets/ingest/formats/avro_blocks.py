"""The frame of an Avro file, walked block by block: the decoder takes a file cut short for a whole one.

Source: the Avro specification, object container files.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from pinot_assets.core.file_errors import Unreadable
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits

_SYNC_BYTES = 16


def count_rows(path: Path, limits: FileLimits = DEFAULTS) -> int:
    """How many rows the blocks of a file promise, nothing of which is decoded.

    :raises Unreadable: a block is cut short, or does not end with the file's mark.
    :raises TooLarge: a block promises far more rows than its bytes can hold, one byte each.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        position = rows = 0
        try:
            position = _behind_header(data)
            mark = data[position - _SYNC_BYTES : position]
            while position < len(data):
                count, position = _long(data, position)
                size, position = _long(data, position)
                position += size + _SYNC_BYTES
                if count < 0 or size < 0 or data[position - _SYNC_BYTES : position] != mark:
                    raise IndexError
                limits.check_unpacked(size, count)
                rows += count
        except IndexError as error:
            raise Unreadable(
                "the Avro file is damaged or cut short",
                why=f"a block that ends at byte {position} of {len(data)} does not end with the file's mark",
                hint="write the file again; nothing that was read of it is used",
            ) from error
        return rows


def _behind_header(data: mmap.mmap) -> int:
    position = 4
    while True:
        count, position = _long(data, position)
        if count == 0:
            break
        if count < 0:
            _, position = _long(data, position)
        for _ in range(2 * abs(count)):  # keys and values
            size, position = _long(data, position)
            position += size
            if size < 0 or position > len(data):
                raise IndexError
    if position + _SYNC_BYTES > len(data):
        raise IndexError
    return position + _SYNC_BYTES


def _long(data: mmap.mmap, position: int) -> tuple[int, int]:
    """A zigzag number of variable length, and where it ends."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise IndexError
