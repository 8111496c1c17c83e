"""Multi-value columns with dictionary against Pinot's own builder.

Source: docs/design/segment-format.md#s5-1, #s6-6 and #s6-7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

INT = {"dataType": "INT", "singleValueField": False}
STRING = {"dataType": "STRING", "singleValueField": False}
ROWS: dict[str, list[Any]] = {
    "INT": [[3, 1, 3], None, [], [None, 7], [None, None], [2**31 - 1, -(2**31)], [5]],
    "LONG": [[2**60, -1], [], [None], [0, 0, 0], None, [1], [-(2**63)]],
    "FLOAT": [[1.5, -0.0, 0.0], [math.nan], [math.nan, 2.5], None, [math.inf, -math.inf], [0.25], []],
    "DOUBLE": [[0.1, -0.0], [math.nan, None], [1e300], [], None, [5e-324, 0.0], [2.0, math.nan, 2.0]],
    "BOOLEAN": [[True, False, True], [None, True], [], None, [False], [False, False], [True]],
    "TIMESTAMP": [[1_600_000_000_000, 5], None, [], [-1, None], [0], [7, 7], [3, 2, 1]],
    "STRING": [["b", "a", "b"], None, [], [None, ""], ["\uffff", "\U0001f600"], ["x" * 600, "a\0b"], ["é"]],
    "BYTES": [[b"b", b"\xff\0"], [], None, [b"", None], [b"ab", b"a"], [b"\0"], [b"ba", b"ba"]],
}


@pytest.mark.parametrize("kind", ROWS)
def test_trap09_nulls_and_empty_rows(case: Any, kind: str) -> None:
    field = {"dataType": kind, "singleValueField": False}
    rows = ROWS[kind]
    segment = case.same({"c": (field, rows), "absent": (field, []), "empty": (field, [[]] * len(rows))})
    nulls = {column.name: column.nulls for column in segment.columns}
    real = [[v for v in row or [] if v is not None and v == v] for row in rows]
    assert nulls == {"c": real.count([]), "absent": len(rows), "empty": len(rows)}


@pytest.mark.parametrize("kind", ROWS)
def test_trap09_defaults_are_rows_of_one(case: Any, oracle: Any, kind: str) -> None:
    default = {"BOOLEAN": True, "STRING": "gone", "BYTES": "00fF"}.get(kind, 42)
    field = {"dataType": kind, "singleValueField": False, "defaultNullValue": default}
    segment = case.same({"c": (field, [[], None, ROWS[kind][0]])})
    read = oracle.read(oracle.segment_folder(segment.files), {"c": kind})["c"]
    assert read.values[0] == read.values[1] == [{"BOOLEAN": 1, "BYTES": b"\0\xff"}.get(kind, default)]
    assert read.nulls == [0, 1]


def test_trap09_a_scalar_is_a_row_of_one(case: Any) -> None:
    case.same({"c": (INT, [4, 1, None, 9])})
    case.same({"c": (STRING, ["b", None, "", "a"])})


def test_trap09_a_list_of_one_is_a_single_value(case: Any) -> None:
    field = {"dataType": "INT"}
    case.same({"c": (field, [[4], None, [], [None, 1], [None]])})


LENGTHS = [[1], [3000], [1, 3000], [2, 3, 3], [2048] * 3, [1] * 5000, [1, 2] * 3000]


@pytest.mark.parametrize("lengths", LENGTHS, ids=lambda lengths: f"{len(lengths)} rows, {sum(lengths)}")
def test_trap10_rows_of_a_chunk(case: Any, lengths: list[int]) -> None:
    rng = np.random.default_rng(len(lengths))
    case.same({"c": (INT, [rng.integers(0, 50, length).tolist() for length in lengths])})


@pytest.mark.parametrize("cardinality", [1, 2, 3, 17, 256, 257, 65_537])
def test_trap20_bits_of_a_dictionary_id(case: Any, cardinality: int) -> None:
    values = np.random.default_rng(cardinality).permutation(cardinality).tolist()
    step = 1 + cardinality // 4000
    case.same({"c": (INT, [values[n : n + 1 + n % step] for n in range(0, cardinality, step)])})


def test_order_and_repeats_within_a_row_stay(case: Any, oracle: Any) -> None:
    rows = [["b", "a", "b"], ["a"], ["c", "c"]]
    segment = case.same({"c": (STRING, rows)})
    assert oracle.read(oracle.segment_folder(segment.files), {"c": "STRING"})["c"].values == rows
    assert not segment.columns[0].is_sorted


@pytest.mark.parametrize("strategy", ["TRIM_LENGTH", "NO_ACTION", "SUBSTITUTE_DEFAULT_VALUE"])
def test_trap07_elements_are_sanitised_one_by_one(case: Any, strategy: str) -> None:
    options = {"maxLength": 3, "maxLengthExceedStrategy": strategy}
    case.same(
        {
            "s": ({**STRING, **options}, [["abcdef", "ab"], ["a\0bc"], [], ["ab\U0001f600"], ["\0"]]),
            "b": (
                {**STRING, "dataType": "BYTES", **options},
                [[b"abcd", b"a\0bcd"], [b"abc"], None, [], [b"abce"]],
            ),
        }
    )
