"""A file's bytes, unpacked, in blocks. A file's first bytes decide what it is; its name does not count."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Final, cast

import pyarrow as pa
from isal import igzip, igzip_lib

from pinot_assets.core.file_errors import Unreadable, one_line
from pinot_assets.ingest.contract.failures import trouble_code
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits

BLOCK_BYTES: Final = 4 << 20
"""Bytes of a text file, unpacked, that are read at a time. A row of CSV must fit into them; Arrow reads up to
32 such blocks ahead."""

_BOM: Final = b"\xef\xbb\xbf"
_PACKED: Final = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "bz2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"),  # text may begin with BZh
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),  # the latter: a skippable frame
}
_FORMATS: Final = {b"PAR1": "parquet", b"Obj\x01": "avro", b"ORC": "orc"}
_NAMES: Final = {"parquet": "a Parquet file", "avro": "an Avro file", "orc": "an ORC file"}
_OTHER_KINDS: Final = {
    b"\x04\x22\x4d\x18": "lz4-compressed",
    b"\xfd7zXZ": "xz-compressed",
    b"\xff\x06\x00\x00sNaPpY": "snappy-compressed",
    b"PK\x03\x04": "a zip archive",
}
_PACKED_NAME: Final = re.compile(r"\.(gz|gzip|bz2|zst|zstd|snappy|lz4|xz|zip|br|z)$", re.IGNORECASE)
_START: Final = 1 << 13
_DOCUMENT: Final = re.compile(rb"\{|\[\s*[{\]]")
"""Matches the start of a JSON document, or of the array around documents."""


def check_not_torn(name: str, size: int, input_format: str) -> None:
    """Refuse a file of 0 bytes if its kind cannot be empty: only plain text without rows can be.

    Otherwise a torn upload would remove the rows of the file's last version.

    :param name: the file's name or URI; its local copy has another name.
    :raises Unreadable: it has 0 bytes and should have some.
    """
    if size:
        return
    if (match := _PACKED_NAME.search(name)) is not None:
        what = f"a {match[0].lower()} file never has 0 bytes"
    elif input_format in _NAMES:
        what = f"{_NAMES[input_format]} has more than 0 bytes"
    else:
        return
    raise Unreadable(
        "the file has 0 bytes",
        why=f"{what}, not even one without rows",
        hint="the upload was incomplete: deliver the file again, or remove it if its rows should be removed",
    )


def text_blocks(path: Path, input_format: str, limits: FileLimits = DEFAULTS) -> Iterator[bytes]:
    """Yield a text file unpacked, without blank blocks and byte order mark at its start; nothing if blank.

    :raises Unreadable: it is damaged or cut, or plainly of another kind than the format.
    :raises TooLarge: it unpacks to too much.
    """
    blocks = _blocks(path, limits)
    if (first := next((block for block in blocks if block.removeprefix(_BOM).strip()), None)) is not None:
        first = first.removeprefix(_BOM)
        _check_text(first, input_format)
        yield first
    yield from blocks


def plain_file(path: Path, input_format: str, limits: FileLimits = DEFAULTS) -> Path | None:
    """Return a file of a binary format; a packed one is unpacked beside itself. None if it is blank.

    :raises Unreadable: it is damaged or cut, or does not start as the format does.
    :raises TooLarge: it unpacks to too much.
    """
    blocks = _blocks(path, limits)
    first = next(blocks, b"")
    if len(first) < BLOCK_BYTES and not first.removeprefix(_BOM).strip():
        return None
    _check_binary(first, input_format)
    if packing(path) is None:
        return path
    plain = path.with_name(path.name + ".plain")
    with plain.open("wb") as out:
        out.writelines(chain([first], blocks))
    return plain


def format_of(path: Path) -> str | None:
    """Return a file's kind by its first bytes: `parquet`, `avro`, `orc`, `json` or `csv`; None if blank.

    :raises Unreadable: it is damaged, or of a kind that is not read here.
    """
    first = next(_blocks(path, DEFAULTS), b"").removeprefix(_BOM).lstrip()
    if not first:
        return None
    binary = _FORMATS.get(_magic(first, _FORMATS))
    if binary is not None and (b"\0" in first[:_START] or not _is_utf_8(first[:_START])):
        return binary
    _check_text(first, "csv, json, parquet, avro or orc")
    return "json" if _DOCUMENT.match(first) else "csv"


def packing(path: Path) -> str | None:
    """Return how a file is packed: `gzip`, `bz2` or `zstd`; None if it is not."""
    with path.open("rb") as file:
        start = file.read(10)
    return next((kind for kind, magic in _PACKED.items() if magic.match(start)), None)


class Readable(io.RawIOBase):
    """Blocks as a file for Arrow: every read returns as many bytes as asked for, except the last."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._left = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, fewer only at the end."""
        parts, count = [self._left], len(self._left)
        while count < size or size < 0:
            if (block := next(self._blocks, None)) is None:
                break
            parts.append(block)
            count += len(block)
        data = parts[-1] if count == len(parts[-1]) else b"".join(parts)
        end = count if size < 0 else size
        self._left = data[end:]
        return data[:end]


def _open(path: Path) -> IO[bytes]:
    if (kind := packing(path)) is None:
        return path.open("rb")
    if kind == "gzip":
        return cast(IO[bytes], igzip.open(path))  # type: ignore[no-untyped-call]
    return cast(IO[bytes], pa.CompressedInputStream(pa.OSFile(str(path)), kind))


def _blocks(path: Path, limits: FileLimits) -> Iterator[bytes]:
    """Yield the file unpacked; every block except the last has `BLOCK_BYTES`."""
    packed, unpacked = path.stat().st_size, 0
    is_packed = packing(path) is not None
    try:
        with _open(path) as file:
            while block := _read(file):
                unpacked += len(block)
                if is_packed:
                    limits.check_unpacked(packed, unpacked)
                yield block
    except (EOFError, OSError, igzip_lib.IsalError) as error:  # type: ignore[misc]
        if trouble_code(error) is not None:
            raise
        raise Unreadable(
            f"the {packing(path)} file is damaged or incomplete",
            why=one_line(error),
            hint="write the file again; nothing that was read of it is used",
        ) from error


def _read(file: IO[bytes]) -> bytes:
    parts: list[bytes] = []
    left = BLOCK_BYTES
    while left and (part := file.read(left)):
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _magic(start: bytes, table: dict[bytes, str]) -> bytes:
    return next((magic for magic in table if start.startswith(magic)), b"")


def _check_packed_once(block: bytes) -> None:
    if (inner := next((kind for kind, magic in _PACKED.items() if magic.match(block)), None)) is not None:
        raise Unreadable(
            f"the file is compressed twice: inside it is {inner} again",
            hint="deliver it compressed once, or not at all",
        )


def _check_text(block: bytes, input_format: str) -> None:
    start = block[:_START]
    _check_packed_once(start)
    kind = _OTHER_KINDS.get(_magic(start, _OTHER_KINDS))
    if kind is None and (b"\0" in start or not _is_utf_8(start)):  # a text may begin with ORCID, a column
        kind = _NAMES.get(_FORMATS.get(_magic(start, _FORMATS), ""))
    if kind is None and b"\0" in start and not _is_utf_8(start):
        kind = "binary or UTF-16 text"  # in UTF-8 text, a stray zero byte is a normal value
    if kind is not None:
        raise Unreadable(
            f"the file is {kind}, not {input_format}",
            hint="with inputFormat, plain, gzip, bzip2 and zstd files are read",
        )


def _check_binary(block: bytes, input_format: str) -> None:
    if _FORMATS.get(_magic(block, _FORMATS)) == input_format:
        return
    _check_packed_once(block)
    known = {magic: _NAMES[kind] for magic, kind in _FORMATS.items()} | _OTHER_KINDS
    actual = known.get(_magic(block, known))
    magic = next(magic for magic, kind in _FORMATS.items() if kind == input_format)
    raise Unreadable(
        f"not {_NAMES[input_format]}",
        why=f"it is {actual}" if actual else f"it does not start with {magic.decode().strip()}",
        hint="check inputFormat",
    )


def _is_utf_8(start: bytes) -> bool:
    try:
        codecs.utf_8_decode(start, "strict", False)
    except UnicodeDecodeError:
        return False
    return True
