"""Why one file failed, as a code: what it means, what to do, and whether time alone may mend it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Code:
    """One code.

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
        "SPARK",
        "Spark's SQL could not run on it",
        "the reason is Spark's own; mend `transforms` or `filter`",
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
    Code(
        "UNSUPPORTED",
        "the segment writer cannot do a column",
        "[formats.md](guides/formats.md)",
    ),
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
