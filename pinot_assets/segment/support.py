"""What of Pinot's segments the writer does: the one list from which refusals and docs/guides/formats.md come.

A unit test has a schema or table config for every line and holds the writer to it; `support_page` makes the
tables of the page.
"""

from __future__ import annotations

from enum import Enum, StrEnum

from pinot_assets.segment.time_format import PATTERNS


class Answer(StrEnum):
    """What becomes of a feature that schema or table config ask for."""

    NATIVE = "native"
    SERVER = "left to the server"
    REFUSED = "refused"


class Section(StrEnum):
    """Headings of the page, in its order."""

    COLUMNS = "Columns"
    ENCODINGS = "Encodings"
    INDEXES = "Indexes"
    ROWS = "Rows"
    TIME = "Time column"
    INGESTION = "Ingestion and the rest"


_NATIVE, _SERVER, _REFUSED = Answer
_LOADED = "the server builds it when it loads the segment"
_ONLY_PINOT = "only Pinot's own builder writes it"
_BUILT_AT_LOAD, _NEEDS_BUILDER = "INDEX_BUILT_AT_LOAD", "NEEDS_JVM_BUILDER"
_ROWS_CHANGE = "it changes rows while they are read"


class Feature(Enum):
    """One line of the list.

    :ivar section: heading under which it stands.
    :ivar title: what a schema or table config asks for.
    :ivar answer: what becomes of it.
    :ivar reason: why, or how it is done.
    :ivar code: a fixed name for notes and refusals.
    """

    def __init__(
        self, section: Section, title: str, answer: Answer, reason: str = "", code: str = ""
    ) -> None:
        self.section = section
        self.title = title
        self.answer = answer
        self.reason = reason
        self.code = code

    def refusal(self, where: str, what: str) -> str:
        """The problem that names where it was asked for, and for what."""
        return f"{where}: {what} ({self.code}: {self.reason})"

    SINGLE_VALUE = (
        Section.COLUMNS,
        "single-value INT, LONG, FLOAT, DOUBLE, BIG_DECIMAL, BOOLEAN, TIMESTAMP, STRING, JSON, BYTES",
        _NATIVE,
    )
    MULTI_VALUE = (
        Section.COLUMNS,
        "multi-value dimensions of these types but BIG_DECIMAL and JSON",
        _NATIVE,
    )
    MULTI_VALUE_OTHER = (
        Section.COLUMNS,
        "multi-value BIG_DECIMAL and JSON, multi-value metrics and date-times",
        _REFUSED,
        "Pinot has no such columns",
        "COLUMN_INVALID",
    )
    METRIC_TYPE = (
        Section.COLUMNS,
        "metrics that are no numbers or BYTES",
        _REFUSED,
        "Pinot has no such columns",
        "COLUMN_INVALID",
    )
    NULLS = (
        Section.COLUMNS,
        "`nullHandlingEnabled`, `enableColumnBasedNullHandling`, `notNull`, `defaultNullValue`",
        _NATIVE,
    )
    DEFAULT_VALUE = (
        Section.COLUMNS,
        "a `defaultNullValue` that does not fit its column, or a TIMESTAMP's as text",
        _REFUSED,
        "Pinot would not take it, or its meaning depends on the server's time zone",
        "DEFAULT_VALUE_INVALID",
    )
    MAX_LENGTH = (Section.COLUMNS, "`maxLength`, `maxLengthExceedStrategy`", _NATIVE)
    TRAILING_ZEROS = (
        Section.COLUMNS,
        "`allowTrailingZeros`",
        _REFUSED,
        "equal numbers of different scale have no certain order",
        "BIG_DECIMAL_SCALE_AMBIGUOUS",
    )
    OTHER_TYPE = (Section.COLUMNS, "MAP, LIST, STRUCT and other types", _REFUSED, _ONLY_PINOT, _NEEDS_BUILDER)
    OLD_FIELDS = (
        Section.COLUMNS,
        "`timeFieldSpec`, `virtualColumnProvider`",
        _REFUSED,
        "old forms that are not imitated",
        _NEEDS_BUILDER,
    )
    COLUMN_NAME = (
        Section.COLUMNS,
        "names with a leading # or !, a comma, `${`, a control character or one beyond U+FFFF; "
        "names outside ASCII for servers before 1.5",
        _REFUSED,
        "servers read another name",
        "COLUMN_NAME_UNSAFE",
    )

    DICTIONARY = (
        Section.ENCODINGS,
        "dictionary of fixed or variable length, fixed-bit, sorted and multi-value forward index",
        _NATIVE,
    )
    RAW = (
        Section.ENCODINGS,
        "`noDictionaryColumns`, RAW encoding, compression codecs, dictionary and forward index settings",
        _REFUSED,
        _ONLY_PINOT,
        _NEEDS_BUILDER,
    )

    INVERTED_AT_BUILD = (
        Section.INDEXES,
        "inverted index with `createInvertedIndexDuringSegmentGeneration` or in `fieldConfigList`",
        _NATIVE,
        "Pinot's own builder writes it then; never on a sorted column",
    )
    INVERTED = (
        Section.INDEXES,
        "other inverted indexes (`invertedIndexColumns`)",
        _SERVER,
        _LOADED,
        _BUILT_AT_LOAD,
    )
    BLOOM = (Section.INDEXES, "bloom filter", _NATIVE, "Pinot's own builder writes it too")
    BLOOM_INVALID = (
        Section.INDEXES,
        "bloom filter on BOOLEAN or with an fpp that is no share",
        _REFUSED,
        "Pinot does not accept it",
        "INDEX_INVALID",
    )
    RANGE = (Section.INDEXES, "range index", _SERVER, _LOADED, _BUILT_AT_LOAD)
    TEXT = (Section.INDEXES, "text index, multi-column text index", _SERVER, _LOADED, _BUILT_AT_LOAD)
    FST = (Section.INDEXES, "FST and IFST index", _SERVER, _LOADED, _BUILT_AT_LOAD)
    JSON = (Section.INDEXES, "JSON index", _SERVER, _LOADED, _BUILT_AT_LOAD)
    H3 = (Section.INDEXES, "H3 index", _SERVER, _LOADED, _BUILT_AT_LOAD)
    VECTOR = (Section.INDEXES, "vector index", _SERVER, _LOADED, _BUILT_AT_LOAD)
    STAR_TREE = (
        Section.INDEXES,
        "star-tree with `enableDynamicStarTreeCreation`",
        _SERVER,
        _LOADED,
        _BUILT_AT_LOAD,
    )
    STAR_TREE_AT_BUILD = (
        Section.INDEXES,
        "star-tree without `enableDynamicStarTreeCreation`",
        _REFUSED,
        "only Pinot's own builder writes it, unless enableDynamicStarTreeCreation leaves it to the server",
        "STAR_TREE_NEEDS_JVM",
    )
    TIMESTAMP_INDEX = (
        Section.INDEXES,
        "timestamp index (`timestampConfig`)",
        _REFUSED,
        "it adds columns that only Pinot's own builder derives",
        _NEEDS_BUILDER,
    )
    OTHER_INDEX = (Section.INDEXES, "any other index", _REFUSED, _ONLY_PINOT, _NEEDS_BUILDER)
    DECLARED_TWICE = (
        Section.INDEXES,
        "one index of a column declared in two ways",
        _REFUSED,
        "Pinot does not accept it",
        "INDEX_INVALID",
    )

    SORTED_COLUMN = (
        Section.ROWS,
        "`sortedColumn`",
        _NATIVE,
        "the rows of each segment are sorted by it, and by the second where the first are equal",
    )
    SORTED_COLUMN_INVALID = (
        Section.ROWS,
        "`sortedColumn` with a multi-value column or one that the schema lacks",
        _REFUSED,
        "Pinot does not accept it",
        "SORTED_COLUMN_INVALID",
    )
    PARTITIONS = (
        Section.ROWS,
        "`segmentPartitionConfig` with Modulo, Murmur, Murmur2, Murmur3, HashCode, ByteArray and "
        "BoundedColumnValue",
        _NATIVE,
        "the partitions found are written; rows are not moved between segments",
    )
    PARTITIONS_INVALID = (
        Section.ROWS,
        "`segmentPartitionConfig` of a multi-value column; Modulo of what cannot be a whole number; "
        "settings that Pinot refuses; `useRawBytes`; Murmur3 for servers before 1.1",
        _REFUSED,
        "no partition, or one that a server computes differently",
        "PARTITION_COLUMN_INVALID",
    )
    SEGMENT_FORMAT = (
        Section.ROWS,
        "`segmentFormatVersion` other than v3",
        _REFUSED,
        _ONLY_PINOT,
        _NEEDS_BUILDER,
    )

    TIME_FORMAT = (
        Section.TIME,
        f"EPOCH, TIMESTAMP, and SIMPLE_DATE_FORMAT in UTC of {', '.join(f'`{text}`' for text in PATTERNS)}",
        _NATIVE,
    )
    TIME_FORMAT_OTHER = (
        Section.TIME,
        "other date patterns and zones",
        _REFUSED,
        "they cannot be read exactly as Pinot reads them",
        "TIME_FORMAT_UNSUPPORTED",
    )
    TIME_COLUMN = (
        Section.TIME,
        "a time column that is no DATE_TIME field, or of a type its format cannot have",
        _REFUSED,
        "Pinot does not accept it",
        "TIME_COLUMN_INVALID",
    )

    INGESTION = (
        Section.INGESTION,
        "`transformConfigs`, `filterConfig`, `complexTypeConfig`, `enrichmentConfigs`, `aggregationConfigs`, "
        "schema-conforming transformers, `rowTimeValueCheck`, `aggregateMetrics`, a schema's "
        "`transformFunction`",
        _REFUSED,
        _ROWS_CHANGE,
        "INGESTION_TRANSFORM_NEEDS_JVM",
    )
    UPSERT = (
        Section.INGESTION,
        "`upsertConfig`, `dedupConfig`",
        _REFUSED,
        "such a table's segments are no files that can be replaced",
        "UPSERT_UNSUPPORTED",
    )
    OLD_SERVER = (
        Section.INGESTION,
        "servers before 0.11",
        _REFUSED,
        "the oldest server that segments were tested with is 0.11",
        "SERVER_TOO_OLD",
    )
