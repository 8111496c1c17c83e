"""Every class of error and every code of a failed file: what it means, and what to do.

docs/reference/errors.md is made of it. Tests hold it to the source: a class or a code that is missing here
fails them. Links are relative to that page.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Meaning(NamedTuple):
    """What is known of an error beforehand, in Markdown.

    :ivar means: what has happened.
    :ivar do: what to do about it.
    """

    means: str
    do: str


CLASSES: Final = {
    "SpecError": Meaning("a table spec is wrong; lists all of them", "`pinot-assets tables validate`"),
    "TypedWrong": Meaning("the command itself cannot be understood; exit code 2", "see its `--help`"),
    "SpecDrift": Meaning(
        "Pinot's schema or config is not the spec's; lists where",
        "`pinot-assets tables apply <table>`, or change the spec",
    ),
    "UnsupportedFeature": Meaning(
        "the segment writer cannot do it; names the column", "take it out, see [tables.md](../tables.md)"
    ),
    "SourceError": Meaning(
        "the source or the staging area does not answer, or refuses",
        "mount it, check address and credentials, run again",
    ),
    "ListingFailed": Meaning(
        "the source could not be listed completely, or is suddenly empty or gone",
        "mount it, restore it; nothing was changed",
    ),
    "SourceChanged": Meaning("a file changed while it was read", "run again"),
    "StoreConflict": Meaning("another object stands at a staged name", "use a staging area of your own"),
    "StreamUnreadable": Meaning(
        "the stream of a REALTIME table cannot be asked from here",
        "as the text says; only checks that need it are not known",
    ),
    "BuildError": Meaning(
        "a file is not readable or does not fit the schema; names row and column",
        "repair or remove the file, run again",
    ),
    "PinotError": Meaning("Pinot refused a call", "as the text says"),
    "PinotUnreachable": Meaning(
        "no connection for one call, or no answer to a read; the text says what was done before it",
        "start Pinot, check the address, then type the command that the text names",
    ),
    "PinotNotFound": Meaning("table, schema or segment is not there", "`pinot-assets tables apply <table>`"),
    "PushRefused": Meaning(
        "Pinot refused an upload (quota, unreachable staging area, …)", "as the text says"
    ),
    "SwitchConflict": Meaning(
        "the lineage does not allow it now: a foreign replacement, a segment that has gone, a table that "
        "cannot be emptied",
        "run again; for a foreign entry, let its owner end or revert it",
    ),
    "SwitchStateUnknown": Meaning(
        "a call may or may not have happened, or a broker lags; the text says what was done before it",
        "run again: it reads the lineage and finishes",
    ),
    "SnapshotIncomplete": Meaning(
        "the gate is shut: files failed, or the audit did not pass", "repair the files it names, run again"
    ),
    "PreflightRefused": Meaning(
        "a REALTIME table's config is not changed; lists every rule that refuses, with its fix",
        "as the fixes say; `pinot-assets realtime preflight <table>`",
    ),
    "SessionError": Meaning(
        "stored state does not allow what was asked (ZooKeeper away, a segment that does not say what it "
        "holds, a switch that somebody reverted in Pinot, …)",
        "as the text says",
    ),
    "SessionHeld": Meaning(
        "another run works on the table; names it", "wait. A dead one lets go within 30 s"
    ),
    "LeaseLost": Meaning(
        "this run was replaced, lost ZooKeeper for more than 30 s, or came no further and was ended "
        "([limits](configuration.md#limits): `PINOT_ASSETS_STALL_MINUTES`)",
        "run again",
    ),
    "SnapshotCorrupt": Meaning(
        "an object that ZooKeeper names is missing or changed",
        "restore that object from a backup; nothing is published until then",
    ),
    "PlanOutdated": Meaning(
        "the world is no longer what the plan was made of; nothing was done", "make a new plan"
    ),
    "RollbackRefused": Meaning(
        "neither way back is open; says why for both", "put the former files back and run"
    ),
    "LocalStackError": Meaning(
        "the local stack; see [local-stack.md](../local-stack.md)", "`pinot-assets doctor`"
    ),
    "PinotAssetsError": Meaning(
        "a setting is missing, or two contradict",
        "as the text says; [deploy.md](../deploy.md#environment)",
    ),
}
"""By the name of the class, in the order of `errors`."""

CODES: Final = {
    "UNREADABLE": Meaning(
        "no file of its format, torn, or packed otherwise than its name says",
        "deliver it again, or remove it",
    ),
    "TYPE_MISMATCH": Meaning(
        "a value does not fit its column; names row, column, value", "repair it; or change the schema"
    ),
    "COLUMN_MISSING": Meaning(
        "it lacks a column of the table, and the spec does not allow that",
        "deliver it whole; or `onMissingColumn: null`",
    ),
    "TOO_MANY_BAD_ROWS": Meaning(
        "more bad rows than the table spec puts up with", "look at the Parquet file with the rows put aside"
    ),
    "TIMESTAMP_STRING_ZONE_DEPENDENT": Meaning(
        "a time without zone would mean something else on another machine",
        "write it with a zone, or as a number",
    ),
    "READER_SETTINGS": Meaning(
        "the reader's settings do not fit the file",
        "[formats.md](../guides/formats.md), [tables.md](../tables.md)",
    ),
    "CHANGED_DURING_READ": Meaning(
        "it was rewritten while it was read", "run again; set `minFileAgeSec` if it happens often"
    ),
    "EXPRESSION": Meaning(
        "a transform or filter of the table config cannot be computed for it",
        "mend the expression, or the value it names",
    ),
    "SPARK": Meaning(
        "Spark's SQL could not run on it", "the reason is Spark's own; mend `transforms` or `filter`"
    ),
    "NOT_PUBLISHED": Meaning(
        "Pinot did not take its segments (plain push)", "as its reason says; the others are published"
    ),
    "VANISHED": Meaning("it was listed and then gone", "run again"),
    "AUDIT": Meaning(
        "its segments are not what was built", "run again: it is built anew; if it lasts, the servers' disks"
    ),
    "STORE": Meaning("source or staging area did not answer", "run again"),
    "STAGING_CONFLICT": Meaning("another object stands at its name", "use a staging area of your own"),
    "UNSUPPORTED": Meaning("the segment writer cannot do a column", "[formats.md](../guides/formats.md)"),
    "BUILD": Meaning(
        "the build broke, and says why", "as its reason says; report what does not explain itself"
    ),
    "INTERNAL": Meaning(
        "the build broke in a way that is a fault of this project", "report it, with the run's log"
    ),
}
"""By the code that a failed file has."""
