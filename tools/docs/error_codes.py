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
    "SpecError": Meaning(
        "table specs are wrong; the message lists all problems", "`pinot-assets tables validate`"
    ),
    "TypedWrong": Meaning("the command was typed wrong; exit code 2", "see its `--help`"),
    "SpecDrift": Meaning(
        "Pinot's schema or config differs from the spec; the message lists where",
        "`pinot-assets tables apply <table>`, or change the spec",
    ),
    "UnsupportedFeature": Meaning(
        "the segment writer does not have a feature; the message names the column",
        "remove it, see [tables.md](../tables.md)",
    ),
    "SourceError": Meaning(
        "the source or the staging area does not answer, or refuses",
        "mount it, check address and credentials, run again",
    ),
    "SettingError": Meaning(
        "a setting of the source or the staging area is wrong, missing on a machine, or not allowed",
        "set it as the message says, on every machine that it names, and run again",
    ),
    "ListingFailed": Meaning(
        "the source could not be listed completely, or is suddenly empty or missing",
        "mount or restore it; nothing was changed",
    ),
    "SourceChanged": Meaning("a file changed while it was read", "run again"),
    "StoreConflict": Meaning(
        "another object already has a staged name", "use a staging area that nothing else writes to"
    ),
    "TooLarge": Meaning(
        "an answer or an object is larger than its limit, which the message names",
        "find out what wrote it; or raise the [limit](configuration.md#limits) that the message names",
    ),
    "StreamUnreadable": Meaning(
        "this machine cannot read the stream of a REALTIME table",
        "do what the message says; only the checks that need the stream are not known",
    ),
    "BuildError": Meaning(
        "a file cannot be read or does not fit the schema; the message names row and column",
        "correct or remove the file, run again",
    ),
    "PinotError": Meaning("Pinot refused a call", "do what the message says"),
    "PinotUnreachable": Meaning(
        "no connection for one call, or no answer to a read; the message says what was done before",
        "start Pinot, check the address, then type the command that the message names",
    ),
    "PinotNotFound": Meaning(
        "a table, schema or segment does not exist", "`pinot-assets tables apply <table>`"
    ),
    "PushRefused": Meaning(
        "Pinot refused an upload (quota, unreachable staging area, …)", "do what the message says"
    ),
    "SwitchConflict": Meaning(
        "the lineage does not allow the switch now: another program's replacement, a missing segment, a "
        "table that cannot be emptied",
        "run again; if the entry is not of pinot-assets, ask its owner to end or revert it",
    ),
    "SwitchStateUnknown": Meaning(
        "a call may or may not have happened, or a broker lags; the message says what was done before",
        "run again: the run reads the lineage and finishes",
    ),
    "SnapshotIncomplete": Meaning(
        "the gate is shut: files failed, or the audit did not pass",
        "correct the files that it names, run again",
    ),
    "PreflightRefused": Meaning(
        "a REALTIME table's config is not changed; the message lists every rule that refuses, with its fix",
        "do what the fixes say; `pinot-assets realtime preflight <table>`",
    ),
    "SessionError": Meaning(
        "the stored state does not allow the command (ZooKeeper does not answer, a segment does not name its "
        "file, somebody reverted a switch in Pinot, a [restored "
        "backup](../operations.md#backup-and-restore), …)",
        "do what the message says",
    ),
    "SessionHeld": Meaning(
        "another run works on the table; the message names it",
        "wait. A dead run loses the lease within 30 s",
    ),
    "LeaseLost": Meaning(
        "this run was replaced, lost ZooKeeper for more than 30 s, or made no progress and was ended "
        "([limits](configuration.md#limits): `PINOT_ASSETS_STALL_MINUTES`)",
        "run again",
    ),
    "NeedsNewerRelease": Meaning(
        "stored state has a format that this release does not know; the message names the object and the "
        "release that it needs",
        "upgrade this installation, see [upgrading](../upgrading.md)",
    ),
    "SnapshotCorrupt": Meaning(
        "an object that ZooKeeper names is missing or changed",
        "restore that object from a backup; nothing is published until then. If it is lost for good: "
        "`pinot-assets session rebuild <table>`",
    ),
    "NodeUnreadable": Meaning(
        "a node of ZooKeeper cannot be read; the message names it",
        "do what the message says; [what is stored where](../operations.md)",
    ),
    "PlanOutdated": Meaning(
        "something has changed since the plan was made; nothing was done", "make a new plan"
    ),
    "ForgetRefused": Meaning(
        "`pinot-assets forget` met an open session, an unfinished switch, or segments in no snapshot; "
        "exit code 2",
        "type the command that it names, then `pinot-assets forget` again",
    ),
    "RollbackRefused": Meaning(
        "neither a revert nor a re-publish is possible; the message says why for both",
        "put the former files back and run",
    ),
    "RebuildRefused": Meaning(
        "published files of the table cannot be built again; the message says why",
        "do what the message says; [changes.md](../guides/changes.md)",
    ),
    "LocalStackError": Meaning(
        "the local stack failed; see [local-stack.md](../local-stack.md)", "`pinot-assets doctor`"
    ),
    "PinotAssetsError": Meaning(
        "a setting is missing, or two contradict",
        "do what the message says; [deploy.md](../deploy.md#environment)",
    ),
}
"""Meanings by the name of the class, in the order of `errors`."""

_OF_FILE: Final = "see its [code](#codes-of-failed-files)"

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
        "see Spark's UI or log; what is built is kept, and the next run continues",
    ),
    "ingest.spark.query.ExpressionFailed": Meaning("`EXPRESSION`", _OF_FILE),
    "ingest.contract.failures.Vanished": Meaning("`VANISHED`", _OF_FILE),
    "ingest.contract.failures.BecameFolder": Meaning("`BECAME_FOLDER`", _OF_FILE),
    "sizing.quantities.QuantityError": Meaning(
        "a quantity in a command cannot be read, or makes no sense", "see `--help` of the command"
    ),
    "sizing.load.LoadError": Meaning(
        "a simulated cluster cannot work: too few servers, more messages than can be read",
        "do what the message says",
    ),
    "pinot.client.user_rights.NoRights": Meaning(
        "Pinot does not know the user of a call, or the user may not make it (401 or 403)",
        "set PINOT_USER and PINOT_PASSWORD, or PINOT_TOKEN; give that user the right that the hint names",
    ),
    "pinot.client.http.NotReady": Meaning(
        "the address answered 503: Pinot, or a gateway before it, does not serve yet", "wait, run again"
    ),
    "pinot.client.http.UploadFailed": Meaning(
        "Pinot tried to store a segment and failed (deep store, staging area)",
        "read the controller's log, check its deep store, run again",
    ),
    "pinot.client.http.CutOff": Meaning(
        "the connection broke during a call, which may or may not have happened", "run again"
    ),
    "pinot.client.http.NoConnection": Meaning(
        "no connection to the address could be made, so nothing was sent",
        "start Pinot or check the address, run again",
    ),
    "pinot.client.broker_answer.NoResult": Meaning(
        "a broker gave no result: the table is empty, or has no routing yet", "run again"
    ),
    "sensors.notice.NoticeRefused": Meaning(
        "the webhook is up and will never accept this notice",
        "correct its [address](configuration.md), or the program that listens there",
    ),
}
"""Meanings of subclasses of these classes, by module (below `pinot_assets`) and name."""

CODES: Final = {
    code.name: Meaning(code.means, code.advice.replace("](", "](../")) for code in receipt.CODES.values()
}
"""Meanings by the code of a failed file; links are relative to docs/reference."""
