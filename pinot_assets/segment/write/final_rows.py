"""Rows as a segment stores them, before any segment has them.

Rows that wait for a segment are cleaned when they are read: then all that can fail does so while their file
is known, and a segment that is built of them a month later has the same values
(docs/design/layout.md#words).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.errors import BuildError
from pinot_assets.segment.column.types import Column, DataType, Default
from pinot_assets.segment.config.segment_spec import SegmentSpec
from pinot_assets.segment.values.cells import (
    Cells,
    CellSettings,
    crossed,
    partition_cells,
    slice_cells,
    times_ms,
)
from pinot_assets.segment.values.hashing import has_halves, plain_texts
from pinot_assets.segment.values.normalize import NOTHING, Cut, Mask, Normalized, is_sanitised
from pinot_assets.segment.values.ordered_values import order_values
from pinot_assets.segment.values.partition import partitions
from pinot_assets.segment.write.segment import cleaned_column, require_whole_texts, times_between


@dataclass(frozen=True, slots=True)
class FinalRows:
    """Rows with the values that a segment stores.

    :ivar table: null is null in it, but for times: what replaces a null time depends on the day.
    :ivar null_times: the rows whose time was null; None if none was.
    :ivar cut: how many values of a column lost something, for the columns with such values.
    :ivar cells: None for a table without cells.
    """

    table: pa.Table
    null_times: Mask | None
    cut: Mapping[str, Cut]
    cells: Cells | None = None

    def at(self, order: npt.NDArray[np.int64]) -> FinalRows:
        """Return some of the rows, in the order of these positions, without cells."""
        null_times = None if self.null_times is None else self.null_times[order]
        return FinalRows(self.table.combine_chunks().take(pa.array(order)), null_times, {})

    def slice(self, first: int, rows: int) -> FinalRows:
        """Return rows that lie one after the other, without cells."""
        null_times = None if self.null_times is None else self.null_times[first : first + rows]
        has_nulls = null_times is not None and null_times.any()
        return FinalRows(self.table.slice(first, rows), null_times if has_nulls else None, {})


def final_rows(table: pa.Table, spec: SegmentSpec, now_ms: int, by: CellSettings | None = None) -> FinalRows:
    """Return the rows of one or more files as a segment stores them.

    :param table: at least one row, with the columns of `SegmentSpec.arrow_schema`.
    :param now_ms: see `build_segment`.
    :param by: what decides their cells; None for a table without cells.
    :raises BuildError: no segment can have these rows.
    """
    columns: dict[str, pa.ChunkedArray | pa.Array] = {}
    cut: dict[str, Cut] = {}
    null_times = None
    by_time, by_partition = list[Cells](), list[Cells]()
    schema = spec.arrow_schema()
    for column in spec.columns:
        data, kind = table.column(column.name), schema.field(column.name).type
        how, is_time = spec.partitionings.get(column.name), column.name == spec.time_column
        if how is None and not is_time and _stays(column, data, kind, spec):
            columns[column.name] = data
            continue
        cleaned = cleaned_column(data, column=column, rows=table.num_rows, spec=spec, now_ms=now_ms)
        if spec.target.exact_lengths:
            require_whole_texts(column, cleaned)
        if how is not None:
            numbers = partitions(column.name, how, plain_texts(column.data_type, cleaned.values))
            if by is not None and by.partition:
                by_partition.append(partition_cells(column.name, how, numbers[cleaned.codes]))
        if any(cleaned.cut):
            cut[column.name] = cleaned.cut
        if is_time:
            times_between(spec, *_bounds(column, cleaned))
            if by is not None and by.time_slice is not None and spec.time_format is not None:
                moments = times_ms(column.name, spec.time_format, cleaned.values)[cleaned.codes]
                by_time.append(slice_cells(by.time_slice, moments))
            null_times = cleaned.is_null if cleaned.is_null.any() else None
        if is_time or cleaned.cut != NOTHING or column.data_type is DataType.JSON:
            columns[column.name] = _as_arrow(cleaned, kind, is_time)
        else:
            columns[column.name] = data if data.type == kind else data.cast(kind)
    if by is not None and (len(by_partition), len(by_time)) != (by.partition, by.time_slice is not None):
        raise BuildError(
            "segments cannot have rows of one partition and time slice",
            why=f"{len(by_partition)} partitioned columns and {len(by_time)} time columns decide about them",
            hint="correct `partition` and `timeSlice` in the table spec's layout block",
        )
    cells = crossed([*by_time, *by_partition]) if by is not None else None
    return FinalRows(pa.table(columns), null_times, cut, cells)


def _stays(column: Column, data: pa.ChunkedArray, kind: pa.DataType, spec: SegmentSpec) -> bool:
    """Whether a column's values are certainly stored as they are, without looking for those that repeat."""
    if not column.single_value or data.type != kind:
        return False
    if pt.is_primitive(kind) and not pt.is_temporal(kind):
        return True
    if column.data_type is not DataType.STRING or not (pt.is_string(kind) or pt.is_large_string(kind)):
        return False
    texts = data.drop_null().cast(pa.large_binary()).combine_chunks()
    return is_sanitised(column, texts) and not (spec.target.exact_lengths and has_halves(texts))


def _bounds(column: Column, times: Normalized) -> tuple[Default, Default]:
    """Return the lowest and the highest value of a time column."""
    if isinstance(times.values, np.ndarray):
        return times.values.min().item(), times.values.max().item()
    ordered = order_values(column, times)
    return ordered.lowest, ordered.highest


def _as_arrow(cleaned: Normalized, kind: pa.DataType, is_time: bool) -> pa.Array:
    """Return a column's values as Arrow has them.

    :param is_time: whether nulls keep the value that replaced them.
    """
    values = cleaned.values
    assert isinstance(values, (np.ndarray, pa.Array))  # decimals are neither cut nor times
    taken = pa.array(values).take(pa.array(cleaned.codes))
    if cleaned.lengths is None:
        taken = _cast(taken, kind)
        return taken if is_time else pc.if_else(pa.array(~cleaned.is_null), taken, pa.scalar(None, kind))
    ends = np.concatenate(([0], np.cumsum(cleaned.lengths)))
    elements = _cast(taken, kind.value_type)
    offsets = pa.array(ends, pa.int32())
    return pa.ListArray.from_arrays(offsets, elements, type=kind, mask=pa.array(cleaned.is_null))


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pt.is_timestamp(kind):
        return values.cast(pa.timestamp("ms")).cast(kind)
    # Half a surrogate pair counts until a dictionary is made of it.
    return pc.cast(values, options=pc.CastOptions(kind, allow_invalid_utf8=True))
