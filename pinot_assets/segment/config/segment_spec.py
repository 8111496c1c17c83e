"""What to write, read from Pinot's own schema and table config; what cannot be written is refused here.

Nothing is read before this has passed, and all problems are named at once. A setting is honoured, of no
concern to a segment, or refused because the segment would differ from what Pinot would build.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.untrusted import whole_number
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.segment.column.support import Feature, Findings, check_shape, is_true
from pinot_assets.segment.column.types import STORAGE, Column, DataType, utf16_key
from pinot_assets.segment.config.columns import ColumnSettings, read_columns, read_encoding
from pinot_assets.segment.config.indexes import Indexes, read_indexes
from pinot_assets.segment.config.transforms import read_transforms
from pinot_assets.segment.functions.time_format import VALID_FROM_MS, TimeFormat, TimeFormatKind, parse_format
from pinot_assets.segment.values.partition import Partitioning, read_partitionings

_INGESTION = (
    "complexTypeConfig",
    "enrichmentConfigs",
    "schemaConformingTransformerConfig",
    "schemaConformingTransformerV2Config",
    "aggregationConfigs",
)


OLDEST_SERVER = (0, 11)
REFERENCE_SERVER = (1, 5)


@dataclass(frozen=True)
class SegmentSpec:
    """Everything about a table that the segment writer needs. Plain values, so it can be pickled.

    :ivar columns: the columns, in UTF-16 order of their names.
    :ivar time_column: name of the table's time column, if it has one.
    :ivar time_format: how its values are to be read.
    :ivar check_time: whether start and end must lie within Pinot's valid interval, 1971 to 2071
        (`ingestionConfig.segmentTimeValueCheck`).
    :ivar min_server: the oldest Pinot server that must be able to read the segments, as (major, minor).
    :ivar indexes: what is written of a column beside dictionary, forward index and null vector, by its name.
    :ivar partitionings: how partitioned columns are partitioned, by their names.
    :ivar sort_order: the columns by which the rows of a segment are sorted, the first one first.
    :ivar notes: what is accepted but left to the server or not imitated, for people.
    """

    columns: tuple[Column, ...]
    time_column: str | None
    time_format: TimeFormat | None
    check_time: bool
    min_server: tuple[int, int]
    indexes: Mapping[str, Indexes]
    partitionings: Mapping[str, Partitioning]
    sort_order: tuple[str, ...]
    notes: tuple[str, ...]

    @classmethod
    def from_pinot(
        cls, schema: JsonMapping, table_config: JsonMapping, *, min_server: str = "1.5"
    ) -> SegmentSpec:
        """Read Pinot's schema and table config.

        :param schema: Pinot schema, as JSON values.
        :param table_config: Pinot table config of an OFFLINE table, as JSON values.
        :param min_server: oldest server that must read the segments, `major.minor`.
        :raises UnsupportedFeature: the text lists every column and feature that cannot be written.
        """
        findings = Findings()
        check_shape(schema, table_config, findings)
        if findings.problems:
            raise _cannot(findings.problems)
        server = _parse_server(min_server, findings)
        indexing = table_config.get("tableIndexConfig") or {}
        columns = read_columns(schema, is_true(indexing.get("nullHandlingEnabled")), findings)
        _check_table_config(table_config, findings)
        settings = [ColumnSettings(column, table_config, findings) for column in columns]
        indexes = read_indexes(table_config, settings, findings)
        partitionings = read_partitionings(indexing, columns, server, findings)
        sort_order = tuple(indexing.get("sortedColumn") or ())
        single = {column.name for column in columns if column.single_value}
        for name in sort_order:
            if name not in single:
                findings.refuse(f"column {name}", Feature.SORTED_COLUMN_INVALID, "sortedColumn")
        for place, given in enumerate(settings):
            inverted = indexes.get(given.column.name, Indexes()).inverted
            columns[place] = replace(given.column, encoding=read_encoding(given, server, inverted))
        for column in columns:
            if server < REFERENCE_SERVER and not column.name.isascii():
                what = "a name outside ASCII for a server before 1.5"
                findings.refuse(f"column {column.name}", Feature.COLUMN_NAME, what)
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
            min_server=server,
            indexes=indexes,
            partitionings=partitionings,
            sort_order=sort_order,
            notes=tuple(findings.notes),
        )

    def arrow_schema(self) -> pa.Schema:
        """The Arrow types that `build_segment` takes, in the order of `columns`.

        Text may also come as large_string or dictionary-encoded, BIG_DECIMAL as decimals or integers,
        instants in other units as long as no digit is lost, a multi-value column as any kind of list or as
        single values; a column may be missing, which means all null.
        """
        fields = [(column, STORAGE[column.data_type].arrow) for column in self.columns]
        return pa.schema(
            [(column.name, kind if column.single_value else pa.list_(kind)) for column, kind in fields]
        )


def _cannot(problems: list[str]) -> UnsupportedFeature:
    return UnsupportedFeature(
        "The segment writer cannot build this table as configured",
        why="; ".join(dict.fromkeys(problems)),
        hint="Change schema or table config, or leave these features out of the table.",
    )


def _parse_server(text: str, findings: Findings) -> tuple[int, int]:
    parts = text.split(".")
    major, minor = (whole_number(part) for part in (*parts, "", "")[:2])
    if major is None or minor is None:
        findings.refuse(f"min_server {text}", Feature.OLD_SERVER, "not a version such as 1.5")
        return REFERENCE_SERVER
    if (major, minor) < OLDEST_SERVER:
        findings.refuse(f"min_server {text}", Feature.OLD_SERVER, "older than 0.11")
    return major, minor


def _check_table_config(config: JsonMapping, findings: Findings) -> None:
    """What a table config asks for beside encodings, indexes, partitions and sort order."""
    indexing = config.get("tableIndexConfig") or {}
    if is_true(indexing.get("aggregateMetrics")):
        findings.refuse("tableIndexConfig.aggregateMetrics", Feature.INGESTION, "aggregated rows")
    version = indexing.get("segmentFormatVersion")
    if version and str(version).lower() != "v3":
        where = "tableIndexConfig.segmentFormatVersion"
        findings.refuse(where, Feature.NEEDS_BUILDER, f"segment format {version}")
    if is_true(indexing.get("optimizeNoDictStatsCollection")):
        findings.notes.append("optimizeNoDictStatsCollection: cardinalities are exact")
    ingestion = config.get("ingestionConfig") or {}
    for key in filter(ingestion.get, _INGESTION):
        what = "rows that are changed while they are read"
        findings.refuse(f"ingestionConfig.{key}", Feature.INGESTION, what)
    if is_true(ingestion.get("rowTimeValueCheck")):
        findings.refuse("ingestionConfig.rowTimeValueCheck", Feature.INGESTION, "rows that are dropped")
    if is_true(ingestion.get("continueOnError")):
        findings.notes.append(
            "ingestionConfig.continueOnError: a value that does not fit its column fails the file"
        )
    findings.problems += read_transforms(config).problems
    for key in ("upsertConfig", "dedupConfig"):
        section = config.get(key) or {}
        if section and str(section.get("mode", "")).upper() != "NONE":
            findings.refuse(key, Feature.UPSERT, "upsert or dedup")


def _time_format(name: str, columns: list[Column], findings: Findings) -> TimeFormat | None:
    """The format of the table's time column; what is wrong with it is refused."""
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
        TimeFormatKind.TIMESTAMP: {DataType.TIMESTAMP},  # Pinot cannot write now into a LONG of this format
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
    """Whether a column of the type can hold it: a null becomes the time of now."""
    most = {DataType.INT: 2**31 - 1, DataType.LONG: 2**63 - 1}.get(data_type)
    return most is None or (time.isdecimal() and int(time) <= most)
