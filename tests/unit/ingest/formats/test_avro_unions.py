"""Unions of one type become columns of it; unions of several stay for the cast to refuse."""

from __future__ import annotations

import pyarrow as pa

from pinot_assets.ingest.formats.avro_unions import type_without_union, without_unions


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


def test_unions_within_lists_maps_and_records_go_and_their_types_are_known_without_rows() -> None:
    numbers = union([0, 0, 0], [0, 1, 2], pa.array([10, 11, 12])).column("x")
    of_lists = pa.ListArray.from_arrays([0, 2, 2, 3], numbers)
    of_maps = pa.MapArray.from_arrays([0, 1, 1, 3], pa.array(["a", "b", "c"]), numbers)
    of_records = pa.StructArray.from_arrays([numbers, pa.array(["x", None, "z"])], ["n", "s"])
    nested = union([0, 0, 0], [0, 1, 2], of_lists).column("x")
    batch = pa.RecordBatch.from_arrays([of_lists, of_maps, of_records, nested], names=["l", "m", "r", "u"])
    plain = without_unions(batch)
    assert plain.to_pylist()[2] == {
        "l": [12],
        "m": [("b", 11), ("c", 12)],
        "r": {"n": 12, "s": "z"},
        "u": [12],
    }
    assert [type_without_union(kind) for kind in batch.schema.types] == plain.schema.types
    assert without_unions(batch.slice(1, 2)).to_pylist() == plain.to_pylist()[1:]
    assert without_unions(batch.slice(0, 1)).to_pylist() == plain.to_pylist()[:1]
