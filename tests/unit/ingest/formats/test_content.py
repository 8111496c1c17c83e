from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pinot_assets.core.file_errors import Unreadable
from pinot_assets.ingest.formats import content
from pinot_assets.ingest.formats.content import (
    Readable,
    check_not_torn,
    format_of,
    packing,
    plain_file,
    text_blocks,
)


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return bytes(sink.getvalue())


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "bz2": bz2.compress, "zstd": zstd}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "BLOCK_BYTES", 1000)


def write(folder: Path, data: bytes) -> Path:
    (folder / "x").write_bytes(data)
    return folder / "x"


@pytest.mark.parametrize("kind", PACKERS)
def test_packed_files_come_in_whole_blocks_of_their_content(tmp_path: Path, kind: str) -> None:
    data = bytes(range(33, 120)) * 40
    path = write(tmp_path, PACKERS[kind](data[:1700]) + PACKERS[kind](data[1700:]))  # several members
    assert packing(path) == kind
    blocks = list(text_blocks(path, "csv"))
    assert b"".join(blocks) == data
    assert [len(block) for block in blocks] == [1000, 1000, 1000, 480]


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("cut", [1, 5, 0.5])
def test_a_packed_file_that_is_cut_short_is_unreadable(tmp_path: Path, kind: str, cut: float) -> None:
    packed = PACKERS[kind](bytes(str(list(range(5000))), "ascii"))
    path = write(tmp_path, packed[: -int(cut if cut >= 1 else len(packed) * cut)])
    with pytest.raises(Unreadable, match=f"the {kind} file is damaged or incomplete"):
        list(text_blocks(path, "csv"))


@pytest.mark.parametrize("kind", PACKERS)
def test_junk_behind_a_packed_file_is_not_passed_over(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, PACKERS[kind](b"a,b\n") + b"junk and more junk")
    with pytest.raises(Unreadable, match="damaged"):
        list(text_blocks(path, "csv"))


def test_blank_blocks_at_the_start_do_not_count(tmp_path: Path) -> None:
    assert list(text_blocks(write(tmp_path, b" \n" * 2000), "json")) == []
    assert list(text_blocks(write(tmp_path, b"\n" * 2500 + b"{}"), "json")) == [b"\n" * 500 + b"{}"]


def test_a_binary_file_is_unpacked_beside_itself(tmp_path: Path) -> None:
    data = b"PAR1" + bytes(3000)
    assert plain_file(write(tmp_path, data), "parquet") == tmp_path / "x"
    plain = plain_file(write(tmp_path, gzip.compress(data)), "parquet")
    assert plain is not None
    assert plain != tmp_path / "x"
    assert plain.read_bytes() == data


@pytest.mark.parametrize(
    ("data", "input_format", "said"),
    [
        (b"PAR1", "avro", "not an Avro file: it is a Parquet file"),
        (b"a,b\n", "orc", "not an ORC file: it does not start with ORC"),
        (b"a,b\n", "avro", "not an Avro file: it does not start with Obj"),
        (gzip.compress(b"Obj\x01", mtime=0), "parquet", "not a Parquet file: it is an Avro file"),
    ],
)
def test_a_binary_file_of_another_format(tmp_path: Path, data: bytes, input_format: str, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        plain_file(write(tmp_path, data), input_format)


@pytest.mark.parametrize(
    ("data", "said"), [(b"ORC\0\0\xff", "an ORC file"), (b"\xff\x06\x00\x00sNaPpY", "snappy-compressed")]
)
def test_text_that_is_none(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(Unreadable, match=f"the file is {said}, not csv"):
        list(text_blocks(write(tmp_path, data), "csv"))


@pytest.mark.parametrize(("inner", "name"), [(gzip.compress, "gzip"), (bz2.compress, "bz2"), (zstd, "zstd")])
@pytest.mark.parametrize("input_format", ["csv", "avro"])
def test_a_file_that_is_packed_twice_is_called_so(
    tmp_path: Path, inner: Callable[[bytes], bytes], name: str, input_format: str
) -> None:
    path = write(tmp_path, gzip.compress(inner(b"a,b\n1,2\n"), mtime=0))
    with pytest.raises(Unreadable, match=f"compressed twice: inside it is {name} again"):
        list(text_blocks(path, "csv")) if input_format == "csv" else plain_file(path, input_format)
    with pytest.raises(Unreadable, match="compressed twice"):
        format_of(path)


@pytest.mark.parametrize("data", [b"ORCID,name\n", b"PAR1,PAR2\n1,\xc3\xa9\n", b"BZh,name\n", b"BZh9 1,a\n"])
def test_text_that_begins_like_something_else(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, data)
    assert packing(path) is None
    assert b"".join(text_blocks(path, "csv")) == data


def test_packed_files_that_begin_in_rare_ways(tmp_path: Path) -> None:
    skippable = b"\x5e\x2a\x4d\x18\4\0\0\0abcd"
    path = write(tmp_path, skippable + zstd(b"a,b\n") + skippable + zstd(b"1,2\n"))
    assert b"".join(text_blocks(path, "csv")) == b"a,b\n1,2\n"
    assert list(text_blocks(write(tmp_path, bz2.compress(b"")), "csv")) == []


def test_readable_gives_what_was_asked_for() -> None:
    file = Readable(iter([b"abc", b"", b"defg", b"h"]))
    assert [file.read(n) for n in (2, 3, 2, 5, 1)] == [b"ab", b"cde", b"fg", b"h", b""]
    assert Readable(iter([b"abc", b"d"])).read() == b"abcd"


@pytest.mark.parametrize(
    ("name", "input_format"),
    [
        ("a.csv.gz", "csv"),
        ("s3://b/a.json.GZ", "json"),
        ("a.zst", "json"),
        ("a.csv.snappy", "csv"),
        ("a.bz2", "csv"),
        ("a.parquet", "parquet"),
        ("a", "avro"),
        ("a.orc", "orc"),
    ],
)
def test_a_file_of_0_bytes_that_must_have_some_is_torn(name: str, input_format: str) -> None:
    with pytest.raises(Unreadable, match="the file has 0 bytes") as raised:
        check_not_torn(name, 0, input_format)
    assert "the upload was incomplete" in str(raised.value)
    check_not_torn(name, 1, input_format)


@pytest.mark.parametrize(("name", "input_format"), [("a.csv", "csv"), ("a.gz.json", "json"), ("a", "csv")])
def test_text_without_rows_may_have_0_bytes(name: str, input_format: str) -> None:
    check_not_torn(name, 0, input_format)
