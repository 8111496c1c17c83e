"""The body of a batch upload: the metadata of many segments in one tar.gz.

Source: docs/design/push.md#the-body-of-a-batch.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from isal import igzip, isal_zlib

from pinot_assets.core.limits import ENTRY_BYTES
from pinot_assets.core.untrusted import BoundedHeader

_FILES = ("creation.meta", "metadata.properties")
_LEVEL = 1
_MOST_ENTRIES = 16
"""Of a metadata tar: two files and the folder around them."""
_DAMAGED: tuple[type[Exception], ...] = (
    tarfile.TarError,
    EOFError,
    OSError,  # isal's BadGzipFile is one
    zlib.error,
    cast(type[Exception], isal_zlib.IsalError),
)


@dataclass(frozen=True, slots=True)
class Announced:
    """One segment of a batch.

    :ivar metadata_tar: the small tar of a METADATA push.
    :ivar download_uri: where Pinot finds the whole one.
    """

    segment: str
    metadata_tar: bytes
    download_uri: str


def batch_tar(segments: Sequence[Announced]) -> bytes:
    """The tar.gz that announces all of them: `<segment>.creation.meta`, `<segment>.metadata.properties` and
    the list of names and URIs, line by line.

    :raises ValueError: the metadata of one cannot be read, or a name or URI would break the list's lines;
        names the segment.
    """
    for one in segments:
        if not {"\n", "\r"}.isdisjoint(one.segment + one.download_uri):
            raise ValueError(f"{one.segment}: its name or URI holds a line break")
    listed = "".join(f"{one.segment}\n{one.download_uri}\n" for one in segments)
    out = io.BytesIO()
    with (
        igzip.IGzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=out, mtime=0) as packed,  # type: ignore[no-untyped-call]
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for one in segments:
            for name, content in _metadata(one):
                _add(tar, f"{one.segment}.{name}", content)
        _add(tar, "all_segments_metadata", listed.encode())
    return out.getvalue()


def _metadata(one: Announced) -> Iterable[tuple[str, bytes]]:
    """What it announces. The tar may lie in a bucket of others: size and number of entries are limited."""
    try:
        with (
            igzip.IGzipFile(fileobj=io.BytesIO(one.metadata_tar), mode="rb") as unpacked,  # type: ignore[no-untyped-call]
            tarfile.open(fileobj=unpacked, mode="r|", tarinfo=BoundedHeader) as tar,
        ):
            found = {}
            for number, entry in enumerate(tar):
                if number >= _MOST_ENTRIES:
                    raise tarfile.TarError(f"it has more than {_MOST_ENTRIES} entries")
                if entry.size > ENTRY_BYTES:  # one that is not wanted is unpacked, too, to find the next
                    raise tarfile.TarError(f"an entry is larger than {ENTRY_BYTES >> 20} MiB")
                name = entry.name.rpartition("/")[2]
                content = tar.extractfile(entry) if entry.isfile() and name in _FILES else None
                if content is not None:
                    found[name] = content.read()
        return [(name, found[name]) for name in _FILES]
    except _DAMAGED as error:
        raise ValueError(f"{one.segment}: its metadata tar cannot be read: {error}") from None
    except KeyError as error:
        raise ValueError(f"{one.segment}: its metadata tar lacks {error}") from None


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))
