"""Write segments as tar.gz, the only form that every Pinot server accepts (docs/design/segment-format.md#s1).

The first entry is the top directory (servers take it for the segment's). The gzip file has one member (Pinot
refuses more). Nothing depends on clock or user: the same segment makes the same bytes. `columns.psf`,
`index_map` and `metadata.properties` have the order of the CRC, so that one pass can rename a tar.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from isal import igzip, isal_zlib
from isal.isal_zlib import adler32

from pinot_assets.core.untrusted import ENTRY_BYTES, BoundedHeader
from pinot_assets.errors import BuildError
from pinot_assets.segment.column.types import property_line
from pinot_assets.segment.write.segment import Segment, check_name, creation_meta

if TYPE_CHECKING:
    from _typeshed import SupportsRead

GZIP_LEVEL = 1  # isal's fast level: a quarter of zlib's time at nearly the same size
_CORRUPT: tuple[type[Exception], ...] = (
    tarfile.TarError,
    EOFError,
    igzip.BadGzipFile,
    cast(type[Exception], isal_zlib.IsalError),
    struct.error,
)
_NAME_LINE = re.compile(rb"^segment\.name = .*\n", re.MULTILINE)
_COPY_BYTES = 1 << 18  # with tarfile's own 16 KB, the calls alone take a fifth of the time
_FILES = ("columns.psf", "index_map", "metadata.properties", "creation.meta")


@dataclass(frozen=True, slots=True)
class TarInfo:
    """A written archive: its size in bytes and the hex SHA-256 of its bytes."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Renamed:
    """A tar under a new segment name.

    :ivar crc: the segment's new CRC; the name is part of the files it covers.
    :ivar metadata_tar: the small tar for a metadata push.
    :ivar tar: the new archive.
    """

    crc: int
    metadata_tar: bytes
    tar: TarInfo


def _gzip(**options: object) -> igzip.IGzipFile:
    return igzip.IGzipFile(**options)  # type: ignore[no-untyped-call]  # isal's stubs lack these


@contextmanager
def _writing(sink: IO[bytes]) -> Iterator[tarfile.TarFile]:
    with (
        _gzip(filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=sink, mtime=0) as packed,
        tarfile.TarFile(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT, copybufsize=_COPY_BYTES) as tar,
    ):
        yield tar


def _directory(tar: tarfile.TarFile, name: str, mtime: int) -> None:
    entry = tarfile.TarInfo(f"{name}/")
    entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, mtime
    tar.addfile(entry)


def _file(tar: tarfile.TarFile, name: str, mtime: int, size: int, content: SupportsRead[bytes]) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o644, mtime
    tar.addfile(entry, content)


def write_tar(segment: Segment, path: Path) -> TarInfo:
    """Write the segment as tar.gz; return size and hash of the file.

    :param path: file to write; replaced if it exists.
    """
    mtime = segment.creation_time_ms // 1000
    with path.open("wb") as file, _writing(file) as tar:
        _directory(tar, segment.name, mtime)
        _directory(tar, f"{segment.name}/v3", mtime)
        for name in _FILES:
            content = segment.files[name]
            _file(tar, f"{segment.name}/v3/{name}", mtime, len(content), io.BytesIO(content))
    return _tar_info(path)


def _tar_info(path: Path) -> TarInfo:
    with path.open("rb") as file:
        return TarInfo(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def metadata_tar(segment: Segment) -> bytes:
    """Return the small tar.gz of a metadata push: a folder, `creation.meta` and `metadata.properties`."""
    return _metadata_tar(
        segment.name,
        segment.creation_time_ms,
        segment.files["creation.meta"],
        segment.files["metadata.properties"],
    )


def _metadata_tar(name: str, creation_time_ms: int, meta: bytes, properties: bytes) -> bytes:
    mtime = creation_time_ms // 1000
    out = io.BytesIO()
    with _writing(out) as tar:
        _directory(tar, name, mtime)
        for file_name, content in (("creation.meta", meta), ("metadata.properties", properties)):
            _file(tar, f"{name}/{file_name}", mtime, len(content), io.BytesIO(content))
    return out.getvalue()


def rename_tar(source: Path, target: Path, *, name: str) -> Renamed:
    """Copy a tar under a new segment name, without building anything again (rule R16).

    Only `segment.name` in `metadata.properties` and the CRC in `creation.meta` change.

    :param source: a tar that `write_tar` wrote.
    :param target: file to write; replaced if it exists, never the source itself.
    :raises BuildError: the name cannot be used, or the source is no tar of `write_tar`.
    """
    check_name("segment name", name)
    with _reading(source) as old, target.open("wb") as file, _writing(file) as new:
        crc, created, properties, meta = _copy_renamed(old, new, name)
    return Renamed(crc, _metadata_tar(name, created, meta, properties), _tar_info(target))


def _copy_renamed(old: tarfile.TarFile, new: tarfile.TarFile, name: str) -> tuple[int, int, bytes, bytes]:
    """Copy all entries in one pass. `creation.meta` is the last one: by then the new CRC is known."""
    psf, psf_entry = _next_file(old, "columns.psf")
    mtime = int(psf_entry.mtime)
    _directory(new, name, mtime)
    _directory(new, f"{name}/v3", mtime)
    summing = _Summing(psf)
    _file(new, f"{name}/v3/columns.psf", mtime, psf_entry.size, summing)
    index_map = _content(old, "index_map")
    old_properties = _content(old, "metadata.properties")
    properties = _NAME_LINE.sub(
        lambda _: property_line("segment.name", name).encode(), old_properties, count=1
    )
    crc = adler32(properties, adler32(index_map, summing.crc))
    _, created, data_crc = struct.unpack(">qqq", _content(old, "creation.meta"))
    meta = creation_meta(crc, created, data_crc)
    for file_name, content in zip(_FILES[1:], (index_map, properties, meta), strict=True):
        _file(new, f"{name}/v3/{file_name}", mtime, len(content), io.BytesIO(content))
    return crc, created, properties, meta


class _Summing(io.RawIOBase):
    """Computes the Adler-32 of the bytes that are read through it."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.crc = 1

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self.crc = adler32(data, self.crc)
        return data


@contextmanager
def _reading(source: Path) -> Iterator[tarfile.TarFile]:
    """Open a tar.gz as a stream; turn errors of the libraries into ours."""
    try:
        with (
            source.open("rb") as file,
            _gzip(fileobj=file, mode="rb") as packed,
            tarfile.open(fileobj=packed, mode="r|", tarinfo=BoundedHeader) as tar,
        ):
            yield tar
    except _CORRUPT as error:
        raise BuildError(
            f"{source} is no segment tar", why=str(error), hint="Build the file again."
        ) from None


def _next_file(tar: tarfile.TarFile, file_name: str) -> tuple[IO[bytes], tarfile.TarInfo]:
    """Return the next entry that is no directory; it must have this name."""
    while (entry := tar.next()) is not None:
        if entry.isfile():
            content = tar.extractfile(entry)
            if entry.name.rpartition("/")[2] != file_name or content is None:
                raise tarfile.TarError(f"{entry.name} where {file_name} was expected")
            return content, entry
    raise tarfile.TarError(f"{file_name} is missing")


def _content(tar: tarfile.TarFile, file_name: str) -> bytes:
    """Return the next entry's bytes. Its declared size is limited: a bucket may be open to other writers."""
    content, entry = _next_file(tar, file_name)
    if entry.size > ENTRY_BYTES:
        raise tarfile.TarError(f"{file_name} is larger than {ENTRY_BYTES >> 20} MiB")
    return content.read()
