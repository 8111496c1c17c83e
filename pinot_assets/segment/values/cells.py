"""Cells: which rows may share a segment, by partition and by time slice.

A segment whose rows have one partition and lie in one slice can be left out of a query whole: Pinot's brokers
do so before any server is asked. Source: docs/design/layout.md#cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pinot_assets.errors import BuildError
from pinot_assets.segment.column.decimals import Values
from pinot_assets.segment.functions.time_format import TimeFormat
from pinot_assets.segment.values.partition import Partitioning, Partitions

_DAY_MS: Final = 86_400_000
_CLOSE: Final = 1 << 20
_MONDAY: Final = 3
"""Day 0 of the epoch was a Thursday, three days after a Monday."""


class TimeSlice(StrEnum):
    """How long a time slice is, in UTC. A week begins on Monday."""

    DAY = "DAY"
    WEEK = "WEEK"
    MONTH = "MONTH"
    YEAR = "YEAR"


_UNITS: Final[Mapping[TimeSlice, str]] = {TimeSlice.MONTH: "M", TimeSlice.YEAR: "Y"}
"""numpy's units of slices that have no fixed length; also how much of a date names a slice."""


@dataclass(frozen=True, slots=True)
class CellSettings:
    """What decides the cell of a row.

    :ivar partition: whether the table's partitioned column does.
    :ivar time_slice: None if its time does not.
    """

    partition: bool = False
    time_slice: TimeSlice | None = None


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a table's rows.

    :ivar names: `DAY 2026-11-03 Murmur(userId)=3/16`, by slice and partition, each of at least one row.
    :ivar codes: index into `names` of each row.
    """

    names: tuple[str, ...]
    codes: npt.NDArray[np.int64]


def crossed(parts: Sequence[Cells]) -> Cells:
    """Return the cells of rows by several of their properties, the most important one first."""
    names, codes = parts[0].names, parts[0].codes
    for part in parts[1:]:
        distinct, codes = counted_codes(codes * len(part.names) + part.codes)
        pairs = (divmod(number, len(part.names)) for number in distinct.tolist())
        names = tuple(f"{names[first]} {part.names[second]}" for first, second in pairs)
    return Cells(names, codes)


def partition_cells(column: str, how: Partitioning, partitions: Partitions) -> Cells:
    """Return the cells of rows by their partition.

    :param partitions: of each row.
    """
    distinct, codes = counted_codes(partitions)
    names = (_partition(column, how.function, how.config or (), str(n), how.count) for n in distinct)
    return Cells(tuple(names), codes)


def _partition(column: str, function: str, config: Iterable[tuple[str, str]], number: str, count: int) -> str:
    settings = "".join(f", {key}={value}" for key, value in sorted(config))
    return f"{function}({column}{settings})={number}/{count}"


def cell_kind(cell: str) -> str:
    """Return what all cells of a table have in common that were decided in the same way; "" for no cell."""
    of_time = _SLICE.sub(r"\1", cell)
    return _NUMBER.sub("=n/", of_time)


def cell_kind_by(time_slice: str, partition: tuple[str, str, Iterable[tuple[str, str]], int] | None) -> str:
    """Return what `cell_kind` returns for the cells of a table.

    :param time_slice: "" without one.
    :param partition: column, function, its settings and the number of partitions.
    """
    parts = [time_slice] if time_slice else []
    if partition is not None:
        column, function, config, count = partition
        parts.append(_partition(column, function, config, "n", count))
    return " ".join(parts)


_SLICE: Final = re.compile(r"^([A-Z]+) -?[0-9]+(?:-[0-9]{2})*(?= |$)")
_NUMBER: Final = re.compile(r"=[0-9]+/(?=[0-9]+$)")


def slice_cells(how: TimeSlice, times_ms: npt.NDArray[np.int64]) -> Cells:
    """Return the cells of rows by their time.

    :param times_ms: of each row, in milliseconds since the epoch.
    """
    days = times_ms // _DAY_MS
    if how is TimeSlice.WEEK:
        days = days - (days + _MONDAY) % 7
    distinct, codes = counted_codes(days)
    starts = distinct.astype("datetime64[D]").astype(f"datetime64[{_UNITS.get(how, 'D')}]")
    slices, of_day = np.unique(starts, return_inverse=True)
    return Cells(tuple(f"{how} {start}" for start in slices.astype(str)), of_day.astype(np.int64)[codes])


def counted_codes(numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct numbers in ascending order, and each number's index into them.

    To mark what occurs takes a tenth of the time of sorting, if the numbers are close to each other.
    """
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > _CLOSE:
        distinct, codes = np.unique(numbers, return_inverse=True)
        return distinct, codes.astype(np.int64)
    from_low = numbers - low
    occurs = np.zeros(high - low + 1, dtype=bool)
    occurs[from_low] = True
    return np.flatnonzero(occurs) + low, (np.cumsum(occurs) - 1)[from_low]


def times_ms(column: str, time_format: TimeFormat, values: Values) -> npt.NDArray[np.int64]:
    """Return values of the time column in milliseconds since the epoch.

    :param column: its name, for errors.
    :param values: in stored form; none is null.
    :raises BuildError: a text is no time of the format.
    """
    if isinstance(values, np.ndarray) and not time_format.pattern:
        step = time_format.size * time_format.unit_ms
        most = np.iinfo(np.int64).max // step  # a time that far off lies in the first or the last slice
        return np.asarray(np.clip(values.astype(np.int64), -most, most) * step)
    texts = values if isinstance(values, pa.Array) else pa.array([*map(str, values.tolist())])
    encoded = texts.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.string()).to_pylist()
    try:
        moments = np.array([time_format.to_ms(text) for text in distinct], np.int64)
    except ValueError as error:
        raise BuildError(f"Time column {column} holds a value that is no time", why=str(error)) from None
    return np.asarray(moments[encoded.indices.to_numpy()])
