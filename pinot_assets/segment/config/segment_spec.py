"""What to write, read from Pinot's own schema and table config; what cannot be written is refused here.

Nothing is read before this has passed, and all problems are named at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.untrusted import whole_number
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.segment.column.fields import Column, read_columns
from pinot_assets.segment.column.json_values import is_true
from pinot_assets.segment.column.support import Feature, refusals
from pinot_assets.segment.column.text import utf16_key
from pinot_assets.segment.column.types import STORAGE, DataType
from pinot_assets.segment.config.encodings import read_encoding
from pinot_assets.segment.config.indexes import Indexes, read_indexes
from pinot_assets.segment.config.json_shape import check_shape
from pinot_assets.segment.config.partitions import read_partitionings, read_sort_order
from pinot_assets.segment.config.table_config import check_table_config
from pinot_assets.segment.functions.time_format import VALID_FROM_MS, TimeFormat, TimeFormatKind, parse_format
from pinot_assets.segment.values.partition import Partitioning

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
        if problems := check_shape(schema, table_config):
            raise _cannot(problems)
        server, problems = _parse_server(min_server)
        indexing = table_config.get("tableIndexConfig") or {}
        columns, found = read_columns(schema, is_true(indexing.get("nullHandlingEnabled")))
        problems += found
        found, notes = check_table_config(table_config)
        problems += found
        indexes, found, told = read_indexes(table_config, columns)
        problems += found
        notes += told
        partitionings, found = read_partitionings(indexing, columns, server)
        problems += found
        sort_order, found = read_sort_order(indexing, columns)
        problems += found
        for place, column in enumerate(columns):
            inverted = indexes.get(column.name, Indexes()).inverted
            encoding, wrong = read_encoding(column, table_config, server, inverted)
            columns[place] = replace(column, encoding=encoding)
            problems += refusals(f"column {column.name}", wrong)
        if server < REFERENCE_SERVER:
            problems += [
                Feature.COLUMN_NAME.refusal(
                    f"column {column.name}", "a name outside ASCII for a server before 1.5"
                )
                for column in columns
                if not column.name.isascii()
            ]
        time_column = (table_config.get("segmentsConfig") or {}).get("timeColumnName") or None
        time_format, found = _time_format(time_column, columns)
        problems += found
        if problems:
            raise _cannot(problems)
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
            notes=tuple(notes),
        )

    def arrow_schema(self) -> pa.Schema:
        """The Arrow types that `build_segment` takes, in the order of `columns`.

        Text may also come as large_string or dictionary-encoded, BIG_DECIMAL as decimals or integers,
        instants in other units as long as no digit is lost, a multi-value column as any kind of list or as
        single values; a column may be missing, which means all null.
        """
        return pa.schema([(column.name, _arrow_type(column)) for column in self.columns])


def _cannot(problems: list[str]) -> UnsupportedFeature:
    return UnsupportedFeature(
        "The segment writer cannot build this table as configured",
        why="; ".join(dict.fromkeys(problems)),
        hint="Change schema or table config, or leave these features out of the table.",
    )


def _arrow_type(column: Column) -> pa.DataType:
    value = STORAGE[column.data_type].arrow
    return value if column.single_value else pa.list_(value)


def _parse_server(text: str) -> tuple[tuple[int, int], list[str]]:
    parts = text.split(".")
    major, minor = (whole_number(part) for part in (*parts, "", "")[:2])
    if major is None or minor is None:
        return REFERENCE_SERVER, [
            Feature.OLD_SERVER.refusal(f"min_server {text}", "not a version such as 1.5")
        ]
    version = (major, minor)
    if version < OLDEST_SERVER:
        return version, [Feature.OLD_SERVER.refusal(f"min_server {text}", "older than 0.11")]
    return version, []


def _time_format(name: str | None, columns: list[Column]) -> tuple[TimeFormat | None, list[str]]:
    """The format of the table's time column, and what is wrong with it."""
    if name is None:
        return None, []
    column = next((column for column in columns if column.name == name), None)
    if column is None or column.format is None:
        what = "the table's time column is not a supported DATE_TIME field of the schema"
        return None, [Feature.TIME_COLUMN.refusal(f"column {name}", what)]
    try:
        time_format = parse_format(column.format)
    except ValueError as error:
        what = f"time format {column.format}: {error}"
        return None, [Feature.TIME_FORMAT_OTHER.refusal(f"column {name}", what)]
    allowed = {
        TimeFormatKind.EPOCH: {DataType.INT, DataType.LONG},
        TimeFormatKind.TIMESTAMP: {DataType.TIMESTAMP},  # Pinot cannot write now into a LONG of this format
        TimeFormatKind.SIMPLE_DATE_FORMAT: {DataType.INT, DataType.LONG, DataType.STRING},
    }[time_format.kind]
    if column.data_type not in allowed:
        what = f"a time column of type {column.data_type} with format {column.format}"
        return None, [Feature.TIME_COLUMN.refusal(f"column {name}", what)]
    if not _holds(column.data_type, text := time_format.from_ms(VALID_FROM_MS)):
        what = f"a time column of type {column.data_type} that cannot hold {text}, a time in its format"
        return None, [Feature.TIME_COLUMN.refusal(f"column {name}", what)]
    return time_format, []


def _holds(data_type: DataType, time: str) -> bool:
    """Whether a column of the type can hold it: a null becomes the time of now."""
    most = {DataType.INT: 2**31 - 1, DataType.LONG: 2**63 - 1}.get(data_type)
    return most is None or (time.isdecimal() and int(time) <= most)
