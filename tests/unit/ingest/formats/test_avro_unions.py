"""Unions of one type become columns of it; unions of several stay for the cast to refuse."""

from __future__ import annotations

import pyarrow as pa

from pinot_assets.ingest.formats.avro_unions import without_unions


def union(codes: list[int], offsets: list[int], *branches: pa.Array) -> pa.RecordBatch:
    array = pa.UnionArray.from_dense(
        pa.array(codes, pa.int8()), pa.array(offsets, pa.int32()), list(branches)
    )
    return pa.RecordBatch.from_arrays([array], names=["x"])


def test_a_value_comes_from_where_its_offset_points() -> None:
    batch = without_unions(union([0, 0, 0], [2, 0, 1], pa.array([10, 11, 12])))
    assert batch.column("x").equals(pa.array([12, 10, 11]))


def test_a_null_of_the_union_is_a_null_of_the_column() -> None:
    batch = without_unions(union([0, 1, 0], [0, 0, 1], pa.nulls(2), pa.array(["a"])))
    assert batch.column("x").equals(pa.array([None, "a", None]))


def test_several_types_stay_a_union() -> None:
    batch = union([0, 1], [0, 0], pa.array([1]), pa.array(["a"]))
    assert without_unions(batch).equals(batch)


def test_a_slice_keeps_its_rows() -> None:
    batch = union([0, 0, 0], [0, 1, 2], pa.array([10, 11, 12])).slice(1, 2)
    assert without_unions(batch).column("x").to_pylist() == [11, 12]
    lists = pa.array([[1], [2, 3], None], pa.list_(pa.int32())).slice(1, 2)
    plain = pa.RecordBatch.from_arrays([lists], names=["x"])
    assert without_unions(plain).equals(plain)
