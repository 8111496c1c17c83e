"""The result of one file's build: a receipt if the file was built, or a failure if it was not.

The task writes the receipt after the tars. So a file is built if, and only if, its receipt exists
(docs/design/session.md#receipt). A failure has a code, which decides what to do. A receipt names the
version of the file that was read by its fingerprint: what a listing shows of one file. Equal fingerprints
mean the same content. If they differ, the contents are compared, and they decide (edge case E3).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.stored_format import WITH_PACKS, Open, Stored, added, plain, structured
from pinot_assets.core.untrusted import read_json


@dataclass(frozen=True, slots=True)
class Code:
    """Why a file was not built, as a name that never changes.

    :ivar name: the value of `Failure.code`.
    :ivar means: what happened to the file.
    :ivar advice: what to do.
    :ivar transient: whether the next try may succeed although nothing was changed.
    """

    name: str
    means: str
    advice: str
    transient: bool = False


PACKS: Final = "packs"
"""The folder of member lists in the staging area."""

OUT_OF_MEMORY: Final = "OUT_OF_MEMORY"
WORKER_DIED: Final = "WORKER_DIED"
MACHINE: Final = "MACHINE"
BECAME_FOLDER: Final = "BECAME_FOLDER"

_ALL: Final = (
    Code(
        "UNREADABLE",
        "it is not a file of its format, it is incomplete, or its compression is not the one in its name",
        "deliver it again, or remove it",
    ),
    Code(
        "TYPE_MISMATCH",
        "a value does not fit its column; the message names row, column and value",
        "correct it, or change the schema",
    ),
    Code(
        "COLUMN_MISSING",
        "it lacks a column of the table, and the spec does not allow that",
        "deliver it complete; or set `onMissingColumn: null`",
    ),
    Code(
        "TOO_MANY_BAD_ROWS",
        "it has more bad rows than the table spec allows",
        "look at the bad rows: they are in their own Parquet file",
    ),
    Code(
        "TIMESTAMP_STRING_ZONE_DEPENDENT",
        "a time without a zone would mean different times on different machines",
        "write it with a zone, or as a number",
    ),
    Code(
        "READER_SETTINGS",
        "the reader's settings do not fit the file",
        "[formats.md](guides/formats.md), [tables.md](tables.md)",
    ),
    Code(
        "TOO_LARGE",
        "it has more of something than a worker reads; the message names the limit",
        "write smaller files, rows or values, or raise the limit that the message names",
    ),
    Code(
        OUT_OF_MEMORY,
        "its worker had too little memory for it; the file itself may be fine",
        "set fewer rows per segment (`desiredSegmentSize`, `maxNumRecordsPerSegment`), or more "
        "memory for a worker",
        transient=True,
    ),
    Code(
        WORKER_DIED,
        "the process that built it died, also when it built this file alone",
        "check the file and the worker's log; report it if the file is a valid one",
    ),
    Code(
        MACHINE,
        "the worker's machine failed: a full or broken disk, or too many open files or threads",
        "repair the machine that the message names; the next run tries the file again",
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
        "the next run tries it again; set `minFileAgeSec` if it happens often",
        transient=True,
    ),
    Code(
        "EXPRESSION",
        "a transform or filter of the table config cannot be computed for it",
        "correct the expression, or the value that it names",
    ),
    Code(
        "SPARK",
        "Spark's SQL could not run on it",
        "the message gives Spark's reason; correct `transforms` or `filter`",
    ),
    Code(
        "NOT_PUBLISHED",
        "Pinot did not accept its segments (plain push)",
        "do what the message says; the other files are published",
    ),
    Code(
        "VANISHED",
        "it was listed, and deleted before it was read",
        "the next run tries it again with a new listing",
        transient=True,
    ),
    Code(
        "AUDIT",
        "its segments are not what was built",
        "run again: it is built again; if it fails again, check the servers' disks",
    ),
    Code("STORE", "source or staging area did not answer", "the next run tries it again", transient=True),
    Code(
        "SETTINGS",
        "a setting of the source or the staging area is wrong, missing on the worker, or not allowed",
        "set it as the message says, also where Spark's executors run, and run again",
    ),
    Code(
        "STAGING_CONFLICT",
        "the staging area already has another object of that name",
        "use a staging area that nothing else writes to",
    ),
    Code("UNSUPPORTED", "the segment writer cannot do a column", "[formats.md](guides/formats.md)"),
    Code("BUILD", "the build failed for an unknown reason", "report it, with the run's log"),
    Code("INTERNAL", "the build failed because of a bug in pinot-assets", "report it, with the run's log"),
    Code("REJECTED", "it cannot be used, for the reason that the message gives", "do what the message says"),
)

CODES: Final[Mapping[str, Code]] = {code.name: code for code in _ALL}
"""Every code with which a file can fail, by its name."""


def is_of_machine(code: str) -> bool:
    """Whether a worker, its memory or its machine failed, and not what it read."""
    return code in (OUT_OF_MEMORY, WORKER_DIED, MACHINE)


def is_transient(code: str) -> bool:
    """Whether the next try of a file may succeed although nothing was changed.

    :param code: `Failure.code`; False for a code of a newer release.
    """
    known = CODES.get(code)
    return known is not None and known.transient


@dataclass(frozen=True, slots=True)
class Fingerprint(Open):
    """The version of one file as its store reports it.

    :ivar size: bytes.
    :ivar mtime_us: last modification in microseconds since the epoch, by the store's clock; compared
        for equality (edge case E28), and for age only if `minFileAgeSec` needs it. On S3 whole seconds,
        because a HEAD has no more.
    :ivar etag: the store's entity tag without quotes, None on a local disk.
    :ivar version_id: the object version on a versioned bucket, else None. For people only: a HEAD has
        it and a listing does not, so it is ignored by equality and by `token`.
    """

    size: int
    mtime_us: int
    etag: str | None = None
    version_id: str | None = field(default=None, compare=False)

    @property
    def token(self) -> str:
        """Return the version token: twelve hex digits that name this version in receipts and plans."""
        text = json.dumps({"size": self.size, "mtime_us": self.mtime_us, "etag": self.etag}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_json(self) -> JsonObject:
        """Return plain values: the columns of a plan and of a snapshot."""
        return {
            "size": self.size,
            "mtime_us": self.mtime_us,
            "etag": self.etag,
            "version_id": self.version_id,
        }

    @classmethod
    def of_row(cls, row: JsonMapping) -> Fingerprint:
        """Return the fingerprint in a row with these columns."""
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
    :ivar tar_uri: URI of the tar.gz in the staging area.
    :ivar tar_bytes: size of the tar.gz.
    :ivar tar_sha256: hex digest of the tar.gz.
    :ivar metadata_uri: URI of the small tar for a metadata push (`creation.meta`,
        `metadata.properties` in a directory).
    :ivar start_ms: smallest time value in epoch milliseconds, None without a time column.
    :ivar end_ms: largest time value, None without a time column.
    :ivar unpacked_bytes: size of the segment's files, which count on a server's disk and in Pinot's quota
        (indexes that the server adds are extra); 0 if a release before this field built it.
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
        """Return the bytes that a server needs at least: unpacked, or the tar's if that is unknown."""
        return self.unpacked_bytes or self.tar_bytes


class ColumnFacts(NamedTuple):
    """One column in a segment's metadata.

    :ivar low: smallest value as the metadata have it, None if they have none; a text is cut.
    :ivar high: largest value, in the same way.
    """

    name: str
    data_type: str
    low: str | None
    high: str | None


class SegmentFacts(NamedTuple):
    """A segment's metadata, read back from the written bytes."""

    rows: int
    columns: tuple[ColumnFacts, ...]


class RowsChunk(NamedTuple):
    """Rows of one cell in a rows object: a Parquet file of its own among the object's bytes.

    :ivar cell: see `segment/values/cells.py`; "" for a table without cells.
    :ivar rows_object: hex digest of the object.
    :ivar offset: its first byte there, from 0.
    :ivar length: its bytes; 0 for the whole object.
    :ivar crc: CRC-32 of them: the object's hash cannot be checked by who reads a part.
    """

    cell: str
    rows_object: str
    offset: int = 0
    length: int = 0
    crc: int = 0


class FilePiece(NamedTuple):
    """Rows of one file that lie together.

    :ivar first: position of the first of them in the chunk, from 0.
    """

    chunk: RowsChunk
    first: int
    rows: int


@dataclass(frozen=True, slots=True)
class Receipt(Stored):
    """The record of a task that built one file.

    :ivar uri: the source file.
    :ivar ordinal: the file's number in its session, never reused (rule R16).
    :ivar attempt: the attempt that built it; part of the segment names.
    :ivar read: the version that was read (not necessarily the one planned, rule R12).
    :ivar sha256: hex digest of the file's bytes as read.
    :ivar rows: published rows; 0 means that the file is empty: built, without outputs (edge case E5).
    :ivar bad_rows: rows that were put aside, 0 unless the table spec allows that.
    :ivar outputs: the segments, in order.
    :ivar seconds: wall time of the task.
    :ivar worker: `host/pid` of the executor's Python worker.
    :ivar tars: version token of each output's tar, as the staging area showed it; as long as it shows the
        same, the content need not be read again (rule R12).
    :ivar bad_rows_uri: Parquet file with the rows that were put aside, and why; empty without any.
    :ivar missing: columns of the table without a value in all rows: the file lacks them, or they are null
        in every row (earlier releases named only those that the file lacks).
    :ivar rows_read: rows of the file as its reader counted them (the footer's number, if there is one);
        None if there is no count: from a release before this field, or from Spark over text with a filter.
    :ivar rows_filtered: how many of them the table spec's filter left out.
    :ivar facts: facts of each output, in their order; empty if a release before this field built it.
    :ivar rows_object: hex digest of the rows object that has its rows, which then are in no output; "" for
        any other file, for a pack, and with cells.
    :ivar first: position of its first row there, from 0.
    :ivar pieces: where its rows are, in a table with cells; `places` says it for each table.
    :ivar segment_bytes: about how many bytes these rows will have in a segment, unpacked.
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
    rows_object: str = field(default="", metadata=added(WITH_PACKS))
    first: int = field(default=0, metadata=added(WITH_PACKS))
    segment_bytes: int = field(default=0, metadata=added(WITH_PACKS))
    pieces: tuple[FilePiece, ...] = field(default=(), metadata=added(WITH_PACKS))

    @property
    def places(self) -> tuple[FilePiece, ...]:
        """Return where its rows are kept for packs; none for a file with segments of its own."""
        if self.rows_object:
            return (FilePiece(RowsChunk("", self.rows_object), self.first, self.rows),)
        return self.pieces

    @property
    def is_placed(self) -> bool:
        """Whether its rows can be where it says; an object that was read may say anything."""
        counts = [(piece.rows, piece.first, *piece.chunk[2:]) for piece in self.places]
        return all(rows > 0 and min(at) >= 0 for rows, *at in counts) and (
            not counts or (not self.outputs and sum(rows for rows, *_ in counts) == self.rows)
        )

    @property
    def rows_objects(self) -> tuple[str, ...]:
        """Return the digests of the rows objects that have its rows."""
        return tuple(dict.fromkeys(piece.chunk.rows_object for piece in self.places))

    @property
    def is_pack(self) -> bool:
        """Whether it is of a pack: then `uri` is the key of a member list, and its rows are those of files
        that have receipts of their own."""
        return self.uri.startswith(f"{PACKS}/")

    def to_bytes(self) -> bytes:
        """Return JSON text with sorted keys."""
        return json.dumps(plain(self), sort_keys=True, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes, what: str = "a receipt") -> Receipt:
        """Read what `to_bytes` wrote.

        :param what: its address, for errors.
        :raises NeedsNewerRelease: its format is unknown to this release.
        :raises ValueError: the text is not a complete receipt (a torn or foreign object).
        """
        return structured(cls, read_json(data), what)


@dataclass(frozen=True, slots=True)
class Failure(Open):
    """Why one file could not be built in this attempt.

    :ivar code: short upper-case name, e.g. `UNREADABLE`, `CHANGED_DURING_READ`, `TYPE_MISMATCH`, `VANISHED`.
    :ivar reason: one line for people, with the line or column if known.
    """

    uri: str
    ordinal: int
    attempt: int
    code: str
    reason: str


FileResult = Receipt | Failure
"""The result of one file's build."""
