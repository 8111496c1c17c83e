from __future__ import annotations

import io
import sys
import zlib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pinot_assets.core.file_errors import FileRejected, ReaderSettings, TypeMismatch, Unreadable
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats.binary_formats import count_rows
from pinot_assets.ingest.formats.read import check_reader, read_batches

MOMENT = pa.timestamp("ms", "UTC")
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)

NOON_UTC = NOON.replace(tzinfo=None)


def avro(kind: object, values: list[Any], codec: str = "null") -> bytes:
    schema = {
        "type": "record",
        "name": "row",
        "fields": [{"name": "x", "type": kind}, {"name": "y", "type": "int"}],
    }
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [{"x": value, "y": 7} for value in values], codec)
    return sink.getvalue()


def read(folder: Path, data: bytes, target: pa.DataType, **kinds: frozenset[str]) -> list[Any]:
    (folder / "data.avro").write_bytes(data)
    schema = pa.schema([("x", target)])
    tables = read_batches(
        folder / "data.avro", TargetSchema(schema, **kinds), "avro", reader={}, verdicts=BadRowPolicy()
    )
    found: list[Any] = pa.concat_tables([schema.empty_table(), *tables])["x"].to_pylist()
    return found


ENUM = {"type": "enum", "name": "e", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("kind", "values", "target", "expected"),
    [
        (["long", "null"], [1, None], pa.int32(), [1, None]),
        (["null", ENUM], ["B", None, "A"], pa.string(), ["B", None, "A"]),
        ({"type": "long", "logicalType": "timestamp-micros"}, [NOON], MOMENT, [NOON]),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, [NOON_UTC], MOMENT, [NOON]),
        ({"type": "fixed", "name": "f", "size": 2}, [b"ab"], pa.binary(), [b"ab"]),
        ({"type": "array", "items": ["null", "int"]}, [[1, None], []], pa.list_(pa.int64()), [[1, None], []]),
        (["null", "int"], [5, None], pa.list_(pa.int32()), [[5], None]),
        ({"type": "array", "items": ENUM}, [["A", "B"]], pa.list_(pa.string()), [["A", "B"]]),
        (["int"], [1, 2, 3], pa.int32(), [1, 2, 3]),
        (["string"], ["a", "", "b"], pa.string(), ["a", "", "b"]),
        (["null"], [None, None], pa.int32(), [None, None]),
        ([{"type": "array", "items": "int"}], [[1], []], pa.list_(pa.int32()), [[1], []]),
        ({"type": "array", "items": ["int"]}, [[1], [2, 3], []], pa.list_(pa.int32()), [[1], [2, 3], []]),
        (["null", {"type": "array", "items": ["long"]}], [None, [7]], pa.list_(pa.int64()), [None, [7]]),
        ([{"type": "long", "logicalType": "timestamp-micros"}], [NOON], MOMENT, [NOON]),
    ],
)  # fmt: skip
def test_types(
    tmp_path: Path, kind: object, values: list[Any], target: pa.DataType, expected: list[Any]
) -> None:
    assert read(tmp_path, avro(kind, values), target) == expected


def test_decimals_and_structures(tmp_path: Path) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}
    data = avro(decimal, [Decimal("-12345678901234567890.50")])
    assert read(tmp_path, data, pa.string(), decimals=frozenset("x")) == ["-12345678901234567890.50"]
    data = avro({"type": "map", "values": ["null", "int"]}, [{"b": 1, "a": None}])
    assert read(tmp_path, data, pa.string(), json=frozenset("x")) == ['{"b":1,"a":null}']


@pytest.mark.parametrize(
    ("kind", "values", "error", "said"),
    [
        (["null", "int", "string"], [1, "a"], TypeMismatch, "column x: dense_union"),
        (["int", "string"], [1, "a"], TypeMismatch, "column x: dense_union"),
        ({"type": "map", "values": "int"}, [{"a": 1}], TypeMismatch, "column x: map<string"),
        ({"type": "array", "items": "int"}, [[1]], TypeMismatch, "column x: list"),
        (["null", "row"], [None], Unreadable, "of a kind that pinot-assets does not know"),
        ([ENUM], ["A"], Unreadable, "of a kind that pinot-assets does not know"),
    ],
)
def test_what_cannot_be_read(
    tmp_path: Path, kind: object, values: list[Any], error: type[FileRejected], said: str
) -> None:
    with pytest.raises(error, match=said):
        read(tmp_path, avro(kind, values), pa.int32())


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_codecs(tmp_path: Path, codec: str) -> None:
    assert read(tmp_path, avro("int", list(range(1000)), codec), pa.int32()) == list(range(1000))


@pytest.mark.parametrize(("codec", "library"), [("snappy", "snappy"), ("zstandard", "zstd")])
def test_codecs_that_the_writer_here_lacks(tmp_path: Path, codec: str, library: str) -> None:
    plain = avro("int", [3, 4])
    block = bytes([6, 14, 8, 14])  # 3 and 7, 4 and 7, as zigzag
    packed = bytes(pa.Codec(library).compress(block))
    packed += zlib.crc32(block).to_bytes(4, "big") if codec == "snappy" else b""
    header = plain[: plain.index(block) - 2].replace(
        bytes([20]) + b"avro.codec" + bytes([8]) + b"null",
        bytes([20]) + b"avro.codec" + bytes([2 * len(codec)]) + codec.encode(),
    )
    data = header + bytes([4, 2 * len(packed)]) + packed + plain[-16:]
    assert read(tmp_path, data, pa.int32()) == [3, 4]


def test_rows_are_counted_by_the_frame(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for rows in (0, 1, 70, 5000):
        path.write_bytes(avro("string", ["text"] * rows))
        assert count_rows(path) == rows


@pytest.mark.parametrize(
    "data", [b"Obj\x01", b"Obj\x01\x02", b"Obj\x01" + b"\xff" * 30, b"Obj\x01\x02\xff\xff\x01"]
)
def test_a_header_that_is_none(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(Unreadable, match="damaged or incomplete"):
        read(tmp_path, data, pa.int32())


def test_without_the_library_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datafusion", None)
    with pytest.raises(ReaderSettings, match=r'pip install "pinot-assets\[avro\]"'):
        check_reader("avro", {})
