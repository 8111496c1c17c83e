from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pinot_assets.segment import SegmentSpec
from pinot_assets.segment.values.normalize import normalize
from pinot_assets.segment.values.ordered_values import order_values, unordered_values

CASES: list[tuple[str, list[Any]]] = [
    ("STRING", ["b", "a", "b", None]),
    ("STRING", ["a", "a", "b", "z"]),
    ("STRING", ["abcdef", "abcdeg", "abc"]),
    ("STRING", ["\ue000", "\U0001f600", "\uffff", "a"]),
    ("STRING", ["a", "\U0001f600", "\ue000", "\uffff"]),
    ("STRING", ["abcd\U0001f600", "abcd?", "abcd"]),
    ("STRING", ["", ""]),
    ("STRING", [f"{n:06}" for n in range(70_000)]),
    ("STRING", [f"{n:06}" for n in [*range(69_999), 5]]),
    ("BYTES", [b"\xff", b"", b"\0", b"\xff"]),
    ("BYTES", [b"x" * 300, b"", b"x" * 300, b"y" * 400]),
    ("BYTES", [b"", b"\0", b"\0\0", b"\x80"]),
    ("JSON", ['{"a": 1}', '{"a":1}', "2"]),
    ("BIG_DECIMAL", ["10", "1E+1", "9"]),
    ("INT", [3, 1, None, 1]),
]


@pytest.mark.parametrize(("kind", "values"), CASES, ids=[f"{kind} {n}" for n, (kind, _) in enumerate(CASES)])
def test_what_is_told_of_the_values_is_that_of_the_ranked_ones(kind: str, values: list[Any]) -> None:
    field = {"name": "c", "dataType": kind, "maxLength": 6 if "000001" in values else 5}
    (column,) = SegmentSpec.from_pinot({"dimensionFieldSpecs": [field]}, {}).columns
    data = pa.chunked_array([pa.array(values)])
    cleaned = normalize(column, data, len(values), column.default)
    ours, ordered = unordered_values(column, cleaned), order_values(column, cleaned)
    for key in ("lowest", "highest", "cardinality", "ascending", "longest"):
        assert getattr(ours, key) == getattr(ordered, key), key
    assert [ours.entries[i] for i in ours.ids] == [ordered.entries[i] for i in ordered.ids]
