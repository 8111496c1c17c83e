from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.build.cut import cut


def tables(sizes: list[int]) -> list[pa.Table]:
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    return [
        pa.table({"x": pa.array(range(a, a + n), pa.int64())}) for a, n in zip(starts, sizes, strict=True)
    ]


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 12))
def test_every_row_is_in_one_segment_and_all_but_the_last_are_full(sizes: list[int], most: int) -> None:
    pieces = list(cut(iter(tables(sizes)), most, None))
    assert [x for piece in pieces for x in piece["x"].to_pylist()] == list(range(sum(sizes)))
    assert all(piece.num_rows == most for piece in pieces[:-1])
    assert all(0 < piece.num_rows <= most for piece in pieces[-1:])


def test_no_more_is_read_than_the_next_segment_needs() -> None:
    read = []

    def source():
        for n, table in enumerate(tables([10] * 100)):
            read.append(n)
            yield table

    next(cut(source(), 25, None))
    assert read == [0, 1, 2]


@pytest.mark.parametrize(("desired", "rows"), [(80, 10), (87, 10), (1, 1), (10_000, 30)])
def test_the_desired_size_is_measured_by_the_first_rows(desired: int, rows: int) -> None:
    assert next(cut(iter(tables([20] * 3)), 30, desired)).num_rows == rows
