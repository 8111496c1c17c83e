"""What of Pinot's segments the writer does: the one list from which refusals and docs/guides/formats.md come.

A unit test has a schema or table config for every line and holds the writer to it; `tools.docs.formats_page`
makes the tables of the page.
"""

from __future__ import annotations

from enum import Enum, StrEnum

from pinot_assets.segment.functions.pinot_functions import FUNCTIONS
from pinot_assets.segment.functions.time_format import PATTERNS


class SupportLevel(StrEnum):
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


_ONLY_PINOT = "only Pinot's own builder writes it"
_NEEDS_BUILDER = "NEEDS_JVM_BUILDER"
_FUNCTIONS = sorted({f"`{name}`" for name, _ in FUNCTIONS})
_BUILT_AT_LOAD = "INDEX_BUILT_AT_LOAD"
_BY_SERVER = ("the server builds it when it loads the segment", _BUILT_AT_LOAD)
_ANSWERS = {"": SupportLevel.NATIVE, _BUILT_AT_LOAD: SupportLevel.SERVER}


class Feature(Enum):
    """One line of the list.

    :ivar section: heading under which it stands.
    :ivar title: what a schema or table config asks for.
    :ivar answer: what becomes of it.
    :ivar reason: why, or how it is done.
    :ivar code: a fixed name for notes and refusals.
    """

    def __init__(self, section: Section, title: str, reason: str = "", code: str = "") -> None:
        self.section = section
        self.title = title
        self.answer = _ANSWERS.get(code, SupportLevel.REFUSED)
        self.reason = reason
        self.code = code

    SINGLE_VALUE = (
        Section.COLUMNS,
        "single-value INT, LONG, FLOAT, DOUBLE, BIG_DECIMAL, BOOLEAN, TIMESTAMP, STRING, JSON, BYTES",
    )
    MULTI_VALUE = (Section.COLUMNS, "multi-value dimensions of these types but BIG_DECIMAL and JSON")
    COLUMN_INVALID = (
        Section.COLUMNS,
        "multi-value BIG_DECIMAL and JSON, multi-value metrics and date-times, metrics that are no numbers "
        "or BYTES, date-times without format, a `maxLength` that is none, a name twice, no column at all",
        "Pinot has no such columns",
        "COLUMN_INVALID",
    )
    NULLS = (
        Section.COLUMNS,
        "`nullHandlingEnabled`, `enableColumnBasedNullHandling`, `notNull`, `defaultNullValue`",
    )
    DEFAULT_VALUE = (
        Section.COLUMNS,
        "a `defaultNullValue` that does not fit its column, or a TIMESTAMP's as text",
        "Pinot would not take it, or its meaning depends on the server's time zone",
        "DEFAULT_VALUE_INVALID",
    )
    MAX_LENGTH = (Section.COLUMNS, "`maxLength`, `maxLengthExceedStrategy`")
    TRAILING_ZEROS = (
        Section.COLUMNS,
        "`allowTrailingZeros`",
        "equal numbers of different scale have no certain order",
        "BIG_DECIMAL_SCALE_AMBIGUOUS",
    )
    OTHER_TYPE = (Section.COLUMNS, "MAP, LIST, STRUCT and other types", _ONLY_PINOT, _NEEDS_BUILDER)
    OLD_FIELDS = (
        Section.COLUMNS,
        "`timeFieldSpec`, `virtualColumnProvider`",
        "old forms that are not imitated",
        _NEEDS_BUILDER,
    )
    COLUMN_NAME = (
        Section.COLUMNS,
        "names with a leading # or !, a comma, `${`, a control character or one beyond U+FFFF; date-time "
        "formats with a comma, `${` or a character beyond U+FFFF; names outside ASCII for servers before 1.5",
        "servers would read something else",
        "COLUMN_NAME_UNSAFE",
    )

    DICTIONARY = (
        Section.ENCODINGS,
        "dictionary of fixed or variable length, its sorted, fixed-bit and multi-value forward index, "
        "MV_ENTRY_DICT",
    )
    OPTIMIZE = (
        Section.ENCODINGS,
        "`optimizeDictionary`, `optimizeDictionaryForMetrics`, `optimizeDictionaryType`",
    )
    RAW = (
        Section.ENCODINGS,
        "`noDictionaryColumns` and RAW encoding: versions 2 to 5, PASS_THROUGH, LZ4, GZIP, ZSTANDARD, SNAPPY",
        "equal bytes but for SNAPPY, and for ZSTANDARD where the two libzstd differ",
    )
    CODEC_UNREADABLE = (
        Section.ENCODINGS,
        "codecs DELTA and DELTADELTA without dictionary",
        "Pinot 1.5.1 does not read back what it wrote",
        "CODEC_UNREADABLE_IN_1_5_1",
    )
    OTHER_ENCODING = (
        Section.ENCODINGS,
        "`forwardIndexDisabled`, CLP codecs, `noRawDataForTextIndex`, unknown settings of dictionary and "
        "forward index",
        _ONLY_PINOT,
        _NEEDS_BUILDER,
    )
    ENCODING_INVALID = (
        Section.ENCODINGS,
        "settings that contradict each other or are out of range; an inverted index without dictionary that "
        "is to be written into the segment",
        "Pinot does not accept it",
        "ENCODING_INVALID",
    )
    ENCODING_TOO_NEW = (
        Section.ENCODINGS,
        "for older servers: multi-value version 4 before 1.1, GZIP before 1.2, version 5 before 1.3, "
        "MV_ENTRY_DICT before 1.5",
        "the oldest server that must read the segments cannot",
        "SERVER_TOO_OLD",
    )

    INVERTED_AT_BUILD = (
        Section.INDEXES,
        "inverted index with `createInvertedIndexDuringSegmentGeneration` or in `fieldConfigList`",
        "Pinot's own builder writes it then; never on a sorted column",
    )
    INVERTED = (Section.INDEXES, "other inverted indexes (`invertedIndexColumns`)", *_BY_SERVER)
    BLOOM = (Section.INDEXES, "bloom filter", "Pinot's own builder writes it too")
    BLOOM_INVALID = (
        Section.INDEXES,
        "bloom filter on BOOLEAN, with an fpp that is no share or a size that is no number",
        "Pinot does not accept it",
        "INDEX_INVALID",
    )
    SERVER_BUILT = (
        Section.INDEXES,
        "range, text, multi-column text, JSON, FST, IFST, H3, vector and timestamp index",
        *_BY_SERVER,
    )
    STAR_TREE = (Section.INDEXES, "star-tree with `enableDynamicStarTreeCreation`", *_BY_SERVER)
    STAR_TREE_AT_BUILD = (
        Section.INDEXES,
        "star-tree without `enableDynamicStarTreeCreation`",
        "only Pinot's own builder writes it, unless enableDynamicStarTreeCreation leaves it to the server",
        "STAR_TREE_NEEDS_JVM",
    )
    INDEX_NEEDS_DICTIONARY = (
        Section.INDEXES,
        "FST, IFST and vector index of a column without dictionary, range index of one that is no number",
        "the server cannot build it and does not load the segment",
        "INDEX_NEEDS_DICTIONARY",
    )
    TIMESTAMP_INDEX_OF_NULLS = (
        Section.INDEXES,
        "timestamp index of a column with null handling",
        "the server derives its columns without their nulls",
        "TIMESTAMP_INDEX_LOSES_NULLS",
    )
    OTHER_INDEX = (Section.INDEXES, "any other index", _ONLY_PINOT, _NEEDS_BUILDER)
    DECLARED_TWICE = (
        Section.INDEXES,
        "one index of a column declared in two ways",
        "Pinot does not accept it",
        "INDEX_INVALID",
    )

    SORTED_COLUMN = (
        Section.ROWS,
        "`sortedColumn`",
        "the rows of each segment are sorted by it, and by the second where the first are equal",
    )
    SORTED_COLUMN_INVALID = (
        Section.ROWS,
        "`sortedColumn` with a multi-value column or one that the schema lacks",
        "Pinot does not accept it",
        "SORTED_COLUMN_INVALID",
    )
    PARTITIONS = (
        Section.ROWS,
        "`segmentPartitionConfig` with Modulo, Murmur, Murmur2, Murmur3, HashCode, ByteArray and "
        "BoundedColumnValue",
        "the partitions found are written; rows are not moved between segments",
    )
    PARTITIONS_INVALID = (
        Section.ROWS,
        "`segmentPartitionConfig` of a multi-value column; Modulo of what cannot be a whole number; "
        "settings that Pinot refuses; `useRawBytes`; Murmur3 for servers before 1.1",
        "no partition, or one that a server computes differently",
        "PARTITION_COLUMN_INVALID",
    )
    SEGMENT_FORMAT = (Section.ROWS, "`segmentFormatVersion` other than v3", _ONLY_PINOT, _NEEDS_BUILDER)

    TIME_FORMAT = (
        Section.TIME,
        f"EPOCH, TIMESTAMP, and SIMPLE_DATE_FORMAT in UTC of {', '.join(f'`{text}`' for text in PATTERNS)}",
    )
    TIME_FORMAT_OTHER = (
        Section.TIME,
        "other date patterns and zones",
        "they cannot be read exactly as Pinot reads them",
        "TIME_FORMAT_UNSUPPORTED",
    )
    TIME_COLUMN = (
        Section.TIME,
        "a time column that is no DATE_TIME field, or of a type its format cannot have",
        "Pinot does not accept it",
        "TIME_COLUMN_INVALID",
    )

    TRANSFORM = (
        Section.INGESTION,
        f"`transformConfigs`, `filterConfig` of {', '.join(_FUNCTIONS)}, AND, OR, NOT, IS NULL, literals and "
        "columns",
        "translated to Spark SQL; such files are read by Spark",
    )
    TRANSFORM_OTHER = (
        Section.INGESTION,
        "`transformConfigs`, `filterConfig` with any other function",
        "nothing in Spark SQL is certainly the same: write transforms and filter in fileIngestion",
        "TRANSFORM_NOT_TRANSLATED",
    )
    GROOVY = (
        Section.INGESTION,
        "`transformConfigs`, `filterConfig` in Groovy",
        "Spark SQL cannot say what a script does: write transforms and filter in fileIngestion",
        "GROOVY_REFUSED",
    )
    TRANSFORM_REFERENCE = (
        Section.INGESTION,
        "`transformConfigs`, `filterConfig` with `${` in them",
        "Pinot and Spark would put a variable of the environment there, which must not become table data",
        "REFERENCE_REFUSED",
    )
    TRANSFORM_INVALID = (
        Section.INGESTION,
        "two functions of one column, functions that need each other, a `filterConfig` that is no condition",
        "Pinot does not accept it",
        "TRANSFORM_INVALID",
    )
    INGESTION = (
        Section.INGESTION,
        "`complexTypeConfig`, `enrichmentConfigs`, `aggregationConfigs`, "
        "schema-conforming transformers, `rowTimeValueCheck`, `aggregateMetrics`, a schema's "
        "`transformFunction`",
        "it changes rows while they are read",
        "INGESTION_TRANSFORM_NEEDS_JVM",
    )
    UPSERT = (
        Section.INGESTION,
        "`upsertConfig`, `dedupConfig`",
        "such a table's segments are no files that can be replaced",
        "UPSERT_UNSUPPORTED",
    )
    CONFIG_SHAPE = (
        Section.INGESTION,
        "a text where Pinot has a list or an object, and the like; a column twice in `fieldConfigList`",
        "Pinot does not accept it",
        "CONFIG_INVALID",
    )
    OLD_SERVER = (
        Section.INGESTION,
        "`minServer` before 0.11",
        "0.11 is the oldest server that was tested",
        "SERVER_TOO_OLD",
    )


class Findings:
    """What of a schema and a table config cannot be done, and what is left to the server, for people.

    :ivar problems: what cannot be done.
    :ivar notes: what is accepted but left to the server or not imitated.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.notes: list[str] = []

    def refuse(self, where: str, feature: Feature, what: str) -> None:
        """Note a problem: where it was asked for, and for what."""
        self.problems.append(f"{where}: {what} ({feature.code}: {feature.reason})")
