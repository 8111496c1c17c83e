"""The meaning of every class of error and of every code of a failed file, and what to do.

docs/reference/errors.md is generated from this. Tests compare it with the source: they fail if a class or a
code is missing here. Links are relative to that page.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pinot_assets.snapshot import receipt


class Meaning(NamedTuple):
    """The explanation of an error, in Markdown.

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
    "SettingError": Meaning(
        "a setting of the source or the staging area is wrong, missing on a machine, or not allowed",
        "set it as the text says, on every machine that it names, and run again",
    ),
    "ListingFailed": Meaning(
        "the source could not be listed completely, or is suddenly empty or gone",
        "mount it, restore it; nothing was changed",
    ),
    "SourceChanged": Meaning("a file changed while it was read", "run again"),
    "StoreConflict": Meaning("another object stands at a staged name", "use a staging area of your own"),
    "TooLarge": Meaning(
        "an answer or an object is larger than what is read of its kind; names the limit",
        "find out what wrote it; or raise the [limit](configuration.md#limits) that the message names",
    ),
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
        "holds, a switch that somebody reverted in Pinot, a [restored "
        "backup](../operations.md#backup-and-restore), …)",
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
    "NeedsNewerRelease": Meaning(
        "stored state is of a format that this release does not know; names the object and the release that "
        "it needs",
        "upgrade this installation, see [upgrading](../upgrading.md)",
    ),
    "SnapshotCorrupt": Meaning(
        "an object that ZooKeeper names is missing or changed",
        "restore that object from a backup; nothing is published until then. Lost for good: "
        "`pinot-assets session rebuild <table>`",
    ),
    "NodeUnreadable": Meaning(
        "a node of ZooKeeper cannot be read; names it",
        "as the text says; [what is stored where](../operations.md)",
    ),
    "PlanOutdated": Meaning(
        "the world is no longer what the plan was made of; nothing was done", "make a new plan"
    ),
    "ForgetRefused": Meaning(
        "`pinot-assets forget` met an open session, an unfinished switch, or segments that no snapshot "
        "knows; exit code 2",
        "type the command that it names, then `pinot-assets forget` again",
    ),
    "RollbackRefused": Meaning(
        "neither way back is open; says why for both", "put the former files back and run"
    ),
    "LocalStackError": Meaning(
        "the local stack; see [local-stack.md](../local-stack.md)", "`pinot-assets doctor`"
    ),
    "PinotAssetsError": Meaning(
        "a setting is missing, or two contradict", "as the text says; [deploy.md](../deploy.md#environment)"
    ),
}
"""Meanings by the name of the class, in the order of `errors`."""

_OF_FILE: Final = "as its [code](#codes-of-failed-files) says"

KINDS: Final = {
    "core.file_errors.FileRejected": Meaning("one file cannot be used; base of the next ones", _OF_FILE),
    "core.file_errors.Unreadable": Meaning("`UNREADABLE`", _OF_FILE),
    "core.file_errors.FileTooLarge": Meaning("`TOO_LARGE`", _OF_FILE),
    "core.file_errors.TypeMismatch": Meaning("`TYPE_MISMATCH`", _OF_FILE),
    "core.file_errors.ZoneMissing": Meaning("`TIMESTAMP_STRING_ZONE_DEPENDENT`", _OF_FILE),
    "core.file_errors.ColumnMissing": Meaning("`COLUMN_MISSING`", _OF_FILE),
    "core.file_errors.TooManyBadRows": Meaning("`TOO_MANY_BAD_ROWS`", _OF_FILE),
    "core.file_errors.ReaderSettings": Meaning("`READER_SETTINGS`", _OF_FILE),
    "ingest.spark.tasks.SparkFailed": Meaning("`SPARK`", _OF_FILE),
    "ingest.spark.file_jobs.SparkEnded": Meaning(
        "Spark's JVM died, or its cluster ended the application, again and again",
        "see Spark's UI or log; what is built stays, and the next run goes on",
    ),
    "ingest.spark.query.ExpressionFailed": Meaning("`EXPRESSION`", _OF_FILE),
    "ingest.contract.failures.Vanished": Meaning("`VANISHED`", _OF_FILE),
    "ingest.contract.failures.BecameFolder": Meaning("`BECAME_FOLDER`", _OF_FILE),
    "sizing.quantities.QuantityError": Meaning(
        "a quantity that was typed cannot be read, or makes no sense", "see `--help` of the command"
    ),
    "sizing.load.LoadError": Meaning(
        "a simulated cluster cannot be: too few servers, more messages than can be read", "as the text says"
    ),
    "pinot.client.http.NotReady": Meaning(
        "the address answered 503: Pinot does not serve yet, or a gateway before it", "wait, run again"
    ),
    "pinot.client.http.UploadFailed": Meaning(
        "Pinot tried to store a segment and failed (deep store, staging area)",
        "look at the controller's log and its deep store, run again",
    ),
    "pinot.client.http.CutOff": Meaning(
        "the connection broke while a call was under way; it may or may not have happened", "run again"
    ),
    "pinot.client.http.NoConnection": Meaning(
        "no connection to the address could be made, so nothing was sent",
        "start Pinot or check the address, run again",
    ),
    "pinot.client.broker_answer.NoResult": Meaning(
        "a broker has nothing to ask: the table is empty, or has no routing yet", "run again"
    ),
    "sensors.notice.NoticeRefused": Meaning(
        "the webhook is up and will never take this notice",
        "correct its [address](configuration.md), or what listens there",
    ),
}
"""Meanings of subclasses of these classes, by module (below `pinot_assets`) and name."""

CODES: Final = {
    code.name: Meaning(code.means, code.advice.replace("](", "](../")) for code in receipt.CODES.values()
}
"""Meanings by the code of a failed file; links are relative to docs/reference."""
