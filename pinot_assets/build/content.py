"""A file's bytes, unpacked. What a file is, its first bytes say; its name does not count."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Final

import pyarrow as pa
from isal import igzip, igzip_lib

from pinot_assets.build.rejected import Unreadable, one_line

_BOM: Final = b"\xef\xbb\xbf"
_GZIP: Final = b"\x1f\x8b"
_OTHER_KINDS: Final = {
    b"\x28\xb5\x2f\xfd": "zstd-compressed",
    b"\x04\x22\x4d\x18": "lz4-compressed",
    b"\xfd7zXZ": "xz-compressed",
    b"PK\x03\x04": "a zip archive",
    b"BZh": "bzip2-compressed",
    b"Obj\x01": "an Avro file",
}
_PARQUET: Final = b"PAR1"
_STEP: Final = 1 << 16
_START: Final = 1 << 13


def load(path: Path) -> pa.Buffer:
    """The whole file, gunzipped if it is gzip (several members are one file); mapped, not copied, if not.

    A UTF-8 byte order mark is left out.

    :raises Unreadable: the gzip stream is damaged or cut.
    """
    data = _unpacked(path)
    return data.slice(len(_BOM)) if bytes(memoryview(data)[: len(_BOM)]) == _BOM else data


def _unpacked(path: Path) -> pa.Buffer:
    with path.open("rb") as file:
        magic = file.read(2)
    if magic != _GZIP:
        # An empty file cannot be mapped.
        return pa.memory_map(str(path)).read_buffer() if magic else pa.py_buffer(b"")
    try:
        with igzip.open(path) as packed:  # type: ignore[no-untyped-call]
            return pa.py_buffer(packed.read())
    except (EOFError, OSError, igzip_lib.IsalError) as error:  # type: ignore[misc]
        raise Unreadable("the gzip file is damaged or cut short", why=one_line(error)) from error


def is_blank(data: pa.Buffer) -> bool:
    """Whether there is nothing but white space."""
    view = memoryview(data)
    return all(not bytes(view[n : n + _STEP]).strip() for n in range(0, len(view), _STEP))


def check_kind(data: pa.Buffer, input_format: str) -> None:
    """Refuse what is plainly something else than the format says.

    :raises Unreadable: says what it is.
    """
    start = bytes(memoryview(data)[:_START])
    parquet = start.startswith(_PARQUET)
    if input_format == "parquet" and not parquet:
        raise Unreadable("not a Parquet file", why="it does not start with PAR1", hint="check inputFormat")
    found = next((kind for magic, kind in _OTHER_KINDS.items() if start.startswith(magic)), None)
    found = "a Parquet file" if parquet and input_format != "parquet" else found
    if input_format != "parquet" and found is None and _is_binary(start):
        found = "binary or UTF-16 text"
    if found is not None:
        raise Unreadable(
            f"the file is {found}, not {input_format}", hint="plain and gzip files of inputFormat are read"
        )


def _is_binary(start: bytes) -> bool:
    # A stray zero byte in UTF-8 text is a value like others.
    try:
        codecs.utf_8_decode(start, "strict", False)
    except UnicodeDecodeError:
        return b"\0" in start
    return False
