"""Generate the tables of docs/guides/formats.md: `python -m tools.docs.formats_page` prints them."""

from __future__ import annotations

import sys
from enum import Enum, StrEnum

from pinot_assets.segment.column.unsupported import Feature
from pinot_assets.segment.functions.pinot_functions import FUNCTIONS
from pinot_assets.segment.functions.time_format import PATTERNS


class SupportLevel(StrEnum):
    """How the project handles a feature that a schema or table config asks for."""

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


_FUNCTIONS = sorted({f"`{name}`" for name, _ in FUNCTIONS})

Cells = tuple[Section, str, SupportLevel, str, str]


def _native(section: Section, title: str, reason: str = "") -> Cells:
    return section, title, SupportLevel.NATIVE, reason, ""


def _server(section: Section, title: str) -> Cells:
    reason = "the server builds it when it loads the segment"
    return section, title, SupportLevel.SERVER, reason, "INDEX_BUILT_AT_LOAD"


def _refused(section: Section, title: str, feature: Feature) -> Cells:
    return section, title, SupportLevel.REFUSED, feature.reason, feature.code


class FormatLine(Enum):
    """One line of the page; a refused feature has its `Feature`.

    :ivar section: heading above the line.
    :ivar title: what a schema or table config asks for.
    :ivar answer: how the project handles it.
    :ivar reason: why, or how it is done.
    :ivar code: a fixed name for notes and refusals.
    """

    def __init__(self, section: Section, title: str, answer: SupportLevel, reason: str, code: str) -> None:
        self.section = section
        self.title = title
        self.answer = answer
        self.reason = reason
        self.code = code

    SINGLE_VALUE = _native(
        Section.COLUMNS,
        "single-value INT, LONG, FLOAT, DOUBLE, BIG_DECIMAL, BOOLEAN, TIMESTAMP, STRING, JSON, BYTES",
    )
    MULTI_VALUE = _native(
        Section.COLUMNS, "multi-value dimensions of these types, except BIG_DECIMAL and JSON"
    )
    COLUMN_INVALID = _refused(
        Section.COLUMNS,
        "multi-value BIG_DECIMAL and JSON; multi-value metrics and date-times; metrics that are neither "
        "numbers nor BYTES; date-times without a format; an invalid `maxLength`; a name twice; no column",
        Feature.COLUMN_INVALID,
    )
    NULLS = _native(
        Section.COLUMNS,
        "`nullHandlingEnabled`, `enableColumnBasedNullHandling`, `notNull`, `defaultNullValue`",
    )
    DEFAULT_VALUE = _refused(
        Section.COLUMNS,
        "a `defaultNullValue` that does not fit its column, or a TIMESTAMP's as text",
        Feature.DEFAULT_VALUE,
    )
    MAX_LENGTH = _native(Section.COLUMNS, "`maxLength`, `maxLengthExceedStrategy`")
    TRAILING_ZEROS = _refused(Section.COLUMNS, "`allowTrailingZeros`", Feature.TRAILING_ZEROS)
    OTHER_TYPE = _refused(
        Section.COLUMNS, "MAP, LIST, STRUCT, UUID, OPEN_STRUCT and other types", Feature.NEEDS_BUILDER
    )
    OLD_FIELDS = _refused(Section.COLUMNS, "`timeFieldSpec`, `virtualColumnProvider`", Feature.OLD_FIELDS)
    COLUMN_NAME = _refused(
        Section.COLUMNS,
        "names with a leading # or !, a comma, `${`, a control character or one beyond U+FFFF; date-time "
        "formats with a comma, `${` or a character beyond U+FFFF; names outside ASCII for servers before 1.5",
        Feature.COLUMN_NAME,
    )
    DICTIONARY = _native(
        Section.ENCODINGS,
        "dictionary of fixed or variable length, its sorted, fixed-bit and multi-value forward index, "
        "MV_ENTRY_DICT",
    )
    OPTIMIZE = _native(
        Section.ENCODINGS, "`optimizeDictionary`, `optimizeDictionaryForMetrics`, `optimizeDictionaryType`"
    )
    RAW = _native(
        Section.ENCODINGS,
        "`noDictionaryColumns` and RAW encoding: versions 2 to 6, PASS_THROUGH, LZ4, GZIP, ZSTANDARD, SNAPPY"
        "; for servers of 1.6, also with a dictionary for indexes",
        "equal bytes, except for SNAPPY, and for ZSTANDARD if the two libzstd differ",
    )
    CODEC_UNREADABLE = _refused(
        Section.ENCODINGS, "codecs DELTA and DELTADELTA without dictionary", Feature.CODEC_UNREADABLE
    )
    OTHER_ENCODING = _refused(
        Section.ENCODINGS,
        "`forwardIndexDisabled`, CLP codecs, `codecSpec`, `noRawDataForTextIndex`, unknown settings of "
        "dictionary and forward index",
        Feature.NEEDS_BUILDER,
    )
    ENCODING_INVALID = _refused(
        Section.ENCODINGS,
        "settings that contradict each other or are out of range",
        Feature.ENCODING_INVALID,
    )
    ENCODING_TOO_NEW = _refused(
        Section.ENCODINGS,
        "for older servers: multi-value version 4 before 1.1, GZIP before 1.2, version 5 before 1.3, "
        "MV_ENTRY_DICT before 1.5, before 1.6 an inverted index without dictionary that is to be written "
        "into the segment",
        Feature.ENCODING_TOO_NEW,
    )
    INVERTED_AT_BUILD = _native(
        Section.INDEXES,
        "inverted index with `createInvertedIndexDuringSegmentGeneration`, in `fieldConfigList`, or for "
        "servers of 1.6",
        "as Pinot's own builder does; never on a sorted column",
    )
    INVERTED = _server(Section.INDEXES, "other inverted indexes (`invertedIndexColumns`)")
    BLOOM = _native(Section.INDEXES, "bloom filter", "as Pinot's own builder does")
    BLOOM_INVALID = _refused(
        Section.INDEXES,
        "bloom filter on BOOLEAN, or with an invalid fpp or size",
        Feature.INDEX_INVALID,
    )
    SERVER_BUILT = _server(
        Section.INDEXES, "range, text, multi-column text, JSON, FST, IFST, H3, vector and timestamp index"
    )
    STAR_TREE = _server(Section.INDEXES, "star-tree with `enableDynamicStarTreeCreation`")
    STAR_TREE_AT_BUILD = _refused(
        Section.INDEXES, "star-tree without `enableDynamicStarTreeCreation`", Feature.STAR_TREE_AT_BUILD
    )
    INDEX_NEEDS_DICTIONARY = _refused(
        Section.INDEXES,
        "FST, IFST or vector index of a column without dictionary; range index of such a column that is not "
        "a number",
        Feature.INDEX_NEEDS_DICTIONARY,
    )
    TIMESTAMP_INDEX_OF_NULLS = _refused(
        Section.INDEXES, "timestamp index of a column with null handling", Feature.TIMESTAMP_INDEX_OF_NULLS
    )
    NULL_BACKFILL = _refused(Section.INDEXES, "`indexes.null`, for servers before 1.6", Feature.NULL_BACKFILL)
    OTHER_INDEX = _refused(Section.INDEXES, "any other index", Feature.NEEDS_BUILDER)
    DECLARED_TWICE = _refused(
        Section.INDEXES, "one index of a column declared in two ways", Feature.INDEX_INVALID
    )
    SORTED_COLUMN = _native(
        Section.ROWS,
        "`sortedColumn`",
        "the rows of each segment are sorted by the first column, then by the second, and so on",
    )
    SORTED_COLUMN_INVALID = _refused(
        Section.ROWS,
        "`sortedColumn` with a multi-value column or one that the schema lacks",
        Feature.SORTED_COLUMN_INVALID,
    )
    PARTITIONS = _native(
        Section.ROWS,
        "`segmentPartitionConfig` with Modulo, Murmur, Murmur2, Murmur3, HashCode, ByteArray and "
        "BoundedColumnValue",
        "the segment has the partitions of its rows; [`layout.partition`](partitioned-and-sliced.md) moves "
        "rows so that it has one",
    )
    PARTITIONS_INVALID = _refused(
        Section.ROWS,
        "`segmentPartitionConfig` of a multi-value column; Modulo of what cannot be a whole number; "
        "settings that Pinot refuses; `useRawBytes`; Murmur3 for servers before 1.1",
        Feature.PARTITIONS_INVALID,
    )
    SEGMENT_FORMAT = _refused(Section.ROWS, "`segmentFormatVersion` other than v3", Feature.NEEDS_BUILDER)
    TIME_FORMAT = _native(
        Section.TIME,
        f"EPOCH, TIMESTAMP, and SIMPLE_DATE_FORMAT in UTC of {', '.join(f'`{text}`' for text in PATTERNS)}",
    )
    TIME_FORMAT_OTHER = _refused(Section.TIME, "other date patterns and zones", Feature.TIME_FORMAT_OTHER)
    TIME_COLUMN = _refused(
        Section.TIME,
        "a time column that is not a DATE_TIME field, or whose type does not fit its format",
        Feature.TIME_COLUMN,
    )
    ROW_TIMES = _native(
        Section.TIME,
        "`rowTimeValueCheck`, alone or with `continueOnError`",
        "as Pinot since 0.12: a time before 1971 or after 2071 fails the file, or becomes the default or the "
        "time of the build. A text that does not fit its pattern exactly always fails the file",
    )
    TRANSFORM = _native(
        Section.INGESTION,
        f"`transformConfigs`, `filterConfig` of {', '.join(_FUNCTIONS)}, AND, OR, NOT, IS NULL, literals and "
        "columns",
        "translated to Spark SQL; Spark reads such files",
    )
    TRANSFORM_OTHER = _refused(
        Section.INGESTION,
        "`transformConfigs`, `filterConfig` with any other function",
        Feature.TRANSFORM_OTHER,
    )
    GROOVY = _refused(Section.INGESTION, "`transformConfigs`, `filterConfig` in Groovy", Feature.GROOVY)
    TRANSFORM_REFERENCE = _refused(
        Section.INGESTION, "`transformConfigs`, `filterConfig` with `${` in them", Feature.TRANSFORM_REFERENCE
    )
    TRANSFORM_INVALID = _refused(
        Section.INGESTION,
        "two functions of one column, functions that need each other, a `filterConfig` that is not a "
        "condition",
        Feature.TRANSFORM_INVALID,
    )
    INGESTION = _refused(
        Section.INGESTION,
        "`complexTypeConfig`, `enrichmentConfigs`, `aggregationConfigs`, "
        "schema-conforming transformers, `aggregateMetrics`, a schema's "
        "`transformFunction`",
        Feature.INGESTION,
    )
    UPSERT = _refused(Section.INGESTION, "`upsertConfig`, `dedupConfig`", Feature.UPSERT)
    CONFIG_SHAPE = _refused(
        Section.INGESTION,
        "a text where Pinot expects a list or an object, and the like; a column twice in `fieldConfigList`",
        Feature.CONFIG_SHAPE,
    )
    OLD_SERVER = _refused(Section.INGESTION, "`writeFor` before 0.11", Feature.OLD_SERVER)


def support_tables() -> str:
    """Return all lines as Markdown, one table for each section."""
    return "\n".join(map(_table, Section))


def _table(section: Section) -> str:
    lines = [f"### {section}", "", "| feature | answer | |", "|---|---|---|"]
    for line in FormatLine:
        if line.section is section:
            remark = f"{line.reason} (`{line.code}`)" if line.code else line.reason
            lines.append(f"| {line.title} | {line.answer} | {remark} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(support_tables())
