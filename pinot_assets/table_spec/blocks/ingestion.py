"""The `fileIngestion` block: keys of StarTree's FileIngestionTask, spelled as there, and a few of our own.

Source: docs/tables.md#keys-of-fileingestion. Values may be texts, as in Pinot's task configs (`"true"`,
`"3"`).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from pinot_assets.core.json_object import JsonObject
from pinot_assets.expressions.spark import check_spark_expression
from pinot_assets.expressions.syntax import ExpressionRefused, words
from pinot_assets.segment.column.target import NEWEST, OLDEST
from pinot_assets.table_spec.yaml.quartz import to_cron
from pinot_assets.table_spec.yaml.values import (
    AUTO,
    AnyCase,
    BadRowLimit,
    Count,
    FileName,
    Flag,
    Location,
    PartitionGroup,
    Pattern,
    Positive,
    Props,
    Schedule,
    Server,
    Size,
    Text,
    Timezone,
    WriteFor,
    has_reference,
    malformed_reference,
    one_of,
    size_bytes,
    yaml_keys,
)

Mode = Literal["append", "sync", "swap"]
PushKind = Literal["consistent", "atomic", "plain"]
"""What becomes visible at one instant: all files of a session, those of one run, or one file."""

DEFAULT_MAX_ROWS: Final = 5_000_000
"""Pinot's own default for `maxNumRecordsPerSegment` in its segment processing framework."""

DEFAULT_SEGMENT_BYTES: Final = 128 << 20
"""Most memory of a segment's rows if the table spec says neither rows nor bytes: a worker then stays below
1.0 GB, whatever the number of columns (`make bench-memory`)."""

INPUT_PROP: Final = "input.fs.prop"
OUTPUT_PROP: Final = "output.fs.prop"
READER_PROP: Final = "recordReader.prop"
TRANSFORMS: Final = "transforms"
FILTER: Final = "filter"
FAMILIES: Final = (INPUT_PROP, OUTPUT_PROP, READER_PROP, TRANSFORMS)
"""Prefixes of many keys, such as `input.fs.prop.region`."""

CSV_READER_KEYS: Final = words(
    """
    commentMarker delimiter escapeCharacter fileFormat header ignoreEmptyLines ignoreSurroundingSpaces
    multiValueDelimiter multiValueDelimiterEnabled nullStringValue quoteCharacter quoteMode recordSeparator
    skipHeader skipUnParseableLines stopOnError
    """
)
"""Properties of upstream's CSVRecordReaderConfig, 0.11 and 1.5."""

SINGLE_CHARACTER: Final = frozenset(
    ("commentMarker", "delimiter", "escapeCharacter", "multiValueDelimiter", "quoteCharacter")
)
"""The reader properties whose value is one character."""

UNUSED_KEYS: Final = {
    "authToken": "the Pinot resource authenticates pushes",
    "checkpointTTLSec": "the ledger is the last snapshot; there are no checkpoints to expire",
    "hasDirectories": "pinot-assets recognises directories",
    "input.data.file.uri": "it belongs to one run of a Minion task",
    "input.fs.className": "the scheme of inputDirURI chooses the store",
    "maxNumAttemptsPerTask": "Spark retries tasks; consistentPushMaxRetries retries sessions",
    "numConcurrentTasksPerInstance": "Spark decides how many files are built at a time",
    "output.fs.className": "the scheme of output.segment.dir.uri chooses the store",
    "push.controllerUri": "the Pinot resource knows the controller",
    "recordReader.className": "inputFormat chooses the reader",
    "recordReader.configClassName": "inputFormat chooses the reader",
    "segmentNameGenerator.type": "the session names its segments",
    "segmentNamePostfix": "the session names its segments",
    "segmentNamePrefix": "the session names its segments, beginning with the table's name",
    "sequenceId": "it belongs to one run of a Minion task",
    "tableMaxNumTasks": "the builder makes the Spark tasks, and one session is one publication",
    "taskMaxDataSize": "the builder decides which files share a Spark task; each has its own segments",
    "taskMaxNumFiles": "the builder decides which files share a Spark task; each has its own segments",
    "timeoutMs": "Spark and the session have their own limits",
    "uploadURL": "the Pinot resource knows the controller",
}
"""Keys of StarTree that are accepted, and why they have no effect here."""


class FileIngestion(BaseModel):
    """How files become segments of one table.

    References to the environment are kept as they are written. Field names are this project's; the aliases
    are the keys in the YAML.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    input_dir_uri: Annotated[Location, Field(alias="inputDirURI")]
    """Folder of the files: file, s3, gs or abfss URI, or path relative to this file; ${TABLE_…} allowed."""
    input_format: Annotated[
        Literal["csv", "json", "parquet", "avro", "orc"], AnyCase(), Field(alias="inputFormat")
    ]
    """Format of every file; gzip, bzip2 and zstd are recognised by the content."""
    include: Annotated[Pattern | None, Field(alias="includeFileNamePattern")] = None
    """Files to read, in Java path-matcher syntax: glob:**/*.csv.gz."""
    exclude: Annotated[Pattern | None, Field(alias="excludeFileNamePattern")] = None
    """Files to leave out, in Java path-matcher syntax."""
    input_props: Annotated[Props, Field(alias=INPUT_PROP)] = {}
    """How to reach the input; secrets as ${TABLE_…} only."""
    staging_uri: Annotated[Location, Field(alias="output.segment.dir.uri")]
    """Staging area for built segments and receipts, outside inputDirURI and outside Pinot's data."""
    output_props: Annotated[Props, Field(alias=OUTPUT_PROP)] = {}
    """How to reach the staging area; secrets as ${TABLE_…} only."""

    ingestion_mode: Annotated[Literal["append", "sync"], AnyCase(), Field(alias="ingestionMode")] = "append"
    """append adds new and rewritten files; sync also replaces rewritten and removes deleted ones."""
    consistent_push: Annotated[Flag, Field(alias="consistentPushEnabled")] = False
    """Publish all files of a session together; without it, queries see each file when it is pushed."""
    consistent_push_swap: Annotated[Flag, Field(alias="consistentPushSwapEnabled")] = False
    """Replace the whole table by the files that the source has now, at one instant."""
    max_retries: Annotated[Count, Field(alias="consistentPushMaxRetries")] = 0
    """How many later triggers may continue a failed session before it starts over."""
    clear_state: Annotated[Flag, Field(alias="clearConsistentPushState")] = False
    """Drop the unpublished session, once per change of this value to true."""
    atomic_upload: Annotated[Flag, Field(alias="enableAtomicUpload")] = False
    """StarTree's older switch for sync mode: a run publishes all of its files, or none and starts over."""

    schedule: Schedule | None = None
    """Quartz cron with seconds: 0 */30 * * * ?."""
    push_mode: Annotated[
        Literal["TAR", "METADATA"] | None,
        BeforeValidator(one_of("TAR", "METADATA")),
        WithJsonSchema({"enum": ["TAR", "METADATA", "tar", "metadata", "Tar", "Metadata"]}),
        Field(alias="push.mode"),
    ] = None
    """How segments are pushed; if left out, a run chooses what works."""
    skip_unreadable: Annotated[Flag, Field(alias="skipFileIfFailToInitReader")] = False
    """Publish without files that cannot be read. StarTree has this on; here only an explicit true counts."""
    max_rows_per_segment: Annotated[Positive, Field(alias="maxNumRecordsPerSegment")] = DEFAULT_MAX_ROWS
    """A file with more rows becomes several segments. If set, it replaces desiredSegmentSize's default."""
    desired_segment_size: Annotated[Size | None, Field(alias="desiredSegmentSize")] = None
    """About how much memory a segment's rows may need; default: 128m, none with maxNumRecordsPerSegment."""
    reader: Annotated[dict[str, str], Field(alias=READER_PROP)] = {}
    """Settings of the csv reader: delimiter, header, skipHeader, nullStringValue, …"""
    on_bad_row: Annotated[Literal["fail", "quarantine"], AnyCase(), Field(alias="onBadRow")] = "fail"
    """What happens to a row that cannot be read: its file fails, or a Parquet file gets the row."""
    max_bad_rows: Annotated[BadRowLimit, Field(alias="maxBadRows")] = "1%"
    """How many rows of one file may be put aside: 100, or 0.5% of them."""
    bad_row_days_to_keep: Annotated[Count, Field(alias="badRowDaysToKeep")] = 30
    """Rows that were put aside are kept for so many days; gc deletes older ones. 0 keeps none."""
    on_missing_column: Annotated[Literal["null", "fail"], AnyCase(), Field(alias="onMissingColumn")] = "null"
    """What happens if a file lacks a column: the column is null, or the file fails."""
    engine: Annotated[Literal["arrow", "spark"], AnyCase()] = "arrow"
    """What reads the files: the tasks themselves, or Spark's own readers, as transforms and filter need."""
    transforms: dict[str, str] = {}
    """Columns of the table as Spark SQL expressions of the file's columns: transforms.day: to_date(at)."""
    filter: Text = ""
    """Rows to keep, as a Spark SQL condition on the file's columns."""

    rollback_window: Annotated[
        Literal["keepUntilSwitch", "pinotDefault"],
        BeforeValidator(one_of("keepUntilSwitch", "pinotDefault")),
        WithJsonSchema({"enum": ["keepUntilSwitch", "pinotDefault"]}),
        Field(alias="rollbackWindow"),
    ] = "keepUntilSwitch"
    """How long Pinot keeps the previous snapshot: until the switch (room for three), or its start (two)."""
    snapshots_to_keep: Annotated[Positive | None, Field(alias="snapshotsToKeep")] = None
    """How many of the newest snapshots are kept, with their tars; if left out, all are."""
    snapshot_days_to_keep: Annotated[Positive | None, Field(alias="snapshotDaysToKeep")] = None
    """Snapshots younger than this are kept; with snapshotsToKeep, those that either setting keeps."""
    empty_source_action: Annotated[
        Literal["APPLY", "REFUSE"], AnyCase(), Field(alias="emptySourceAction")
    ] = "APPLY"
    """What to do when the source has no file any more: empty the table, or refuse."""
    on_spec_change: Annotated[Literal["ask", "rebuild"], AnyCase(), Field(alias="onSpecChange")] = "ask"
    """Published files that the changed spec would build otherwise: say so, or build them again."""
    write_for: Annotated[WriteFor, Field(alias="writeFor")] = AUTO
    """Release of the oldest Pinot server that must read the segments; auto: that of the table's servers."""
    min_server: Annotated[Server | None, Field(alias="minServer")] = None
    """The older name of writeFor."""
    min_file_age_sec: Annotated[Count, Field(alias="minFileAgeSec")] = 0
    """Files younger than this are not ready, and a rewritten one makes the whole trigger wait."""
    completeness_marker: Annotated[FileName | None, Field(alias="completenessMarker")] = None
    """Name of a file, e.g. _SUCCESS, without which a directory's files are not ready."""
    settle_seconds: Annotated[Count, Field(alias="settleSeconds")] = 0
    """How long a listing must not change before the files sensor starts a run."""
    notification_queue: Annotated[Location | None, Field(alias="notificationQueue")] = None
    """URL of an SQS queue with the bucket's notifications: a message makes the files sensor list."""
    sweep_seconds: Annotated[Positive, Field(alias="sweepSeconds")] = 900
    """With notificationQueue: the longest time between two listings when no message arrives."""
    sensor_retries: Annotated[Flag, Field(alias="sensorRetries")] = False
    """Whether the files sensor may spend a retry of a failed session."""
    schedule_timezone: Annotated[Timezone, Field(alias="scheduleTimezone")] = "UTC"
    """Time zone of schedule, such as Europe/Berlin."""
    max_file_partitions: Annotated[Positive, Field(alias="maxFilePartitions")] = 2000
    """Up to this many files are one partition each in Dagster; partitionGroup groups more files."""
    partition_group: Annotated[PartitionGroup, Field(alias="partitionGroup")] = "directory"
    """How many files are grouped: directory, regex:<expression with one group> or hash:<buckets>."""

    @property
    def mode(self) -> Mode:
        """What a session does to the table; swap wins over append and sync."""
        return "swap" if self.consistent_push_swap else self.ingestion_mode

    @property
    def target(self) -> str:
        """The release for which segments are written, or `auto`."""
        return self.min_server or self.write_for

    @property
    def known_target(self) -> str:
        """The release for which segments are written; with `auto` the newest that is known, which refuses
        least."""
        return NEWEST.release if self.target == AUTO else self.target

    @property
    def assured_target(self) -> str:
        """The release for which segments are written; with `auto` the oldest that is known, which promises
        least."""
        return OLDEST.release if self.target == AUTO else self.target

    @property
    def push_kind(self) -> PushKind:
        """The first that applies: consistent (also for swap), atomic (in sync mode only), plain.

        Source: docs/design/session.md#kinds-of-push.
        """
        if self.consistent_push_swap or self.consistent_push:
            return "consistent"
        return "atomic" if self.atomic_upload and self.ingestion_mode == "sync" else "plain"

    @property
    def desired_segment_bytes(self) -> int | None:
        """`desiredSegmentSize` in bytes."""
        return None if self.desired_segment_size is None else size_bytes(self.desired_segment_size)

    @property
    def segment_bytes(self) -> int | None:
        """Return about how many bytes of memory a segment's rows may need; None for as many as they do.

        Not part of a table's fingerprint: a new default is no change of the table spec, and must not make a
        swap build its table again. It counts for segments that are built from now on.
        """
        if self.desired_segment_size is None and "max_rows_per_segment" not in self.model_fields_set:
            return DEFAULT_SEGMENT_BYTES
        return self.desired_segment_bytes

    @property
    def bad_row_limit(self) -> str | None:
        """How many rows of a file may be put aside; None if one bad row fails the file."""
        return self.max_bad_rows if self.on_bad_row == "quarantine" else None

    @property
    def retries(self) -> int:
        """How many retries a session has: only consistent push continues a session (edge case E16)."""
        return self.max_retries if self.push_kind == "consistent" else 0

    @property
    def cron(self) -> str | None:
        """`schedule` as the five-field cron that Dagster runs; None without a schedule."""
        return None if self.schedule is None else to_cron(self.schedule)


KNOWN_KEYS: Final = frozenset(yaml_keys(FileIngestion)).difference(FAMILIES)
"""Keys with a meaning, without the families."""

REFERRING_KEYS: Final = frozenset(("inputDirURI", "output.segment.dir.uri", "notificationQueue"))
"""Keys outside the families that may refer to the environment."""


def reader_problem(key: str, text: str, input_format: str) -> str | None:
    """Return what is wrong with one `recordReader.prop.<name>`; None if nothing is, or for another key.

    :param text: its value.
    :param input_format: only the properties for csv are known.
    """
    family, name = family_of(key) or ("", "")
    if family != READER_PROP or input_format != "csv":
        return None
    if name not in CSV_READER_KEYS:
        return "is not a property of the csv reader"
    if name in SINGLE_CHARACTER:
        from pinot_assets.ingest.contract.csv_settings import (
            character_problem,  # imported here, because it loads Spark
        )

        return character_problem(text)
    return None


def text_problem(key: str, text: str) -> tuple[str, str | None] | None:
    """Return why a value is refused, and a fix: it refers to a variable, or its Spark SQL may not run."""
    may_refer = key in REFERRING_KEYS or key.startswith((f"{INPUT_PROP}.", f"{OUTPUT_PROP}."))
    if not may_refer and (has_reference(text) or malformed_reference(text)):
        reason = "refers to the environment, which is only read for directories and fs properties"
        return reason, "write the value"
    if key == FILTER or key.startswith(f"{TRANSFORMS}."):
        try:
            check_spark_expression(text)
        except ExpressionRefused as refused:
            return refused.reason, refused.fix
    return None


def family_of(key: str) -> tuple[str, str] | None:
    """`input.fs.prop.region` → (`input.fs.prop`, `region`); None for a key of no family."""
    for family in FAMILIES:
        if key.startswith(f"{family}.") and len(key) > len(family) + 1:
            return family, key[len(family) + 1 :]
    return None


def model_input(texts: JsonObject) -> JsonObject:
    """Return the block with the keys of each family in one mapping, as `FileIngestion` expects them."""
    gathered: JsonObject = {}
    for key, value in texts.items():
        if (family := family_of(key)) is None:
            gathered[key] = value
        else:
            gathered.setdefault(family[0], {})[family[1]] = value
    return gathered
