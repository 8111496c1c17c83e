from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pinot_assets.build.casts import cast_for, hopeless
from pinot_assets.build.conform import bad_values
from pinot_assets.build.wanted import Wanted

TYPES = [
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.timestamp("ms", "UTC"),
    pa.string(),
]
texts = st.text("0123456789+-.:TZeExXnaifytrulse \t\n\x0b\x85\u00a0\u2003") | st.sampled_from(
    ["2020-01-01T00:00:00Z", "-Infinity", "NaN", "+7", " 1e5 ", "TRUE", "0x1f", ".5", "5.", "-inf", "1_0"]
)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=150, deadline=None)
@given(st.lists(st.none() | texts, min_size=1, max_size=5))
@example(["\u00a07\u00a0", "\x1f5", "infinity"])
def test_what_is_hopeless_cannot_be_cast_and_what_is_not_bad_can(
    kind: pa.DataType, values: list[str]
) -> None:
    field = pa.field("x", kind)
    cast = cast_for(pa.string(), field, Wanted(pa.schema([field])))
    assert cast is not None

    def is_bad(value: str | None) -> bool:
        try:
            cast(pa.chunked_array([pa.array([value], pa.string())]))
        except pa.ArrowInvalid:
            return True
        return False

    bad = [n for n, value in enumerate(values) if is_bad(value)]
    column = pa.chunked_array([pa.array(values, pa.string())])
    known = hopeless(column, field)
    assert {n for n, is_known in enumerate(known) if is_known} <= set(bad)
    for most in (1, 2, 99):
        assert bad_values(column, cast, known, most)[:1] == bad[:1]
    assert bad_values(column, cast, known, 99) == bad
