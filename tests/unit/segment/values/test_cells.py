"""Which rows may share a segment."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.errors import BuildError
from pinot_assets.segment.functions.time_format import parse_format
from pinot_assets.segment.values.cells import (
    TimeSlice,
    cell_kind,
    cell_kind_by,
    crossed,
    partition_cells,
    slice_cells,
    times_ms,
)
from pinot_assets.segment.values.partition import PartitionFunction, Partitioning

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def start_of(how: TimeSlice, day: date) -> str:
    match how:
        case TimeSlice.DAY:
            return f"{day:%Y-%m-%d}"
        case TimeSlice.WEEK:
            return f"{day - timedelta(days=day.weekday()):%Y-%m-%d}"
        case TimeSlice.MONTH:
            return f"{day:%Y-%m}"
        case TimeSlice.YEAR:
            return f"{day:%Y}"


@given(
    how=st.sampled_from([*TimeSlice]),
    moments=st.lists(
        st.datetimes(datetime(1000, 1, 8), datetime(2500, 1, 1), timezones=st.just(UTC)), min_size=1
    ),
)
def test_a_slice_is_named_by_its_first_day(how: TimeSlice, moments: list[datetime]) -> None:
    ms = np.array([(moment - EPOCH) // timedelta(milliseconds=1) for moment in moments], np.int64)
    cells = slice_cells(how, ms)
    assert [cells.names[code] for code in cells.codes] == [
        f"{how} {start_of(how, moment.date())}" for moment in moments
    ]
    assert [*cells.names] == sorted({*cells.names})


def test_the_last_moment_of_a_day_is_in_it() -> None:
    ms = np.array([-1, 0, 86_399_999, 86_400_000], np.int64)
    cells = slice_cells(TimeSlice.DAY, ms)
    assert cells.codes.tolist() == [0, 1, 1, 2]


def test_a_partition_names_function_column_settings_and_count() -> None:
    how = Partitioning(PartitionFunction.MURMUR3, 16, (("seed", "5"), ("variant", "x64_32")))
    cells = partition_cells("userId", how, np.array([3, 11, 3]))
    assert cells.names == (
        "Murmur3(userId, seed=5, variant=x64_32)=3/16",
        "Murmur3(userId, seed=5, variant=x64_32)=11/16",
    )
    assert cells.codes.tolist() == [0, 1, 0]


def test_both_together_are_ordered_by_slice_first() -> None:
    slices = slice_cells(TimeSlice.YEAR, np.array([0, 400 * 86_400_000, 0], np.int64))
    parts = partition_cells("c", Partitioning(PartitionFunction.MODULO, 2), np.array([1, 0, 0]))
    both = crossed([slices, parts])
    assert [both.names[code] for code in both.codes] == [
        "YEAR 1970 Modulo(c)=1/2",
        "YEAR 1971 Modulo(c)=0/2",
        "YEAR 1970 Modulo(c)=0/2",
    ]
    assert [*both.names] == sorted(both.names)


def test_only_cells_with_a_row_are_named() -> None:
    many = np.arange(4000, dtype=np.int64)
    days = slice_cells(TimeSlice.DAY, many * 86_400_000)
    both = crossed([days, partition_cells("c", Partitioning(PartitionFunction.MODULO, 4000), many)])
    assert len(both.names) == 4000
    assert both.codes.tolist() == many.tolist()


def test_the_order_of_settings_makes_no_other_cell() -> None:
    config = (("columnValues", "a|b"), ("columnValuesDelimiter", "|"))
    names = set()
    for settings in (config, tuple(reversed(config))):
        how = Partitioning(PartitionFunction.BOUNDED_COLUMN_VALUE, 3, settings)
        names.add(partition_cells("c", how, np.array([1])).names)
    assert len(names) == 1


def test_a_time_that_is_too_far_off_is_in_no_ordinary_slice() -> None:
    seconds = np.array([1_700_000_000, 1_700_000_000 + 2**61, -(2**62)])
    cells = slice_cells(TimeSlice.DAY, times_ms("t", parse_format("1:SECONDS:EPOCH"), seconds))
    assert len(cells.names) == 3


@pytest.mark.parametrize(
    ("pattern", "values", "ms"),
    [
        ("1:DAYS:EPOCH", np.array([0, 3]), [0, 3 * 86_400_000]),
        ("5:MINUTES:EPOCH", np.array([2]), [600_000]),
        ("EPOCH|SECONDS", pa.array([b"7", b"8", b"7"], pa.large_binary()), [7000, 8000, 7000]),
        ("1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd", np.array([19700102]), [86_400_000]),
        (
            "SIMPLE_DATE_FORMAT|yyyy-MM-dd",
            pa.array([b"1970-01-03", b"1970-01-01"], pa.large_binary()),
            [172_800_000, 0],
        ),
    ],
)
def test_times_in_each_format(pattern: str, values: np.ndarray, ms: list[int]) -> None:
    assert times_ms("t", parse_format(pattern), values).tolist() == ms


def test_a_text_that_is_no_time_names_the_column() -> None:
    with pytest.raises(BuildError, match="Time column t holds"):
        times_ms("t", parse_format("SIMPLE_DATE_FORMAT|yyyy-MM-dd"), pa.array([b"soon"], pa.large_binary()))


@given(
    how=st.sampled_from([*TimeSlice]),
    ms=st.integers(-(2**60), 2**60),
    config=st.none() | st.just((("seed", "5"),)),
    number=st.integers(0, 99),
)
def test_cells_that_were_decided_in_the_same_way_are_of_one_kind(
    how: TimeSlice, ms: int, config: tuple[tuple[str, str], ...] | None, number: int
) -> None:
    slices = slice_cells(how, np.array([ms], np.int64))
    parting = Partitioning(PartitionFunction.MURMUR3, 100, config)
    parts = partition_cells("a=1/2", parting, np.array([number]))
    of_both = ("a=1/2", "Murmur3", config or (), 100)
    assert cell_kind(crossed([slices, parts]).names[0]) == cell_kind_by(how, of_both)
    assert cell_kind(parts.names[0]) == cell_kind_by("", of_both)
    assert cell_kind(slices.names[0]) == cell_kind_by(how, None)
    assert cell_kind("") == cell_kind_by("", None) == ""
