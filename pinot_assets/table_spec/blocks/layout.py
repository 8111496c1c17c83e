"""The `layout:` block: how the rows of files lie in segments.

Source: docs/tables.md#layout.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from pinot_assets.core.json_object import JsonObject
from pinot_assets.expressions.syntax import PINOT, SPARK, ExpressionRefused, column_names
from pinot_assets.pinot.table_config import setting
from pinot_assets.segment.column.unsupported import is_true
from pinot_assets.segment.values.cells import CellSettings, TimeSlice
from pinot_assets.table_spec.blocks.ingestion import FileIngestion
from pinot_assets.table_spec.blocks.pinot_json import field_specs
from pinot_assets.table_spec.yaml.document import DocumentNode, Problem, did_you_mean
from pinot_assets.table_spec.yaml.values import (
    AnyCase,
    Flag,
    Positive,
    Size,
    no_plain_value,
    reason_of,
    size_bytes,
    yaml_keys,
)

PROVENANCE: Final = "provenanceColumn"
PACK: Final = "pack"
TARGET_SIZE: Final = "targetSegmentSize"
WAIT_FOR: Final = "waitFor"
MERGE_BYTES: Final = "maxMergeBytes"
PARTITION: Final = "partition"
TIME_SLICE: Final = "timeSlice"


SliceName = Annotated[Literal["DAY", "WEEK", "MONTH", "YEAR"], AnyCase()]


class WaitFor(BaseModel):
    """How long new files wait for others before a schedule or a sensor starts a session."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    minutes: Positive
    """They wait at most so long, counted from the time at which the oldest was written."""
    bytes: Size | None = None
    """They wait no longer once they have so many bytes together."""

    @property
    def enough_bytes(self) -> int | None:
        """`bytes` as a number."""
        return None if self.bytes is None else size_bytes(self.bytes)


_WAIT_JSON: Final[JsonObject] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["minutes"],
    "properties": {"minutes": {"type": ["integer", "string"]}, "bytes": {"type": ["integer", "string"]}},
}


class LayoutSettings(BaseModel):
    """How the rows of files lie in segments."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    provenance_column: Annotated[str, Field(alias=PROVENANCE)] = ""
    """A STRING column of the schema that gets, in each row, the path of its file below inputDirURI."""
    pack: Flag = False
    """Put the rows of small files into common segments."""
    target_segment_size: Annotated[Size, Field(alias=TARGET_SIZE)] = "300mb"
    """Size of such a segment as a server holds it, unpacked."""
    wait_for: Annotated[WaitFor | None, Field(alias=WAIT_FOR), WithJsonSchema(_WAIT_JSON)] = None
    """How long new files wait for others, so that there are fewer and larger segments."""
    max_merge_bytes: Annotated[Size, Field(alias=MERGE_BYTES)] = "2g"
    """How much of published packs one run writes again to merge them; 0 merges none."""
    partition: Flag = False
    """Every segment has rows of one partition of `segmentPartitionConfig`."""
    time_slice: Annotated[SliceName | None, Field(alias=TIME_SLICE)] = None
    """Every segment has rows of one day, week (from Monday), month or year of the time column, in UTC."""

    @property
    def cells(self) -> CellSettings | None:
        """What decides which rows may share a segment; None if all may."""
        has_cells = self.pack and (self.partition or self.time_slice is not None)
        if not has_cells:
            return None
        return CellSettings(self.partition, TimeSlice(self.time_slice) if self.time_slice else None)

    @property
    def coarser_slice(self) -> SliceName | None:
        """The next longer time slice; None for years, or without slices."""
        slices = get_args(get_args(SliceName)[0])
        longer = slices[slices.index(self.time_slice) + 1 :] if self.time_slice else ()
        return next(iter(longer), None)

    @property
    def target_bytes(self) -> int:
        """`targetSegmentSize` in bytes."""
        return size_bytes(self.target_segment_size)

    @property
    def merge_bytes(self) -> int:
        """`maxMergeBytes` in bytes; 0 without packs."""
        return size_bytes(self.max_merge_bytes) if self.pack else 0

    @property
    def small_below(self) -> int:
        """Bytes below which the rows of a file go into a pack; 0 without packs. A task has all rows of such a
        file in memory, and the file may be compressed. With cells every file's rows go into packs."""
        if self.cells is not None:
            return _ANY
        return min(self.target_bytes // 4, _MOST_SMALL) if self.pack else 0


_MOST_SMALL: Final = 75 << 20
_ANY: Final = sys.maxsize
_LEAST_TARGET: Final = 1 << 20
_MOST_TARGET: Final = 2 << 30
_KEYS: Final = yaml_keys(LayoutSettings)


def read_layout_block(block: DocumentNode) -> tuple[LayoutSettings, list[Problem]]:
    """Read the `layout:` block.

    :returns: the layout, with defaults for what is wrong, and its problems.
    """
    if not isinstance(block.value, dict):
        what = "is empty" if block.value is None else "is not a mapping"
        fix = f"write {PROVENANCE}: <column> or {PACK}: true below it, or remove it"
        return LayoutSettings(), [block.problem(what, fix)]
    values: JsonObject = {}
    problems: list[Problem] = []
    for key in block.value:
        wrong = [*_misshapen(block.at(key), key)]
        problems += wrong
        if not wrong:
            values[key] = block.value[key]
    try:
        return LayoutSettings.model_validate(values), problems
    except ValidationError as invalid:
        for error in invalid.errors(include_input=False, include_url=False):
            problems.append(block.at(*error["loc"]).problem(reason_of(error)))
    return LayoutSettings(), problems


def _misshapen(place: DocumentNode, key: str) -> Iterator[Problem]:
    if key not in _KEYS:
        yield place.unknown_key("the layout block", _KEYS)
    elif key == PROVENANCE and (not isinstance(place.value, str) or not place.value):
        yield place.problem("is not the name of a column", f"{PROVENANCE}: source_file")
    elif key == WAIT_FOR:
        yield from _misshapen_wait(place)
    elif problem := no_plain_value(place):
        yield problem


def _misshapen_wait(place: DocumentNode) -> Iterator[Problem]:
    if not isinstance(place.value, dict):
        yield place.problem("is not a mapping", "waitFor: {minutes: 60, bytes: 100MB}")
        return
    known = yaml_keys(WaitFor)
    for key in place.value:
        part = place.at(key)
        if key not in known:
            yield part.unknown_key("waitFor", known)
        elif problem := no_plain_value(part):
            yield problem
    if "minutes" not in place.value and {*place.value} <= {*known}:
        reason = "says no minutes: files that never become enough would wait for ever"
        yield place.problem(reason, "waitFor: {minutes: 60, bytes: 100MB}")


def layout_problems(
    block: DocumentNode,
    layout: LayoutSettings,
    schema: DocumentNode,
    table: DocumentNode,
    ingestion: FileIngestion,
) -> Iterator[Problem]:
    """Yield what is wrong with the layout together with the rest of the spec.

    :param schema: a schema without problems of its own.
    :param table: a table config without problems of its own.
    """
    yield from _pack_problems(block, layout, ingestion)
    if layout.provenance_column:
        yield from _provenance_problems(
            block.at(PROVENANCE), layout.provenance_column, schema, table, ingestion
        )


def _pack_problems(
    block: DocumentNode, layout: LayoutSettings, ingestion: FileIngestion
) -> Iterator[Problem]:
    if not layout.pack:
        for key in (TARGET_SIZE, WAIT_FOR, MERGE_BYTES, PARTITION, TIME_SLICE):
            if key in block.mapping:
                yield block.at(key).problem("has no meaning without packs", "write pack: true beside it")
        return
    if layout.wait_for is not None and ingestion.mode == "swap":
        reason = "is not possible for a swap, which reads all files each time"
        yield block.at(WAIT_FOR).problem(reason, "remove it")
    place = block.at(PACK)
    if ingestion.push_kind == "plain":
        reason = "needs a consistent push: a plain one shows each file on its own"
        yield place.problem(reason, "write consistentPushEnabled: true, or remove pack")
    if layout.target_bytes < _LEAST_TARGET:
        reason = f"is {layout.target_bytes:,} bytes, and the smallest target is 1 MB"
        yield block.at(TARGET_SIZE).problem(reason, "write 300MB")
    if layout.target_bytes > _MOST_TARGET:
        reason = "is above 2 GB: a server loads a segment as a whole, and a worker builds it in memory"
        yield block.at(TARGET_SIZE).problem(reason, "write 300MB")
    if layout.wait_for is not None and layout.wait_for.enough_bytes == 0:
        reason = "is 0, so no file would wait"
        yield block.at(WAIT_FOR, "bytes").problem(reason, "write bytes: 100MB, or remove it")


def _provenance_problems(
    place: DocumentNode, name: str, schema: DocumentNode, table: DocumentNode, ingestion: FileIngestion
) -> Iterator[Problem]:
    columns = {spec.mapping["name"]: (kind, spec.mapping) for kind, spec in field_specs(schema)}
    if name not in columns:
        fix = did_you_mean(name, columns) or "add it to dimensionFieldSpecs, with dataType STRING"
        yield place.problem(f"{name} is no column of the schema", fix)
        return
    kind, field = columns[name]
    is_multi_value = "singleValueField" in field and not is_true(field["singleValueField"])
    data_type = str(field.get("dataType")).upper()
    if kind != "DIMENSION":
        reason = f"{name} is a column of dateTimeFieldSpecs or metricFieldSpecs, and has to be a dimension"
        yield place.problem(reason, "add a STRING column to dimensionFieldSpecs")
    elif data_type != "STRING":
        yield place.problem(f"{name} is {data_type}, and has to be STRING", "choose or add a STRING column")
    elif is_multi_value:
        yield place.problem(f"{name} has several values a row", "choose or add a column of one STRING")
    elif is_true(field.get("notNull")):
        reason = f"{name} has notNull, but it is null in rows that were published before"
        yield place.problem(reason, "remove notNull from the column")
    if makers := [*_makers(name, table, ingestion)]:
        reason = f"{name} is filled with the file's path, so {' and '.join(makers)} cannot fill it"
        yield place.problem(reason, "remove the expression, or choose another column")
    if readers := [*_readers(name, table, ingestion)]:
        reason = f"{' and '.join(readers)} cannot read {name}: no file has it"
        fix = "remove it from the expression; in Spark SQL, _metadata.file_path has the file's address"
        yield place.problem(reason, fix)


def _transform_configs(table: DocumentNode) -> Iterator[tuple[str, str]]:
    """Yield column and function of each entry of Pinot's `transformConfigs`."""
    for place in table.items("ingestionConfig", "transformConfigs"):
        yield str(place.mapping.get("columnName")), str(place.mapping.get("transformFunction"))


def _makers(name: str, table: DocumentNode, ingestion: FileIngestion) -> Iterator[str]:
    if name in ingestion.transforms:
        yield f"transforms.{name}"
    if name in dict(_transform_configs(table)):
        yield f"transformConfigs of {name}"


def _readers(name: str, table: DocumentNode, ingestion: FileIngestion) -> Iterator[str]:
    of_pinot = setting(table.value, "ingestionConfig", "filterConfig", "filterFunction")
    of_spark = {"filter": ingestion.filter}
    of_spark |= {f"transforms.{column}": sql for column, sql in ingestion.transforms.items()}
    functions = {f"transformConfigs of {column}": made for column, made in _transform_configs(table)}
    functions["filterConfig"] = str(of_pinot or "")
    for dialect, expressions in ((SPARK, of_spark), (PINOT, functions)):
        for key, text in expressions.items():
            with suppress(ExpressionRefused):  # which is a problem of its own
                if name in column_names(text, dialect):
                    yield key
