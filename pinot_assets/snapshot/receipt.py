"""What became of one file: the receipt of one that was built, or the failure of one that was not.

A receipt is written by the task after its tars, so a file is done when, and only when, its receipt exists
(docs/design/session.md#receipt). A failure has a code, which says what to do. Each names the version of the
file that was read, its fingerprint: what a listing says about one file, and when two such sayings mean the
same content. The fingerprint wakes, content decides (edge case E3).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.stored_format import Open, Stored, plain, structured
from pinot_assets.core.untrusted import read_json


@dataclass(frozen=True, slots=True)
class Code:
    """Why a file was not built, in a word that stays the same.

    :ivar name: what `Failure.code` says.
    :ivar means: what happened to the file.
    :ivar advice: what to do.
    :ivar transient: whether the next try may succeed though nobody changed anything.
    """

    name: str
    means: str
    advice: str
    transient: bool = False


OUT_OF_MEMORY: Final = "OUT_OF_MEMORY"
WORKER_DIED: Final = "WORKER_DIED"
MACHINE: Final = "MACHINE"
BECAME_FOLDER: Final = "BECAME_FOLDER"

_ALL: Final = (
    Code(
        "UNREADABLE",
        "it is not a file of its format, it is cut off, or its compression is not the one in its name",
        "deliver it again, or remove it",
    ),
    Code(
        "TYPE_MISMATCH",
        "a value does not fit its column; names row, column, value",
        "repair it; or change the schema",
    ),
    Code(
        "COLUMN_MISSING",
        "it lacks a column of the table, and the spec does not allow that",
        "deliver it whole; or `onMissingColumn: null`",
    ),
    Code(
        "TOO_MANY_BAD_ROWS",
        "it has more bad rows than the table spec allows",
        "look at the bad rows: they are in a Parquet file of their own",
    ),
    Code(
        "TIMESTAMP_STRING_ZONE_DEPENDENT",
        "a time without zone would mean something else on another machine",
        "write it with a zone, or as a number",
    ),
    Code(
        "READER_SETTINGS",
        "the reader's settings do not fit the file",
        "[formats.md](guides/formats.md), [tables.md](tables.md)",
    ),
    Code(
        "TOO_LARGE",
        "it has more of something than a worker reads; names the limit",
        "write smaller files, rows or values, or raise the limit that the message names",
    ),
    Code(
        OUT_OF_MEMORY,
        "its worker had too little memory for it; the file itself may be fine",
        "fewer rows per segment (`desiredSegmentSize`, `maxNumRecordsPerSegment`), or more memory a worker",
        transient=True,
    ),
    Code(
        WORKER_DIED,
        "the process that built it died, also when it built this file alone",
        "look at the file and at the worker's log; report it if the file is a valid one",
    ),
    Code(
        MACHINE,
        "the worker's machine failed: a full or broken disk, or too many open files or threads",
        "mend the machine that the message names; it is tried again",
        transient=True,
    ),
    Code(
        BECAME_FOLDER,
        "a published file is a folder now, or a prefix of other objects; its rows stay published",
        "move the folder, or deliver the file again; to drop its rows, remove the folder, too",
    ),
    Code(
        "CHANGED_DURING_READ",
        "it was rewritten while it was read",
        "it is tried again; set `minFileAgeSec` if it happens often",
        transient=True,
    ),
    Code(
        "EXPRESSION",
        "a transform or filter of the table config cannot be computed for it",
        "mend the expression, or the value it names",
    ),
    Code(
        "SPARK", "Spark's SQL could not run on it", "the reason is Spark's own; mend `transforms` or `filter`"
    ),
    Code(
        "NOT_PUBLISHED",
        "Pinot did not take its segments (plain push)",
        "as its reason says; the others are published",
    ),
    Code("VANISHED", "it was listed and then gone", "it is tried again with a new listing", transient=True),
    Code(
        "AUDIT",
        "its segments are not what was built",
        "run again: it is built anew; if it lasts, the servers' disks",
    ),
    Code("STORE", "source or staging area did not answer", "it is tried again", transient=True),
    Code(
        "SETTINGS",
        "a setting of the source or the staging area is wrong, missing on the worker, or not allowed",
        "set it as the reason says, where Spark's executors run too, and run again",
    ),
    Code(
        "STAGING_CONFLICT",
        "the staging area already holds another object of that name",
        "use a staging area of your own",
    ),
    Code("UNSUPPORTED", "the segment writer cannot do a column", "[formats.md](guides/formats.md)"),
    Code("BUILD", "the build failed for an unknown reason", "report it, with the run's log"),
    Code("INTERNAL", "the build failed because of a bug in pinot-assets", "report it, with the run's log"),
    Code("REJECTED", "it cannot be used, for the reason that the message gives", "as the message says"),
)

CODES: Final[Mapping[str, Code]] = {code.name: code for code in _ALL}
"""Every code that a file can fail with, by its name."""


def is_transient(code: str) -> bool:
    """Whether the next try of a file may succeed though nobody changed anything.

    :param code: `Failure.code`; one that a newer release wrote is not.
    """
    known = CODES.get(code)
    return known is not None and known.transient


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
