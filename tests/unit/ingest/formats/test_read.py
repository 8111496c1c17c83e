from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pinot_assets.core.file_errors import ReaderSettings, Unreadable
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats.read import check_reader, read_batches
from pinot_assets.local import sample_data

SCHEMA = pa.schema([("i", pa.int32()), ("s", pa.string())])


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"i": [1], "s": ["a"]}), sink)
    return sink.getvalue()


FILES = {"csv": b"i,s\n1,a\n", "json": b'{"i":1,"s":"a"}\n', "parquet": parquet()}


def read(path: Path, data: bytes, input_format: str) -> pa.Table:
    path.write_bytes(data)
    return whole(path, SCHEMA, input_format)


def whole(path: Path, schema: pa.Schema, input_format: str) -> pa.Table:
    tables = read_batches(path, TargetSchema(schema), input_format, reader={}, verdicts=BadRowPolicy())
    return pa.concat_tables([schema.empty_table(), *tables])


@pytest.mark.parametrize("input_format", FILES)
def test_gzip_is_known_by_its_bytes_and_not_by_its_name(tmp_path: Path, input_format: str) -> None:
    data = FILES[input_format]
    plain = read(tmp_path / "plain.gz", data, input_format)
    packed = read(tmp_path / "packed", gzip.compress(data), input_format)
    assert plain.to_pylist() == packed.to_pylist() == [{"i": 1, "s": "a"}]


def test_gzip_members_are_one_file(tmp_path: Path) -> None:
    data = gzip.compress(b"i,s\n1,a\n") + gzip.compress(b"2,b\n")
    assert read(tmp_path / "x", data, "csv")["i"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-3],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-8] + bytes(8),
        lambda data: data[:12] + b"\xff\xff\xff\xff" + data[16:],
        lambda data: data + b"junk",
    ],
)
def test_damaged_gzip(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    with pytest.raises(Unreadable, match="gzip file is damaged"):
        read(tmp_path / "x", damage(gzip.compress(b"i,s\n" + b"1,a\n" * 1000)), "csv")


@pytest.mark.parametrize("input_format", FILES)
@pytest.mark.parametrize("data", [b"", b"\n  \r\n\t", b"\xef\xbb\xbf\n", gzip.compress(b"", mtime=0)])
def test_a_blank_file_has_no_rows(tmp_path: Path, input_format: str, data: bytes) -> None:
    table = read(tmp_path / "x", data, input_format)
    assert table.num_rows == 0
    assert table.schema.equals(SCHEMA)


def test_a_byte_order_mark_is_no_data(tmp_path: Path) -> None:
    assert read(tmp_path / "x", b"\xef\xbb\xbf" + FILES["csv"], "csv")["i"].to_pylist() == [1]
    assert read(tmp_path / "x", b"\xef\xbb\xbf" + FILES["json"], "json")["i"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("data", "input_format", "said"),
    [
        (FILES["parquet"], "csv", "a Parquet file, not csv"),
        (FILES["parquet"], "json", "a Parquet file, not json"),
        (FILES["csv"], "parquet", "not a Parquet file"),
        (FILES["csv"], "json", "row 1: line 1"),
        (FILES["json"], "csv", "none of the table's columns"),
        (lzma.compress(FILES["csv"]), "csv", "xz-compressed, not csv"),
        (b"PK\x03\x04rest", "json", "a zip archive, not json"),
        (b"carrier\x00\xfe\x07", "csv", "the file is binary or UTF-16 text, not csv"),
        (FILES["json"].decode().encode("utf-16"), "json", "the file is binary or UTF-16 text, not json"),
    ],
)
def test_the_wrong_format_is_refused(tmp_path: Path, data: bytes, input_format: str, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        read(tmp_path / "x", data, input_format)


def test_settings_are_checked_before_a_file_is_read() -> None:
    check_reader("csv", {"delimiter": "|"})
    check_reader("json", {})
    with pytest.raises(ReaderSettings, match="json has no reader settings, but the table spec has delimiter"):
        check_reader("json", {"delimiter": "|"})
    with pytest.raises(ReaderSettings, match="inputFormat thrift is not supported"):
        check_reader("thrift", {})
    with pytest.raises(ReaderSettings):
        check_reader("csv", {"skipUnParseableLines": "true"})


def test_the_three_formats_of_a_real_day_say_the_same(tmp_path: Path) -> None:
    numbers = ["dep_time", "dep_delay", "flight", "air_time", "distance"]
    schema = pa.schema(
        [(name, pa.int32()) for name in numbers]
        + [("carrier", pa.string()), ("tailnum", pa.string()), ("time_hour", pa.timestamp("ms", "UTC"))]
    )
    tables = []
    for fmt in sample_data.get_args(sample_data.Format):
        [path] = sample_data.write_days(tmp_path, fmt, sample_data.first_days(1))
        tables.append(whole(path, schema, fmt))
    assert tables[0].num_rows == 842
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
