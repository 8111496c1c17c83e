"""Read from Pinot's own schema and table config what to write; refuse what cannot be written.

No file is read before this has passed, and the error names all problems at once. A setting is honoured, or
does not concern a segment, or is refused because the segment would differ from what Pinot would build.

The indexes of a table config are written into the segment, or left to the server. For the indexes that are
written here at all, the rule is that of Pinot's own builder (`SegmentGeneratorConfig`): bloom filters always;
inverted indexes of `fieldConfigList` always; those of `invertedIndexColumns` always from 1.6 on, before only
with `createInvertedIndexDuringSegmentGeneration`. The server that loads the segment builds every other index
(docs/design/segment-format.md#s10).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import pyarrow as pa

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.segment.column.target import REFERENCE, Target, target_for
from pinot_assets.segment.column.types import STORAGE, Column, DataType, utf16_key
from pinot_assets.segment.column.unsupported import (
    NAME_OUTSIDE_ASCII,
    Feature,
    Findings,
    check_shape,
    fix_of,
    is_true,
    java_int,
    number,
)
from pinot_assets.segment.config.column_encoding import ColumnSettings, read_columns, read_encoding
from pinot_assets.segment.config.transforms import read_transforms
from pinot_assets.segment.functions.time_format import VALID_FROM_MS, TimeFormat, TimeFormatKind, parse_format
from pinot_assets.segment.values.partition import Partitioning, read_partitionings

_SERVER_BUILT_LISTS = {
    "rangeIndexColumns": "range index",
    "jsonIndexColumns": "JSON index",
    "jsonIndexConfigs": "JSON index",
}
_SERVER_BUILT = {
    "range": "range index",
    "text": "text index",
    "fst": "FST index",
    "ifst": "FST index",
    "h3": "H3 index",
    "json": "JSON index",
    "vector": "vector index",
}
_OWN_INDEXES = {"inverted", "bloom", "dictionary", "forward", "null"}
_NO_INDEXES = {"INVERTED", "SORTED", "TIMESTAMP"}  # read elsewhere, or they change no buffer of a segment
BUILD_INVERTED = "generate.inverted.index.before.push"
"""Key of the table config's `metadata.customConfigs`: deprecated, but Pinot still obeys it."""


DEFAULT_FPP: Final = 0.05


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """How large a bloom filter may be.

    :ivar fpp: share of absent values that the filter may report as present (false positives).
    :ivar max_bytes: largest size, which may raise that share; 0 for no limit.
    """

    fpp: float = DEFAULT_FPP
    max_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Indexes:
    """The indexes of one column that are written into the segment.

    :ivar inverted: whether to write an inverted index; a sorted column never gets one.
    :ivar bloom: settings of its bloom filter, None without one.
    """

    inverted: bool = False
    bloom: BloomFilter | None = None


def read_indexes(
    config: JsonMapping, columns: Iterable[ColumnSettings], target: Target, findings: Findings
) -> dict[str, Indexes]:
    """Return the indexes to write, for each column that has some; note what the server builds.

    :param columns: those of the schema; settings of other columns are ignored, as Pinot does.
    """
    indexing = config.get("tableIndexConfig") or {}
    _star_tree(indexing, findings)
    if indexing.get("multiColumnTextIndexConfig"):
        findings.notes.append("the server builds the multi-column text index when it loads the segment")
    custom = (config.get("metadata") or {}).get("customConfigs") or {}
    at_build = (
        target.inverted_at_build
        or is_true(indexing.get("createInvertedIndexDuringSegmentGeneration"))
        or is_true(custom.get(BUILD_INVERTED))
    )
    by_column: dict[str, Indexes] = {}
    for given in columns:
        listed = given.is_listed("invertedIndexColumns")
        inverted = _is_asked(given, "inverted", listed or "INVERTED" in given.types)
        by_server = inverted and listed and not at_build
        indexes = Indexes(inverted and not by_server, _bloom(given))
        if indexes != Indexes():
            by_column[given.column.name] = indexes
        findings.notes += [
            f"column {given.column.name}: the server builds the {what} when it loads the segment"
            for what in sorted({*_others(given), *(["inverted index"] if by_server else [])})
        ]
        _null_vector(given, target)
    return by_column


def _star_tree(indexing: JsonMapping, findings: Findings) -> None:
    for key in ("starTreeIndexConfigs", "enableDefaultStarTree"):
        value = indexing.get(key)
        if is_true(value) or (value and not isinstance(value, (str, bool))):
            if is_true(indexing.get("enableDynamicStarTreeCreation")):
                findings.notes.append("the server builds the star-tree index when it loads the segment")
            else:
                findings.refuse(f"tableIndexConfig.{key}", Feature.STAR_TREE_AT_BUILD, "star-tree index")
            return


def _is_asked(given: ColumnSettings, key: str, elsewhere: bool) -> bool:
    """Whether an index is asked for, in `indexes` or elsewhere; refuse a declaration in both."""
    if key in given.nested and elsewhere:
        given.refuse(Feature.INDEX_INVALID, f"indexes.{key} beside another declaration")
    return given.is_nested(key) if key in given.nested else elsewhere


def _bloom(given: ColumnSettings) -> BloomFilter | None:
    settings = (given.indexing.get("bloomFilterConfigs") or {}).get(given.column.name)
    if not _is_asked(given, "bloom", given.is_listed("bloomFilterColumns") or settings is not None):
        return None
    settings = given.nested.get("bloom", settings) or {}
    if is_true(settings.get("disabled")):
        return None
    share, limit = settings.get("fpp") or DEFAULT_FPP, settings.get("maxSizeInBytes") or 0
    fpp, size = number(share), java_int(limit)
    if given.column.data_type is DataType.BOOLEAN or fpp is None or not 0 < fpp < 1 or size is None:
        of_size = "" if size is not None else f" and maxSizeInBytes {limit}"
        given.refuse(Feature.INDEX_INVALID, f"bloom filter with fpp {share}{of_size}")
        return None
    return BloomFilter(fpp, size)


def _null_vector(given: ColumnSettings, target: Target) -> None:
    """Check `indexes.null`: its `backfill` makes a server of 1.6 take default values for nulls, unless the
    segment says of the column that it has none."""
    if given.nested.get("null") is None:
        return
    if not target.exact_lengths:
        given.refuse(Feature.NULL_BACKFILL, "indexes.null")
    elif is_true(given.nested["null"].get("backfill")):
        given.findings.notes.append(
            f"column {given.column.name}: indexes.null.backfill makes null of each default value in segments "
            "that were written for servers before 1.6"
        )


def _others(given: ColumnSettings) -> set[str]:
    """Return the names of the indexes that the server builds; refuse every unknown index."""
    built = {what for key, what in _SERVER_BUILT_LISTS.items() if given.is_listed(key)}
    if given.entry.get("timestampConfig") and given.column.nullable:
        given.refuse(Feature.TIMESTAMP_INDEX_OF_NULLS, "timestamp index (timestampConfig)")
    elif given.entry.get("timestampConfig"):
        built.add("timestamp index")
    asked = [(kind.lower(), f"index type {kind}") for kind in sorted(given.types - _NO_INDEXES)]
    nested = sorted(filter(given.is_nested, given.nested.keys() - _OWN_INDEXES))
    for key, shown in (*asked, *((key, f"indexes.{key}") for key in nested)):
        if key in _SERVER_BUILT:
            built.add(_SERVER_BUILT[key])
        else:
            given.refuse(Feature.NEEDS_BUILDER, shown)
    return built


_INGESTION = (
    "complexTypeConfig",
    "enrichmentConfigs",
    "schemaConformingTransformerConfig",
    "schemaConformingTransformerV2Config",
    "aggregationConfigs",
)


class RowTimes(StrEnum):
    """Which times a row may have (`ingestionConfig.rowTimeValueCheck`, which Pinot has since 0.12).

    :cvar ANY: every time.
    :cvar VALID: those within Pinot's valid interval, 1971 to 2071; another one fails the file.
    :cvar REPLACED: the same, but another one becomes null (`continueOnError`): the column's default, or the
        time of the build.
    """

    ANY = "any"
    VALID = "valid"
    REPLACED = "replaced"


@dataclass(frozen=True)
class SegmentSpec:
    """Everything about a table that the segment writer needs. Plain values, so it can be pickled.

    :ivar columns: the columns, in UTF-16 order of their names.
    :ivar time_column: name of the table's time column, if it has one.
    :ivar time_format: format of the time column's values.
    :ivar check_time: whether start and end must lie within Pinot's valid interval, 1971 to 2071
        (`ingestionConfig.segmentTimeValueCheck`).
    :ivar row_times: which times the rows may have.
    :ivar target: the format of the segments.
    :ivar indexes: by column name, the indexes besides dictionary, forward index and null vector.
    :ivar partitionings: by column name, how partitioned columns are partitioned.
    :ivar sort_order: the columns by which the rows of a segment are sorted, the first one first.
    :ivar notes: for people: what is accepted, but left to the server or not imitated.
    """

    columns: tuple[Column, ...]
    time_column: str | None
    time_format: TimeFormat | None
    check_time: bool
    row_times: RowTimes
    target: Target
    indexes: Mapping[str, Indexes]
    partitionings: Mapping[str, Partitioning]
    sort_order: tuple[str, ...]
    notes: tuple[str, ...]

    @classmethod
    def from_pinot(
        cls, schema: JsonMapping, table_config: JsonMapping, *, write_for: str = REFERENCE
    ) -> SegmentSpec:
        """Read Pinot's schema and table config.

        :param schema: Pinot schema, as JSON values.
        :param table_config: Pinot table config of an OFFLINE table, as JSON values.
        :param write_for: oldest server that must read the segments, `major.minor`.
        :raises UnsupportedFeature: lists every column and feature that cannot be written.
        """
        findings = Findings()
        check_shape(schema, table_config, findings)
        if findings.problems:
            raise _cannot(findings.problems)
        target = _parse_target(write_for, findings)
        indexing = table_config.get("tableIndexConfig") or {}
        columns = read_columns(schema, is_true(indexing.get("nullHandlingEnabled")), findings)
        _check_table_config(table_config, findings)
        settings = [ColumnSettings(column, table_config, findings) for column in columns]
        indexes = read_indexes(table_config, settings, target, findings)
        partitionings = read_partitionings(indexing, columns, target, findings)
        sort_order = tuple(indexing.get("sortedColumn") or ())
        single = {column.name for column in columns if column.single_value}
        for name in sort_order:
            if name not in single:
                findings.refuse(f"column {name}", Feature.SORTED_COLUMN_INVALID, "sortedColumn")
        for place, given in enumerate(settings):
            inverted = indexes.get(given.column.name, Indexes()).inverted
            columns[place] = replace(given.column, encoding=read_encoding(given, target, inverted))
        for column in columns:
            if not target.any_column_name and not column.name.isascii():
                findings.refuse(f"column {column.name}", Feature.COLUMN_NAME, NAME_OUTSIDE_ASCII)
        time_column = (table_config.get("segmentsConfig") or {}).get("timeColumnName") or None
        time_format = None if time_column is None else _time_format(time_column, columns, findings)
        if findings.problems:
            raise _cannot(findings.problems)
        ingestion = table_config.get("ingestionConfig") or {}
        return cls(
            columns=tuple(sorted(columns, key=lambda column: utf16_key(column.name))),
            time_column=time_column,
            time_format=time_format,
            check_time=is_true(ingestion.get("segmentTimeValueCheck", True)),
            row_times=_row_times(ingestion),
            target=target,
            indexes=indexes,
            partitionings=partitionings,
            sort_order=sort_order,
            notes=tuple(findings.notes),
        )

    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow types that `build_segment` takes, in the order of `columns`.

        Text may also be large_string or dictionary-encoded, BIG_DECIMAL decimals or integers, instants in
        other units if no digit is lost, a multi-value column any kind of list or single values. A column may
        be missing: it is then all null.
        """
        fields = [(column, STORAGE[column.data_type].arrow) for column in self.columns]
        return pa.schema(
            [(column.name, kind if column.single_value else pa.list_(kind)) for column, kind in fields]
        )


def _cannot(problems: list[str]) -> UnsupportedFeature:
    fixes = dict.fromkeys(fix for problem in problems if (fix := fix_of(problem)))
    otherwise = "change schema or table config, or leave these features out of the table"
    return UnsupportedFeature(
        "The segment writer cannot build this table as configured",
        why="; ".join(dict.fromkeys(problems)),
        hint="; or ".join((*fixes, otherwise)),
    )


def _parse_target(text: str, findings: Findings) -> Target:
    try:
        return target_for(text)
    except ValueError as error:
        findings.refuse(f"writeFor {text}", Feature.OLD_SERVER, str(error))
        return target_for(REFERENCE)


def _check_table_config(config: JsonMapping, findings: Findings) -> None:
    """Check the settings of a table config besides encodings, indexes, partitions and sort order."""
    indexing = config.get("tableIndexConfig") or {}
    if is_true(indexing.get("aggregateMetrics")):
        findings.refuse("tableIndexConfig.aggregateMetrics", Feature.INGESTION, "aggregated rows")
    version = indexing.get("segmentFormatVersion")
    if version and str(version).lower() != "v3":
        where = "tableIndexConfig.segmentFormatVersion"
        findings.refuse(where, Feature.NEEDS_BUILDER, f"segment format {version}")
    if is_true(indexing.get("optimizeNoDictStatsCollection")):
        findings.notes.append("optimizeNoDictStatsCollection: cardinalities are exact")
    if is_true(indexing.get("compressionStatsEnabled")):
        findings.notes.append("compressionStatsEnabled: the segments have no statistics of their compression")
    ingestion = config.get("ingestionConfig") or {}
    for key in filter(ingestion.get, _INGESTION):
        what = "rows that are changed while they are read"
        findings.refuse(f"ingestionConfig.{key}", Feature.INGESTION, what)
    if _row_times(ingestion) is RowTimes.REPLACED:
        findings.notes.append(
            "ingestionConfig.rowTimeValueCheck: with continueOnError, a time before 1971 or after 2071 "
            "becomes the column's default, or the time of the build; the check times_replaced counts them"
        )
    if is_true(ingestion.get("continueOnError")):
        findings.notes.append(
            "ingestionConfig.continueOnError: a value that does not fit its column fails the file"
        )
    findings.problems += read_transforms(config).problems
    for key in ("upsertConfig", "dedupConfig"):
        section = config.get(key) or {}
        if section and str(section.get("mode", "")).upper() != "NONE":
            findings.refuse(key, Feature.UPSERT, "upsert or dedup")


def _row_times(ingestion: JsonMapping) -> RowTimes:
    if not is_true(ingestion.get("rowTimeValueCheck")):
        return RowTimes.ANY
    return RowTimes.REPLACED if is_true(ingestion.get("continueOnError")) else RowTimes.VALID


def _time_format(name: str, columns: list[Column], findings: Findings) -> TimeFormat | None:
    """Return the format of the table's time column; refuse a column or format that cannot be used."""
    where = f"column {name}"
    column = next((column for column in columns if column.name == name), None)
    if column is None or column.format is None:
        what = "the table's time column is not a supported DATE_TIME field of the schema"
        findings.refuse(where, Feature.TIME_COLUMN, what)
        return None
    try:
        time_format = parse_format(column.format)
    except ValueError as error:
        findings.refuse(where, Feature.TIME_FORMAT_OTHER, f"time format {column.format}: {error}")
        return None
    allowed = {
        TimeFormatKind.EPOCH: {DataType.INT, DataType.LONG},
        TimeFormatKind.TIMESTAMP: {DataType.TIMESTAMP},  # Pinot cannot write "now" into such a LONG column
        TimeFormatKind.SIMPLE_DATE_FORMAT: {DataType.INT, DataType.LONG, DataType.STRING},
    }[time_format.kind]
    if column.data_type not in allowed:
        what = f"a time column of type {column.data_type} with format {column.format}"
        findings.refuse(where, Feature.TIME_COLUMN, what)
    elif not _holds(column.data_type, text := time_format.from_ms(VALID_FROM_MS)):
        what = f"a time column of type {column.data_type} that cannot hold {text}, a time in its format"
        findings.refuse(where, Feature.TIME_COLUMN, what)
    return time_format


def _holds(data_type: DataType, time: str) -> bool:
    """Whether a column of the type can hold a time of its format: a null becomes the current time."""
    most = {DataType.INT: 2**31 - 1, DataType.LONG: 2**63 - 1}.get(data_type)
    return most is None or (time.isdecimal() and int(time) <= most)
