from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pinot_assets.segment.values.distinct import NULL, distinct

ROWS = 70_000
RNG = np.random.default_rng(5)


def columns() -> dict[str, pa.Array]:
    unique = RNG.permutation(ROWS)
    mask = RNG.random(ROWS) < 0.1
    return {
        "unique": pa.array(unique),
        "unique with nulls": pa.array(unique, mask=mask),
        "unique texts": pa.array(unique).cast(pa.string()),
        "texts with nulls": pa.array(unique, mask=mask).cast(pa.large_string()),
        "bytes": pa.array(unique).cast(pa.string()).cast(pa.binary()),
        "decimals": pa.array(unique).cast(pa.decimal128(20, 0)),
        "few": pa.array(unique % 7),
        "a range with gaps": pa.array((unique % 7 * 3 - 9).astype(np.int16)),
        "unsigned": pa.array((unique % 90).astype(np.uint64) + np.uint64(2**64 - 91)),
        "a few of all": pa.array(np.where(unique % 2, 2**63 - 1, -(2**63))),
        "short texts": pa.array([f"visitor-{n}" for n in RNG.integers(0, 1_000_000, ROWS)]),
        "long texts": pa.array([f"{n} is a visitor" for n in RNG.integers(0, 1_000_000, ROWS)]),
        "bytes of numbers": pa.array((unique % 256 - 128).astype(np.int8)),
        "mostly unique": pa.array(np.where(unique < 100, 7, unique)),
        "nulls": pa.nulls(ROWS, pa.int32()),
    }


@pytest.mark.parametrize("cut", ["whole", "slice", "chunks"])
@pytest.mark.parametrize("name", columns())
def test_trap33_values_and_codes_give_the_column_back(name: str, cut: str) -> None:
    column = columns()[name]
    parts = {"whole": [column], "slice": [column[1:-1]], "chunks": [column[:9], column[9:9], column[9:]]}[cut]
    values, codes = distinct(pa.chunked_array(parts))
    assert values.null_count == 0
    assert sorted(set(codes.tolist()) - {NULL}) == [*range(len(values))]
    found: list[Any] = values.take(pa.array(codes, mask=codes == NULL)).to_pylist()
    wanted = [
        cell.decode() if isinstance(cell, bytes) else cell for part in parts for cell in part.to_pylist()
    ]
    assert [cell.decode() if isinstance(cell, bytes) else cell for cell in found] == wanted


@pytest.mark.parametrize(("name", "are_found"), [("short texts", False), ("long texts", True)])
def test_few_repeats_of_texts_that_are_sorted_as_numbers_stay(name: str, are_found: bool) -> None:
    column = columns()[name]
    values, _ = distinct(pa.chunked_array([column]))
    assert (len(values) == len(column.unique())) is are_found


def test_values_that_repeat_are_found_once() -> None:
    values, _ = distinct(pa.chunked_array([columns()["few"]]))
    assert len(values) == 7
