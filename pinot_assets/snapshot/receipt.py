"""The receipt of one built file: written by the task after its tars, so a file is done when, and only
when, its receipt exists (docs/design/session.md#receipt).

It names the version of the file that was read, its fingerprint: what a listing says about one file, and when
two such sayings mean the same content. The fingerprint wakes, content decides (edge case E3).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import NamedTuple

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.stored_format import Open, Stored, plain, structured
from pinot_assets.core.untrusted import read_json


@dataclass(frozen=True, slots=True)
class Fingerprint(Open):
    """The version of one file as its store reports it.

    :ivar size: bytes.
    :ivar mtime_us: last modification in microseconds since the epoch, as the store says; compared
        for equality (edge case E28), and for age only where `minFileAgeSec` asks for it. Whole seconds on
        S3, where a HEAD knows no more.
    :ivar etag: the store's entity tag without quotes, None on a local disk.
    :ivar version_id: the object version on a versioned bucket, else None. For people only: a listing
        does not tell it and a HEAD does, so it takes no part in equality or `token`.
    """

    size: int
    mtime_us: int
    etag: str | None = None
    version_id: str | None = field(default=None, compare=False)

    @property
    def token(self) -> str:
        """Twelve hex digits that name this version in receipts and plans."""
        text = json.dumps({"size": self.size, "mtime_us": self.mtime_us, "etag": self.etag}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_json(self) -> JsonObject:
        """Plain values: the columns of a plan and of a snapshot."""
        return {
            "size": self.size,
            "mtime_us": self.mtime_us,
            "etag": self.etag,
            "version_id": self.version_id,
        }

    @classmethod
    def of_row(cls, row: JsonMapping) -> Fingerprint:
        """That of such columns."""
        return cls(row["size"], row["mtime_us"], row["etag"], row["version_id"])


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """One listed file: its full URI (`file:///…`, `s3://bucket/key`) and its version."""

    uri: str
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class Output(Open):
    """One segment of a built file.

    :ivar segment: segment name.
    :ivar crc: Pinot's CRC (Adler-32 over the segment's files), as Pinot's ZooKeeper metadata shows it.
    :ivar rows: documents in the segment.
    :ivar tar_uri: where the tar.gz lies in the staging area.
    :ivar tar_bytes: size of the tar.gz.
    :ivar tar_sha256: hex digest of the tar.gz.
    :ivar metadata_uri: where the small tar for a metadata push lies (`creation.meta`,
        `metadata.properties` in a directory).
    :ivar start_ms: smallest time value in epoch milliseconds, None without a time column.
    :ivar end_ms: largest time value.
    :ivar unpacked_bytes: size of the segment's files, which is what a server's disk and Pinot's quota hold of
        it (indexes that the server adds come on top); 0 where a writer before this field built it.
    """

    segment: str
    crc: int
    rows: int
    tar_uri: str
    tar_bytes: int
    tar_sha256: str
    metadata_uri: str
    start_ms: int | None = None
    end_ms: int | None = None
    unpacked_bytes: int = field(default=0, compare=False)

    @property
    def loaded_bytes(self) -> int:
        """What a server needs for it at the least: unpacked, or the tar where that is not known."""
        return self.unpacked_bytes or self.tar_bytes


class ColumnFacts(NamedTuple):
    """What a segment's metadata say of one column.

    :ivar low: smallest value as it is written there, None where it is not; of a text its beginning.
    :ivar high: largest value.
    """

    name: str
    data_type: str
    low: str | None
    high: str | None


class SegmentFacts(NamedTuple):
    """What a segment's metadata say, read back from what was written."""

    rows: int
    columns: tuple[ColumnFacts, ...]


@dataclass(frozen=True, slots=True)
class Receipt(Stored):
    """What a task did with one file.

    :ivar uri: the source file.
    :ivar ordinal: the file's number in its session, never reused (rule R16).
    :ivar attempt: the attempt that built it; stands in the segment names.
    :ivar read: the version that was read (not necessarily the one planned, rule R12).
    :ivar sha256: hex digest of the file's bytes as read.
    :ivar rows: rows published; 0 means EMPTY: done, without outputs (edge case E5).
    :ivar bad_rows: rows that were left out, 0 unless the table spec allows any.
    :ivar outputs: the segments, in order.
    :ivar seconds: wall time of the task.
    :ivar worker: `host/pid` of the executor's Python worker.
    :ivar tars: version token of each output's tar as the staging area showed it; while it shows the same,
        the content need not be read again (rule R12).
    :ivar bad_rows_uri: Parquet file with the rows that were left out and why; empty without any.
    :ivar missing: columns of the table without a value in any of its rows: the file lacks them, or they are
        null throughout (earlier releases named only those that it lacks).
    :ivar rows_read: rows of the file as its reader counted them (the footer's number, where there is one);
        None where nobody did: a writer before this field, or Spark over text with a filter.
    :ivar rows_filtered: how many of them the table spec's filter left out.
    :ivar facts: of each output, in their order; none where a writer before this field built it.
    """

    uri: str
    ordinal: int
    attempt: int
    read: Fingerprint
    sha256: str
    rows: int
    bad_rows: int
    outputs: tuple[Output, ...]
    seconds: float
    worker: str
    tars: tuple[str, ...] = ()
    bad_rows_uri: str = ""
    missing: tuple[str, ...] = ()
    rows_read: int | None = None
    rows_filtered: int = 0
    facts: tuple[SegmentFacts, ...] = ()

    def to_bytes(self) -> bytes:
        """JSON text, keys sorted."""
        return json.dumps(plain(self), sort_keys=True, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes, what: str = "a receipt") -> Receipt:
        """Inverse of `to_bytes`.

        :param what: its address, for errors.
        :raises NeedsNewerRelease: it is of a format that this release does not know.
        :raises ValueError: the text is not a whole receipt (a torn or foreign object).
        """
        return structured(cls, read_json(data), what)


@dataclass(frozen=True, slots=True)
class Failure(Open):
    """Why one file could not be built in this attempt.

    :ivar code: short upper-case name, e.g. `UNREADABLE`, `CHANGED_DURING_READ`, `TYPE_MISMATCH`, `VANISHED`.
    :ivar reason: one line for people, naming line or column where known.
    """

    uri: str
    ordinal: int
    attempt: int
    code: str
    reason: str


FileResult = Receipt | Failure
"""What came of one file."""
