from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pinot_assets.segment.column.types import java_double, java_float
from pinot_assets.segment.values.hashing import hex_texts, number_texts


def test_whole_numbers_are_decimal() -> None:
    assert number_texts(np.array([-(2**63), -7, 0, 5, 2**63 - 1])).to_pylist() == [
        b"-9223372036854775808", b"-7", b"0", b"5", b"9223372036854775807",
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "java"), [(np.float64, java_double), (np.float32, java_float)])
def test_trap04_floating_point_texts_are_those_of_the_metadata(kind: type[np.floating], java: object) -> None:
    rng = np.random.default_rng(4)
    numbers = np.concatenate(
        [
            np.array([0.0, 1.0, 0.1, 1e-3, 0.00099, 1e7, 9999999.0, 2e23, np.inf, -np.inf, 1.4e-45, -100.0]),
            rng.standard_normal(300) * 10.0 ** rng.integers(-12, 12, 300),
        ]
    ).astype(kind)
    assert callable(java)
    assert number_texts(numbers).to_pylist() == [java(number).encode() for number in numbers]


def test_bytes_are_lower_case_hex() -> None:
    values = pa.array([b"skipped", b"", b"\x00\xff\x1a", b"\x7f"], pa.large_binary())[1:]
    assert hex_texts(values).to_pylist() == [b"", b"00ff1a", b"7f"]
