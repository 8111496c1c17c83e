from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.ingest.contract.accepted_rows import cut


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
def test_the_desired_size_is_measured_in_memory(desired: int, rows: int) -> None:
    assert next(cut(iter(tables([20] * 3)), 30, desired)).num_rows == rows


def test_rows_that_grow_later_are_cut_as_small_as_others() -> None:
    """65,536 rows of nulls, then texts of 2 KB."""

    def source() -> Iterator[pa.Table]:
        yield pa.table({"x": pa.nulls(65_536, pa.string())})
        for _ in range(20):
            yield pa.table({"x": pa.array(["x" * 2000] * 2000)})

    pieces = [(piece.num_rows, piece.nbytes) for piece in cut(source(), 5_000_000, 10_000_000)]
    assert sum(rows for rows, _ in pieces) == 65_536 + 40_000
    assert all(9_990_000 < size <= 10_010_000 for _, size in pieces[:-1])


def test_a_row_that_is_larger_than_a_segment_is_one() -> None:
    tables = [pa.table({"x": ["a" * 100] * 3}), pa.table({"x": ["b"]})]
    assert [piece.num_rows for piece in cut(iter(tables), 10, 50)] == [1, 1, 1, 1]


@settings(deadline=None)
@given(st.lists(st.lists(st.text(max_size=9), max_size=5), max_size=5), st.integers(1, 60), st.integers(1, 6))
def test_no_row_is_lost_by_size(found: list[list[str]], desired: int, most: int) -> None:
    pieces = list(cut((pa.table({"x": pa.array(x, pa.string())}) for x in found), most, desired))
    assert [x for piece in pieces for x in piece["x"].to_pylist()] == [x for part in found for x in part]
    assert all(0 < piece.num_rows <= most for piece in pieces)


def test_the_rows_of_one_segment_are_released_before_the_next_ones_are_read() -> None:
    def source() -> Iterator[pa.Table]:
        for n in range(10):
            yield pa.table({"x": pa.array([n] * 100_000, pa.int64())})

    before, most = pa.total_allocated_bytes(), 0
    cuts = cut(source(), 5_000_000, 1_600_000)
    while (piece := next(cuts, None)) is not None:
        assert piece.num_rows == 200_000
        most = max(most, pa.total_allocated_bytes() - before)
        del piece
        assert pa.total_allocated_bytes() - before < 1_600_000, "they are held while the segment is built"
    assert 1_600_000 <= most < 3 * 800_000 + 10_000
