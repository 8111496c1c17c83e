"""What values are, alone and together."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.authoring.infer.column import ValueKind, of_arrow, of_cell, of_text, patterns_of, together

kinds = st.sampled_from(ValueKind)


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("7", ValueKind.INT),
        ("-2147483648", ValueKind.INT),
        ("2147483648", ValueKind.LONG),
        ("9223372036854775808", ValueKind.STRING),
        ("007", ValueKind.STRING),
        ("1.50", ValueKind.DOUBLE),
        ("1e3", ValueKind.DOUBLE),
        (".5", ValueKind.DOUBLE),
        ("0x10", ValueKind.STRING),
        ("1_000", ValueKind.STRING),
        ("٣", ValueKind.STRING),
        ("TRUE", ValueKind.BOOLEAN),
        ("yes", ValueKind.STRING),
        ('{"a": 1}', ValueKind.JSON),
        ("{a}", ValueKind.STRING),
        ("2024-01-05T10:00:00Z", ValueKind.TIMESTAMP),
        ("2024-01-05 10:00:00.123456789+02:00", ValueKind.TIMESTAMP),
        ("2024-01-05T10:00:00", ValueKind.STRING),
        ("2024-13-05T10:00:00Z", ValueKind.STRING),
    ],
)
def test_cells(cell: str, kind: ValueKind) -> None:
    assert of_cell(cell) is kind


def test_digits_of_a_format_that_knows_types_were_meant_as_text() -> None:
    assert of_text("7") is ValueKind.STRING


def test_dates_have_the_patterns_that_segments_are_built_with() -> None:
    assert patterns_of("2024-02-29") == {"yyyy-MM-dd"}
    assert patterns_of("2023-02-29") == frozenset()
    assert patterns_of("20240229") == {"yyyyMMdd"}


@given(kinds, kinds, kinds)
def test_the_order_of_files_does_not_matter(one: ValueKind, two: ValueKind, three: ValueKind) -> None:
    assert together(one, two) is together(two, one)
    assert together(one, together(two, three)) is together(together(one, two), three)
    assert together(one, one) is one
    assert together(one, ValueKind.NOTHING) is one


@pytest.mark.parametrize(
    ("kind", "storage", "found"),
    [
        (pa.json_(), pa.array(['{"a":1}', None]), ValueKind.JSON),
        (pa.uuid(), pa.array([b"0123456789abcdef", None], pa.binary(16)), ValueKind.BYTES),
    ],
)
def test_logical_types_of_parquet(kind: pa.DataType, storage: pa.Array, found: ValueKind) -> None:
    column = of_arrow(pa.chunked_array([pa.ExtensionArray.from_storage(kind, storage)]))
    assert (column.kind, column.multi, column.rows, column.nulls) == (found, False, 2, 1)
