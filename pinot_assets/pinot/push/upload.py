"""Uploads to one controller: the metadata of many segments, the metadata of one, or one whole tar.

Each lets Pinot copy the tar into its own deep store (rule R9). None refreshes a segment in place, because
names are never reused. Source: docs/design/push.md#the-calls, #refresh and #batches.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, cast

from isal import igzip, isal_zlib

from pinot_assets.core.untrusted import ENTRY_BYTES, BoundedHeader
from pinot_assets.pinot.api import PinotClient
from pinot_assets.pinot.client.http import CallKind, HttpCall, HttpClient

_FILES = ("creation.meta", "metadata.properties")
_LEVEL = 1
_MOST_ENTRIES = 16
"""A metadata tar has three: two files and the folder around them."""
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
    :ivar download_uri: from where Pinot copies the whole tar.
    """

    segment: str
    metadata_tar: bytes
    download_uri: str


def batch_tar(segments: Sequence[Announced]) -> bytes:
    """Return the tar.gz that announces all of them: `<segment>.creation.meta` and
    `<segment>.metadata.properties` of each, and the list of names and URIs, one a line.

    :raises ValueError: the metadata of one segment cannot be read, or its name or URI holds a line break;
        the message names the segment.
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
    """Return names and contents of its metadata files. Others may write the tar, so its size is bounded."""
    try:
        with (
            igzip.IGzipFile(fileobj=io.BytesIO(one.metadata_tar), mode="rb") as unpacked,  # type: ignore[no-untyped-call]
            tarfile.open(fileobj=unpacked, mode="r|", tarinfo=BoundedHeader) as tar,
        ):
            contents = {}
            for number, entry in enumerate(tar):
                if number >= _MOST_ENTRIES:
                    raise tarfile.TarError(f"it has more than {_MOST_ENTRIES} entries")
                if entry.size > ENTRY_BYTES:  # also of unwanted entries: they are unpacked to find the next
                    raise tarfile.TarError(f"an entry is larger than {ENTRY_BYTES >> 20} MiB")
                name = entry.name.rpartition("/")[2]
                content = tar.extractfile(entry) if entry.isfile() and name in _FILES else None
                if content is not None:
                    contents[name] = content.read()
        return [(name, contents[name]) for name in _FILES]
    except _DAMAGED as error:
        raise ValueError(f"{one.segment}: its metadata tar cannot be read: {error}") from None
    except KeyError as error:
        raise ValueError(f"{one.segment}: its metadata tar lacks {error}") from None


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


_METADATA = {"UPLOAD_TYPE": "METADATA", "COPY_SEGMENT_TO_DEEP_STORE": "true"}


class Uploader:
    """Uploads the segments of one table.

    Every method raises `PushRefused`, or its subclass `UploadFailed` if the controller tried and failed;
    `PinotUnreachable` if nothing was sent; `SwitchStateUnknown` if no answer came.

    :param deadline: seconds for one upload.
    """

    def __init__(self, client: HttpClient, table: str, deadline: float) -> None:
        self._client = client
        self._deadline = deadline
        self._params = {"tableName": table, "tableType": "OFFLINE", "allowRefresh": "false"}

    def batch(self, name: str, tar: bytes) -> None:
        """Push many segments by their metadata; Pinot writes the ideal state once.

        :param name: a name of the batch for Pinot's log.
        :param tar: as `pinot_assets.pinot.push.upload.batch_tar` makes it.
        """
        self._send("/segments/batchUpload", name, tar, _METADATA)

    def metadata(self, segment: str, metadata_tar: bytes, download_uri: str) -> None:
        """Push one segment by its metadata.

        :param metadata_tar: tar.gz of a directory with `creation.meta` and `metadata.properties`.
        """
        self._send("/v2/segments", segment, metadata_tar, {**_METADATA, "DOWNLOAD_URI": download_uri})

    def tar(self, segment: str, tar: Path) -> None:
        """Push one segment as a whole tar, streamed from the file: it is never in memory as a whole."""
        with tar.open("rb") as content:
            self._send("/v2/segments", segment, content, {"UPLOAD_TYPE": "SEGMENT"})

    def _send(self, path: str, name: str, body: bytes | IO[bytes], headers: Mapping[str, str]) -> None:
        files = {name: (f"{name}.tar.gz", body, "application/octet-stream")}
        self._client.send(
            HttpCall(
                "POST",
                path,
                CallKind.UPLOAD,
                self._deadline,
                params=self._params,
                headers=headers,
                files=files,
            )
        )


class Uploads(PinotClient, Protocol):
    """What a push calls: the methods of `PinotClient`, and these
    (of `pinot_assets.pinot.http_client.HttpPinotClient`)."""

    def registered_segments(self, table: str) -> frozenset[str]:
        """Return the names in the ideal state, and those of uploads that failed or still run."""

    def takes_over_half_uploads(self) -> bool:
        """Whether an upload starts afresh if it finds what a failed one left."""

    def takes_batches(self) -> bool:
        """Whether to try batches: the release has them, and no refused batch worked one by one afterwards."""

    def give_up_batches(self) -> None:
        """Remember that batches do not work: one was refused, and its segments then went up one by one."""

    def uploader(self, table: str) -> Uploader:
        """Return an uploader to the controller that leads the table now."""
