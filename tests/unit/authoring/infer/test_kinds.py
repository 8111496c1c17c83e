"""What values are, alone and together."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.authoring.infer.column import of_arrow
from pinot_assets.authoring.infer.kinds import Kind, of_cell, of_text, patterns_of, together

kinds = st.sampled_from(Kind)


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("7", Kind.INT),
        ("-2147483648", Kind.INT),
        ("2147483648", Kind.LONG),
        ("9223372036854775808", Kind.STRING),
        ("007", Kind.STRING),
        ("1.50", Kind.DOUBLE),
        ("1e3", Kind.DOUBLE),
        (".5", Kind.DOUBLE),
        ("0x10", Kind.STRING),
        ("1_000", Kind.STRING),
        ("٣", Kind.STRING),
        ("TRUE", Kind.BOOLEAN),
        ("yes", Kind.STRING),
        ('{"a": 1}', Kind.JSON),
        ("{a}", Kind.STRING),
        ("2024-01-05T10:00:00Z", Kind.TIMESTAMP),
        ("2024-01-05 10:00:00.123456789+02:00", Kind.TIMESTAMP),
        ("2024-01-05T10:00:00", Kind.STRING),
        ("2024-13-05T10:00:00Z", Kind.STRING),
    ],
)
def test_cells(cell: str, kind: Kind) -> None:
    assert of_cell(cell) is kind


def test_digits_of_a_format_that_knows_types_were_meant_as_text() -> None:
    assert of_text("7") is Kind.STRING


def test_dates_have_the_patterns_that_segments_are_built_with() -> None:
    assert patterns_of("2024-02-29") == {"yyyy-MM-dd"}
    assert patterns_of("2023-02-29") == frozenset()
    assert patterns_of("20240229") == {"yyyyMMdd"}


@given(kinds, kinds, kinds)
def test_the_order_of_files_does_not_matter(one: Kind, two: Kind, three: Kind) -> None:
    assert together(one, two) is together(two, one)
    assert together(one, together(two, three)) is together(together(one, two), three)
    assert together(one, one) is one
    assert together(one, Kind.NOTHING) is one


@pytest.mark.parametrize(
    ("kind", "storage", "found"),
    [
        (pa.json_(), pa.array(['{"a":1}', None]), Kind.JSON),
        (pa.uuid(), pa.array([b"0123456789abcdef", None], pa.binary(16)), Kind.BYTES),
    ],
)
def test_logical_types_of_parquet(kind: pa.DataType, storage: pa.Array, found: Kind) -> None:
    column = of_arrow(pa.chunked_array([pa.ExtensionArray.from_storage(kind, storage)]))
    assert (column.kind, column.multi, column.rows, column.nulls) == (found, False, 2, 1)
