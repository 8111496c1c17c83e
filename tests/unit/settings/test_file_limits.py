"""What is too much of a file, and what honest files have."""

from __future__ import annotations

import bz2
import gzip
import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pytest

from pinot_assets.core.file_errors import FileTooLarge, Unreadable
from pinot_assets.errors import PinotAssetsError
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats.binary_formats import count_rows
from pinot_assets.ingest.formats.read import read_batches
from pinot_assets.settings import file_limits
from pinot_assets.settings.file_limits import COLUMNS, FREE_BYTES, MEMORY, UNPACKED, VALUE, FileLimits

WANTED = TargetSchema(pa.schema([("a", pa.string())]))


def read(path: Path, input_format: str, limit: FileLimits) -> int:
    tables = read_batches(path, WANTED, input_format, reader={}, verdicts=BadRowPolicy(), limits=limit)
    return sum(table.num_rows for table in tables)


def test_the_environment_sets_limits() -> None:
    said = {COLUMNS: "30000", VALUE: "1g", UNPACKED: "2 TB", MEMORY: "512M", "OTHER": "x"}
    assert FileLimits.of_environment(said) == FileLimits(30_000, 1 << 30, 2 << 40, 512 << 20)
    assert FileLimits.of_environment({MEMORY: " "}) == FileLimits()
    for text in ("much", "0", "-1", "1.5g"):
        with pytest.raises(PinotAssetsError, match=f"{MEMORY} is '{text}', which is not a number of bytes"):
            FileLimits.of_environment({MEMORY: text})


@pytest.mark.parametrize("input_format", ["csv", "json", "parquet", "orc"])
def test_a_file_with_too_many_columns_is_refused(tmp_path: Path, input_format: str) -> None:
    names = ["a", *(f"c{n}" for n in range(30))]
    table = pa.table({name: ["x"] for name in names})
    path = tmp_path / "x"
    write = {
        "csv": lambda: path.write_text(",".join(names) + "\n" + ",".join("x" * len(names)) + "\n"),
        "json": lambda: path.write_text(json.dumps(dict.fromkeys(names, "x"))),
        "parquet": lambda: pq.write_table(table, path),
        "orc": lambda: paorc.write_table(table, path),
    }
    write[input_format]()
    assert read(path, input_format, FileLimits(columns=31)) == 1
    with pytest.raises(FileTooLarge, match="the file has 31 columns, more than 30") as raised:
        read(path, input_format, FileLimits(columns=30))
    assert COLUMNS in str(raised.value)


def test_work_on_a_wide_csv_file_grows_with_its_columns_alone(tmp_path: Path) -> None:
    def cost(columns: int) -> float:
        names = [f"c{n}" for n in range(columns)]
        wanted = TargetSchema(pa.schema([(name, pa.string()) for name in names]))
        (tmp_path / "x").write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
        begun = time.process_time()
        [table] = read_batches(tmp_path / "x", wanted, "csv", reader={}, verdicts=BadRowPolicy())
        assert table.num_columns == columns
        return time.process_time() - begun

    few, many = (min(cost(columns) for _ in range(3)) for columns in (400, 3200))  # what disturbs only adds
    assert many < 30 * few  # 8 times as many; 64 times the work where each column copies the others


@pytest.mark.parametrize("input_format", ["json", "parquet", "orc"])
def test_a_value_that_is_too_large_is_refused(tmp_path: Path, input_format: str) -> None:
    table = pa.table({"a": ["x", None, "x" * 3000]})
    path = tmp_path / "x"
    write = {
        "json": lambda: path.write_text("\n".join(map(json.dumps, table.to_pylist()))),
        "parquet": lambda: pq.write_table(table, path),
        "orc": lambda: paorc.write_table(table, path),
    }
    write[input_format]()
    assert read(path, input_format, FileLimits(value_bytes=3000)) == 3
    with pytest.raises(FileTooLarge, match=r"column a has a value of 2\.93 KB, more than 1\.95 KB"):
        read(path, input_format, FileLimits(value_bytes=2000))


def test_values_in_lists_and_dictionaries_count(tmp_path: Path) -> None:
    wanted = TargetSchema(pa.schema([("a", pa.list_(pa.string())), ("b", pa.string())]))
    lists = pa.array([["x", "y" * 3000], []])
    coded = pa.array(["x", "z" * 3000]).dictionary_encode()
    for column, name in ((lists, "a"), (coded, "b")):
        pq.write_table(pa.table({name: column}), tmp_path / "x")
        with pytest.raises(FileTooLarge, match=f"column {name} has a value"):
            list(
                read_batches(
                    tmp_path / "x",
                    wanted,
                    "parquet",
                    reader={},
                    verdicts=BadRowPolicy(),
                    limits=FileLimits(value_bytes=2000),
                )
            )


PACKERS = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "zstd": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
}


@pytest.mark.parametrize("kind", PACKERS)
def test_a_packed_file_may_not_unpack_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(file_limits, "FREE_BYTES", 1 << 20)
    (tmp_path / "x").write_bytes(PACKERS[kind](b"a\n" + b"\n" * (20 << 20)))
    if kind == "gzip":  # deflate cannot do much more than a thousand times
        monkeypatch.setattr(file_limits, "RATIO", 900)
    with pytest.raises(FileTooLarge, match=r"unpack to .* or more") as raised:
        read(tmp_path / "x", "csv", FileLimits())
    assert UNPACKED in str(raised.value)
    assert read(tmp_path / "x", "csv", FileLimits(unpacked_bytes=30 << 20)) == 0  # who knows the data says so
    with pytest.raises(FileTooLarge, match="a file may unpack to 10 MB"):
        read(tmp_path / "x", "csv", FileLimits(unpacked_bytes=10 << 20))


def test_honest_data_that_pack_well_are_read(tmp_path: Path) -> None:
    rows = b"a,b\n" + b"a word that comes again and again,2020-01-01T00:00:00Z\n" * 200_000
    (tmp_path / "x").write_bytes(gzip.compress(rows))
    assert read(tmp_path / "x", "csv", FileLimits()) == 200_000
    FileLimits().check_unpacked(1, FREE_BYTES)
    FileLimits().check_unpacked(10 << 30, 200 << 30)


def test_a_parquet_file_that_says_it_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_limits, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(file_limits, "RATIO", 50)
    table = pa.table({"a": ["x" * 1000] * 5000, "other": ["y" * 1000] * 5000})
    pq.write_table(table, tmp_path / "x", use_dictionary=False, compression="zstd")
    with pytest.raises(FileTooLarge, match="more than 50 times its compressed size"):
        read(tmp_path / "x", "parquet", FileLimits())
    pq.write_table(table, tmp_path / "x", use_dictionary=["a"], compression="zstd")
    assert read(tmp_path / "x", "parquet", FileLimits()) == 5000  # nothing of the other column is read


def _zigzag(value: int) -> bytes:
    value, out = value << 1, b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def test_an_avro_block_may_not_promise_more_rows_than_its_bytes_hold(tmp_path: Path) -> None:
    mark = b"m" * 16
    head = b"Obj\x01" + _zigzag(0) + mark
    (tmp_path / "x").write_bytes(head + _zigzag(3) + _zigzag(3) + b"abc" + mark)
    assert count_rows(tmp_path / "x") == 3
    (tmp_path / "x").write_bytes(head + _zigzag(1 << 60) + _zigzag(3) + b"abc" + mark)
    with pytest.raises(FileTooLarge):
        count_rows(tmp_path / "x")


@pytest.mark.parametrize("nested", ['{"k":' * 100_000 + "1" + "}" * 100_000, "[" * 100_000 + "]" * 100_000])
def test_json_that_is_nested_without_end_is_a_named_row(tmp_path: Path, nested: str) -> None:
    (tmp_path / "x").write_text('{"a":"x"}\n{"b":' + nested + "}\n")
    with pytest.raises(Unreadable, match="row 2: values are nested too deeply"):
        read(tmp_path / "x", "json", FileLimits())
