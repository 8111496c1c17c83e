from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pinot_assets.ingest.cast import conform
from pinot_assets.ingest.cast.casts import cast_for
from pinot_assets.ingest.cast.conform import bad_values, certain_failures
from pinot_assets.ingest.contract.accepted_rows import TargetSchema
from pinot_assets.ingest.formats.json_values import Real, converter
from pinot_assets.segment import Column, DataType, FieldType
from pinot_assets.segment.column.decimals import stored_decimals
from pinot_assets.segment.values.normalize import normalize

TYPES = [
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.timestamp("ms", "UTC"),
    pa.string(),
    pa.binary(),
]
texts = st.text("0123456789+-.:TZeExXnaifytrulse \t\n\x0b\x85\u00a0\u2003") | st.sampled_from(
    [
        "2020-01-01T00:00:00Z",
        "2020-13-01T00:00:00Z",
        "2020-01-01 00:00+01",
        "2147483648",
        "-2147483648",
        "0" * 30 + "7",
        "9223372036854775808",
        "00ff",
        "2020-01-01 0000Z",
        "-Infinity",
        "NaN",
        "+7",
        " 1e5 ",
        "TRUE",
        "0x1f",
        ".5",
        "5.",
        "-inf",
        "1_0",
    ]
)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=150, deadline=None)
@given(st.lists(st.none() | texts, min_size=1, max_size=5))
@example(["\u00a07\u00a0", "\x1f5", "infinity"])
@example(["\x850X0", "\u00a00x7"])
def test_what_is_hopeless_cannot_be_cast_and_what_is_not_bad_can(
    kind: pa.DataType, values: list[str]
) -> None:
    field = pa.field("x", kind)
    wanted = TargetSchema(pa.schema([field]))
    cast = cast_for(pa.string(), field, wanted)
    assert cast is not None

    def is_bad(value: str | None) -> bool:
        try:
            cast(pa.chunked_array([pa.array([value], pa.string())]))
        except pa.ArrowInvalid:
            return True
        return False

    bad = [n for n, value in enumerate(values) if is_bad(value)]
    column = pa.chunked_array([pa.array(values, pa.string())])
    known = certain_failures(column, field, wanted)
    assert {n for n, is_known in enumerate(known) if is_known} <= set(bad)
    for most in (1, 2, 99):
        assert bad_values(column, cast, known, most)[:1] == bad[:1]
    assert bad_values(column, cast, known, 99) == bad


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()], ids=str)
@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**31) - 1, 2**31), max_size=5).map(
        lambda values: pa.array(values, pa.int64())
    )
    | st.lists(st.none() | st.floats() | st.integers(-3, 3).map(float), max_size=5).map(
        lambda values: pa.array(values, pa.float64())
    )
    | st.lists(st.none() | st.integers(0, 2**64 - 1), max_size=5).map(lambda v: pa.array(v, pa.uint64()))
)
def test_numbers_that_have_no_room(kind: pa.DataType, values: pa.Array) -> None:
    field = pa.field("x", kind)
    wanted = TargetSchema(pa.schema([field]))
    column = pa.chunked_array([values])
    cast = cast_for(values.type, field, wanted)
    assert cast is not None
    tried = bad_values(column, cast, np.zeros(len(values), bool), 99)
    assert set(np.flatnonzero(certain_failures(column, field, wanted))) <= set(tried)


def test_the_values_of_a_list_are_looked_at_together() -> None:
    field = pa.field("x", pa.list_(pa.int32()))
    column = pa.chunked_array([[["1", "x"], None], [[], ["7"], ["8", "2147483648"]]], pa.list_(pa.string()))
    assert certain_failures(column, field, TargetSchema(pa.schema([field]))).tolist() == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_many_bad_values_are_all_found() -> None:
    texts = [f"2021-02-{n % 31 + 1:02}T00:00:00Z" for n in range(2 * 31 * conform._MANY)]  # none on the 29th
    field = pa.field("x", pa.timestamp("ms", "UTC"))
    wanted = TargetSchema(pa.schema([field]))
    cast = cast_for(pa.string(), field, wanted)
    assert cast is not None
    column = pa.chunked_array([texts])
    found = bad_values(column, cast, certain_failures(column, field, wanted), 1 << 20)
    assert found == [n for n in range(len(texts)) if n % 31 > 27]


BAD = {
    pa.int32(): "2147483648",
    pa.int64(): "99999999999999999999",
    pa.float64(): "1,5",
    pa.bool_(): "yes",
    pa.timestamp("ms", "UTC"): "2020-13-01T00:00:00Z",
    pa.binary(): "zz",
}


@pytest.mark.parametrize("kind", BAD, ids=str)
@pytest.mark.parametrize("is_list", [False, True])
def test_the_usual_bad_value_is_seen_without_a_cast(kind: pa.DataType, is_list: bool) -> None:
    """A million of them must not take a thousand seconds."""
    field = pa.field("x", pa.list_(kind) if is_list else kind)
    column = pa.chunked_array([[[BAD[kind]]] if is_list else [BAD[kind]]])
    assert certain_failures(column, field, TargetSchema(pa.schema([field]))).tolist() == [True]


def test_the_usual_bad_decimal_is_seen_without_a_cast() -> None:
    field = pa.field("x", pa.string())
    wanted = TargetSchema(pa.schema([field]), decimals=frozenset("x"))
    column = pa.chunked_array([["1,5", "x", "", None, " 1e5 ", "-.5"]])
    assert certain_failures(column, field, wanted).tolist() == [True, True, True, False, False, False]


@pytest.mark.parametrize(("unit", "finer"), [("us", 1_000), ("ns", 1_000_000)])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_a_time_is_the_millisecond_that_it_lies_in_before_1970_too(
    unit: str, finer: int, zone: str | None
) -> None:
    ticks = [0, 1, -1, -finer, -finer - 1, finer - 1, -(2**63), 2**63 - 1, None]
    source, target = pa.timestamp(unit, zone), pa.timestamp("ms", "UTC")
    for kind, values in (
        (target, pa.chunked_array([pa.array(ticks, pa.int64()).cast(source)])),
        (
            pa.list_(target),
            pa.chunked_array([pa.array([ticks], pa.list_(pa.int64())).cast(pa.list_(source))]),
        ),
    ):
        field = pa.field("x", kind)
        cast = cast_for(values.type, field, TargetSchema(pa.schema([field])))
        assert cast is not None
        found = cast(values)
        found = (found.combine_chunks().flatten() if found.type != target else found).cast(pa.int64())
        assert found.to_pylist() == [None if tick is None else tick // finer for tick in ticks]


HUGE = "7" * 2_000_000


@pytest.mark.parametrize(
    "text",
    [HUGE, f"-0.{HUGE}", f"{HUGE}e5", "1e32768", "-1.5E-40000", "0e99999", "1000e32766", "1e-999999999"],
)
def test_a_decimal_that_cannot_be_stored_is_a_bad_value_seen_at_once(text: str) -> None:
    """A number of millions of digits took a worker hours, and a scale out of range named no row."""
    field = pa.field("x", pa.string())
    wanted = TargetSchema(pa.schema([field]), decimals=frozenset("x"))
    cast = cast_for(pa.string(), field, wanted)
    assert cast is not None
    good = ["7" * 10_000, "1e32767", "1e-32767", "-1e00005", "12.50", None, " 1e-00000000 "]
    column = pa.chunked_array([[*good, text]])
    assert certain_failures(column, field, wanted).tolist() == [False] * len(good) + [True]
    with pytest.raises(pa.ArrowInvalid, match="cannot be stored"):
        cast(column)
    kept = cast(column.slice(0, len(good)))
    assert kept.null_count == 1
    stored_decimals(kept.combine_chunks().drop_null())
    to_json = converter(field, wanted)
    for value in (text, Real(text)):
        with pytest.raises(ValueError, match=r"^$"):
            to_json(value)
    assert [to_json(value) for value in good if value] == [value.strip() for value in good if value]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1e39, -1e300, 3.4028234e38, 1e-60]),
        pa.array(["1e39", "-1e300", "3.4028234e38", "1e-60"]),
        pa.array([" +1e39", "-1e400", "3.4028234e38", "0"]),
    ],
)
def test_a_number_beyond_float_is_infinite_as_pinots_cast_makes_it(values: pa.Array) -> None:
    """`PinotDataType.DOUBLE.toFloat` casts, `STRING.toFloat` is `Float.parseFloat`: neither raises."""
    wanted = TargetSchema(pa.schema([("f", pa.float32())]))
    cast = cast_for(values.type, wanted.schema.field("f"), wanted)
    assert cast is not None
    largest = np.float32(3.4028234e38).item()
    assert cast(pa.chunked_array([values])).to_pylist() == [float("inf"), float("-inf"), largest, 0.0]


def test_the_writer_casts_as_the_readers_do() -> None:
    column = Column("f", DataType.FLOAT, FieldType.DIMENSION, 0.0, nullable=False)
    cleaned = normalize(column, pa.chunked_array([pa.array([1e39, -1e39, 1.5])]), 3, column.default)
    assert sorted(cleaned.values.tolist()) == [float("-inf"), 1.5, float("inf")]
