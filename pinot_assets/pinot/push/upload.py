"""Uploads to one controller: many segments by their metadata, one by its metadata, one whole.

Every one lets Pinot copy the tar into its own deep store (rule R9), and none ever refreshes a segment in
place: names are never reused. Source: docs/design/push.md#the-calls, #refresh and #batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Protocol

from pinot_assets.pinot.api import PinotClient
from pinot_assets.pinot.client.http import CallKind, HttpCall, HttpClient

_METADATA = {"UPLOAD_TYPE": "METADATA", "COPY_SEGMENT_TO_DEEP_STORE": "true"}


class Uploader:
    """The uploads of one table.

    Errors of every method: `PushRefused`, and `UploadFailed` of it when the controller tried and failed;
    `PinotUnreachable` when nothing was sent, `SwitchStateUnknown` when no answer came.

    :param deadline: seconds for one upload.
    """

    def __init__(self, door: HttpClient, table: str, deadline: float) -> None:
        self._door = door
        self._deadline = deadline
        self._params = {"tableName": table, "tableType": "OFFLINE", "allowRefresh": "false"}

    def batch(self, name: str, tar: bytes) -> None:
        """METADATA push of many segments: one write of the ideal state.

        :param name: of the part, for Pinot's log.
        :param tar: as `pinot_assets.pinot.push.batch_body.batch_tar` makes it.
        """
        self._send("/segments/batchUpload", name, tar, _METADATA)

    def metadata(self, segment: str, metadata_tar: bytes, download_uri: str) -> None:
        """METADATA push of one segment.

        :param metadata_tar: tar.gz of a directory with `creation.meta` and `metadata.properties`.
        """
        self._send("/v2/segments", segment, metadata_tar, {**_METADATA, "DOWNLOAD_URI": download_uri})

    def tar(self, segment: str, tar: Path) -> None:
        """Tar push of one segment: the file is streamed, never held as a whole."""
        with tar.open("rb") as content:
            self._send("/v2/segments", segment, content, {"UPLOAD_TYPE": "SEGMENT"})

    def _send(self, path: str, name: str, body: bytes | IO[bytes], headers: Mapping[str, str]) -> None:
        files = {name: (f"{name}.tar.gz", body, "application/octet-stream")}
        self._door.send(
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
    """The calls that a push is made of, beside the client's own
    (`pinot_assets.pinot.http_client.HttpPinotClient`)."""

    def registered_segments(self, table: str) -> frozenset[str]:
        """Names in the ideal state, and those of uploads that failed or are under way."""

    def takes_over_half_uploads(self) -> bool:
        """Whether an upload that meets what a failed one left starts afresh."""

    def takes_batches(self) -> bool:
        """Whether to try batches: the release knows them, and none was refused that went up one by one."""

    def give_up_batches(self) -> None:
        """A batch was refused, and then the same went up one by one: remember it."""

    def uploader(self, table: str) -> Uploader:
        """Uploads to the controller that leads the table now."""
