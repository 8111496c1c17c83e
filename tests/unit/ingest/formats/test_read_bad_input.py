"""What is wrong with a file, or with some of its rows, through every reader."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from pinot_assets.core.file_errors import (
    ColumnMissing,
    FileRejected,
    TooManyBadRows,
    TypeMismatch,
    Unreadable,
    ZoneMissing,
)
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.contract.accepted_rows import BadRowAllowance, BadRowPolicy, Quarantine, TargetSchema
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.formats import binary_formats, content, csv_file, json_documents
from pinot_assets.ingest.formats.csv_file import read_csv
from pinot_assets.ingest.formats.json_file import read_documents
from pinot_assets.ingest.formats.read import read_batches

SCHEMA = pa.schema([("i", pa.int32()), ("s", pa.string()), ("m", pa.list_(pa.int32()))])
WANTED = TargetSchema(SCHEMA)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "BLOCK_BYTES", 200)
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 200)
    monkeypatch.setattr(binary_formats, "BATCH_ROWS", 5)


def read(
    folder: Path, data: bytes, input_format: str, limit: str = "100%"
) -> tuple[list[JsonObject], list[JsonObject]]:
    """Good rows and bad ones."""
    (folder / "x").write_bytes(data)
    verdicts = Quarantine(folder / "bad.parquet", "file:///x", BadRowAllowance.parse(limit))
    tables = list(read_batches(folder / "x", WANTED, input_format, reader={}, verdicts=verdicts))
    good = pa.concat_tables([SCHEMA.empty_table(), *tables]).to_pylist()
    verdicts.finish(len(good))
    bad = pq.read_table(folder / "bad.parquet").to_pylist() if verdicts.bad_rows else []
    assert verdicts.bad_rows == len(bad)
    assert verdicts.rows == len(good) + len(bad)
    return good, bad


def as_csv(rows: list[tuple[Any, str]]) -> bytes:
    return b"i,s,m\n" + b"".join(f'{i},"{s}",1;2\n'.encode() for i, s in rows)


def as_json(rows: list[tuple[Any, str]]) -> bytes:
    return b"".join(
        json.dumps({"i": i, "s": s, "m": [1, 2]}, ensure_ascii=False).encode() + b"\n" for i, s in rows
    )


def as_array(rows: list[tuple[Any, str]]) -> bytes:
    return json.dumps([{"i": i, "s": s, "m": [1, 2]} for i, s in rows], ensure_ascii=False).encode()


def table_of(rows: list[tuple[Any, str]]) -> pa.Table:
    return pa.table({"i": [str(i) for i, _ in rows], "s": [s for _, s in rows], "m": [[1, 2]] * len(rows)})


def as_parquet(rows: list[tuple[Any, str]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table_of(rows), sink)
    return sink.getvalue()


def as_orc(rows: list[tuple[Any, str]]) -> bytes:
    sink = io.BytesIO()
    orc.write_table(table_of(rows), sink)
    return sink.getvalue()


def as_avro(rows: list[tuple[Any, str]]) -> bytes:
    fields = [
        {"name": "i", "type": "string"},
        {"name": "s", "type": "string"},
        {"name": "m", "type": {"type": "array", "items": "int"}},
    ]
    sink = io.BytesIO()
    records = table_of(rows).to_pylist()
    fastavro.writer(sink, {"type": "record", "name": "row", "fields": fields}, records, sync_interval=100)
    return sink.getvalue()


WRITERS: dict[str, tuple[Callable[[list[tuple[Any, str]]], bytes], int]] = {
    "csv": (as_csv, 2),
    "json": (as_json, 1),
    "json array": (as_array, 1),
    "parquet": (as_parquet, 1),
    "orc": (as_orc, 1),
    "avro": (as_avro, 1),
}


@pytest.mark.parametrize("written", WRITERS)
def test_bad_values_are_put_aside_with_their_row_and_all_others_kept(tmp_path: Path, written: str) -> None:
    write, first = WRITERS[written]
    wrong = {0, 7, 8, 59}
    rows = [("x" if n in wrong else n, f"é{n}") for n in range(60)]
    good, bad = read(tmp_path, write(rows), written.split()[0])
    assert [row["i"] for row in good] == [n for n in range(60) if n not in wrong]
    assert all(row == {"i": row["i"], "s": f"é{row['i']}", "m": [1, 2]} for row in good)
    assert [(row["row"], row["column"], row["value"], row["code"]) for row in bad] == [
        (n + first, "i", "'x'", "TYPE_MISMATCH") for n in sorted(wrong)
    ]
    assert all("é" in row["record"] for row in bad)
    (tmp_path / "x").write_bytes(write(rows[1:]))
    with pytest.raises(TypeMismatch, match=f"column i, row {6 + first}: 'x' cannot become INT"):
        list(read_batches(tmp_path / "x", WANTED, written.split()[0], reader={}, verdicts=BadRowPolicy()))


@pytest.mark.parametrize("written", WRITERS)
def test_a_file_of_bad_rows_alone(tmp_path: Path, written: str) -> None:
    data = WRITERS[written][0]([(value, "s") for value in ("x", "1.5", "2147483648", "+-1", "")] * 9)
    good, bad = read(tmp_path, data, written.split()[0])
    empty = written == "csv"  # where an empty cell is null
    assert (len(good), len(bad)) == ((9, 36) if empty else (0, 45))


@pytest.mark.parametrize("written", WRITERS)
def test_too_many_bad_rows_fail_the_file(tmp_path: Path, written: str) -> None:
    rows = [("x" if n % 10 == 3 else n, "s") for n in range(60)]
    input_format, data = written.split()[0], WRITERS[written][0](rows)
    assert len(read(tmp_path, data, input_format, "6")[1]) == 6
    assert len(read(tmp_path, data, input_format, "10%")[1]) == 6
    for limit in ("5", "0", "9.9%"):
        with pytest.raises(TooManyBadRows, match=f"maxBadRows is {limit}"):
            read(tmp_path, data, input_format, limit)


def test_a_csv_row_may_be_wrong_in_many_ways(tmp_path: Path) -> None:
    lines = [
        *(b"1,good,1",) * 30,
        b"2,too,many,cells",
        b"2",
        b"2,\xff\xfe,1",
        b"2,\xe9,1,9",
        b'2,"a\nb",1;x',
        b"2147483648,s,1",
        b"3,good,7",
    ]
    good, bad = read(tmp_path, b"\n".join([b"i,s,m", *lines, b""]), "csv")
    assert len(good) == 31
    assert good[-1] == {"i": 3, "s": "good", "m": [7]}
    bad.sort(key=lambda row: row["row"])  # torn rows are told before values
    assert [(row["row"], row["column"], row["reason"]) for row in bad] == [
        (32, "", "has 4 cells, not 3: '2,too,many,cells'"),
        (33, "", "has 1 cell, not 3: '2'"),
        (34, "s", "is not UTF-8"),
        (35, "", "has 4 cells, not 3: '2,\\udce9,1,9'"),
        (36, "m", "cannot become multi-value INT"),
        (37, "i", "cannot become INT"),
    ]
    assert bad[0]["record"] == "2,too,many,cells"
    assert bad[3]["record"] == "2,\\udce9,1,9"
    assert (bad[2]["value"], bad[2]["code"]) == ("b'\\xff\\xfe'", "UNREADABLE")
    assert json.loads(bad[4]["record"]) == {"i": "2", "s": "a\nb", "m": ["1", "x"]}


@pytest.mark.parametrize("rows", [0, 1, 30, 60])
def test_torn_rows_at_both_ends_of_a_csv_file(tmp_path: Path, rows: int) -> None:
    data = b"i,s,m\nfirst\n" + b"1,good,1\n" * rows + b"1,last"
    good, bad = read(tmp_path, data, "csv")
    assert (len(good), [(row["row"], row["record"]) for row in bad]) == (
        rows,
        [(2, "first"), (rows + 3, "1,last")],
    )


def test_an_open_quote_is_never_one_bad_row(tmp_path: Path) -> None:
    rows = b"i,s,m\n" + b"1,a,1\n" * 20
    for tail in (
        b'2,"\xe9,1\n' + b"3,c,1\n" * 5,
        b'2,b,"\xe9',
        b'2,"b,1\n' + b"3,c,1\n" * 5,
        b'2,b,"1\n3,c,1\n',
        b'2,"b',
    ):
        with pytest.raises(Unreadable, match="row 22: a quote is opened and never closed"):
            read(tmp_path, rows + tail, "csv")


def test_a_json_line_may_be_wrong_in_many_ways(tmp_path: Path) -> None:
    lines = [
        *(b'{"i":1,"s":"good"}',) * 30,
        b'{"i":2,"s":"torn',
        b"garbage",
        b"[1]",
        b'{"i":2,"s":"\xff"}',
        b'{"i":2}}',
        b'{"m":[1,"x"]}',
        b'{"i":NaN}',
        b'{"i":3,"s":"good","m":7}',
        b'{"i":4,"s":"to',
    ]
    good, bad = read(tmp_path, b"\n".join(lines), "json")
    assert [row["i"] for row in good] == [*[1] * 30, 2, 3]
    assert good[-1] == {"i": 3, "s": "good", "m": [7]}
    assert [(row["row"], row["column"], row["code"]) for row in bad] == [
        (31, "", "UNREADABLE"),
        (32, "", "UNREADABLE"),
        (33, "", "UNREADABLE"),
        (34, "s", "UNREADABLE"),
        (36, "", "UNREADABLE"),
        (37, "m", "TYPE_MISMATCH"),
        (38, "i", "TYPE_MISMATCH"),
        (40, "", "UNREADABLE"),
    ]
    assert bad[0]["record"] == '{"i":2,"s":"torn'
    assert bad[0]["reason"].startswith("line 31: ")


def test_garbage_is_no_json_whatever_is_put_aside(tmp_path: Path) -> None:
    good, bad = read(tmp_path, b"garbage\n" * 9, "json")
    assert (good, len(bad)) == ([], 9)
    with pytest.raises(Unreadable, match="none of the table's columns: its first row has x"):
        read(tmp_path, b'garbage\n{"x":1}\n', "json")


def test_objects_of_several_lines_cannot_be_found_again_behind_a_broken_one(tmp_path: Path) -> None:
    text = '{\n"i": 1\n}\n{\n"i": [\n{"i": 5}\n}\n{\n"i": 2\n}\n'
    with pytest.raises(Unreadable, match="row 2: line 7"):
        read(tmp_path, text.encode(), "json")


def test_a_timestamp_without_a_zone_is_told_apart(tmp_path: Path) -> None:
    wanted = TargetSchema(pa.schema([("t", pa.timestamp("ms", "UTC"))]))
    for data, input_format in ((b"t\n0\n2020-01-01\n", "csv"), (b'{"t":0}\n{"t":"2020-01-01"}', "json")):
        (tmp_path / "x").write_bytes(data)
        with pytest.raises(ZoneMissing, match="names no zone\n  → write it with Z or an offset"):
            list(read_batches(tmp_path / "x", wanted, input_format, reader={}, verdicts=BadRowPolicy()))


@pytest.mark.parametrize(
    ("data", "input_format", "missing"),
    [
        (b"s\na\n", "csv", ("i", "m")),
        (b'{"s":"a"}\n{"s":null,"m":[]}\n', "json", ("i",)),
        (b'{"s":"i","x":{"i":1},"m":null}\n{"s":"m","y":[1]}\n', "json", ("i",)),
        (b'[{"s":"a"},{"i":null},{"m" :null}]', "json", ()),
        (b'{"s":"a"}\n{"s":1,"m":"7","i":null}\n', "json", ()),
        (b"i,s,m\n", "csv", ()),
        (b"", "json", ()),
    ],
)
def test_missing_columns_are_told_or_fail_the_file(
    tmp_path: Path, data: bytes, input_format: str, missing: tuple[str, ...]
) -> None:
    (tmp_path / "x").write_bytes(data)
    verdicts = BadRowPolicy()
    list(read_batches(tmp_path / "x", WANTED, input_format, reader={}, verdicts=verdicts))
    assert verdicts.missing == missing
    if missing:
        with pytest.raises(ColumnMissing, match=f"the file has no column {', '.join(missing)}"):
            list(read_batches(tmp_path / "x", WANTED, input_format, reader={}, verdicts=BadRowPolicy("fail")))


@pytest.mark.parametrize("written", ["parquet", "orc", "avro"])
def test_missing_columns_of_files_that_know_their_columns(tmp_path: Path, written: str) -> None:
    (tmp_path / "x").write_bytes(WRITERS[written][0]([(1, "a")]))
    wanted = TargetSchema(pa.schema([("gone", pa.int32()), ("s", pa.string())]))
    verdicts = BadRowPolicy()
    [table] = read_batches(tmp_path / "x", wanted, written, reader={}, verdicts=verdicts)
    assert table.to_pylist() == [{"gone": None, "s": "a"}]
    assert verdicts.missing == ("gone",)
    nothing = TargetSchema(pa.schema([("gone", pa.int32())]))
    with pytest.raises(Unreadable, match="none of the table's columns: its columns are i, s, m"):
        list(read_batches(tmp_path / "x", nothing, written, reader={}, verdicts=BadRowPolicy()))


@pytest.mark.parametrize("written", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("left", [0.5, 0.9, -1])
def test_a_file_that_is_cut_short(tmp_path: Path, written: str, left: float) -> None:
    data = WRITERS[written][0]([(n, f"text {n}") for n in range(500)])
    with pytest.raises(Unreadable, match="damaged or incomplete"):
        read(tmp_path, data[: int(len(data) * left) if left > 0 else -1], written)


def test_a_damaged_block_of_avro(tmp_path: Path) -> None:
    data = bytearray(as_avro([(n, f"text {n}") for n in range(500)]))
    sync = bytes(data[-16:])
    place = data.index(sync, len(data) // 2)
    for damaged in (place, place + 16):  # the mark, the next block's number of rows
        broken = data.copy()
        broken[damaged] ^= 2
        with pytest.raises(Unreadable, match="damaged"):
            read(tmp_path, bytes(broken), "avro")


@pytest.mark.parametrize("written", ["csv", "json"])
def test_a_packed_file_that_is_cut_in_a_later_block(tmp_path: Path, written: str) -> None:
    packed = gzip.compress(WRITERS[written][0]([(n, f"text {n * n}") for n in range(500)]))
    with pytest.raises(Unreadable, match="the gzip file is damaged or incomplete"):
        read(tmp_path, packed[:-10], written)


def endless(start: bytes, count: list[int]) -> Iterator[bytes]:
    yield start
    while count[0] < 10_000:
        count[0] += 1
        yield b"x" * 200


def test_a_line_without_end_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_documents, "DOCUMENT_BYTES", 1000)
    readers: list[Callable[[Iterator[bytes]], Iterator[pa.Table]]] = [
        lambda blocks: read_csv(blocks, WANTED, CsvSettings(), BadRowPolicy()),
        lambda blocks: read_documents(blocks, WANTED, BadRowPolicy()),
    ]
    for reader, start in zip(readers, (b'i,s,m\n1,"', b'{"i":1}\n{"s":"'), strict=True):
        count = [0]
        with pytest.raises(FileRejected, match=r"longer than"):
            list(reader(endless(start, count)))
        assert count[0] < 50


def test_drift_between_files_is_judged_file_by_file(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"i": ["1", "2"], "extra": [1, 2]}), sink)
    assert [row["i"] for row in read(tmp_path, sink.getvalue(), "parquet")[0]] == [1, 2]
    sink = io.BytesIO()
    pq.write_table(pa.table({"i": [[1], [2]]}), sink)
    with pytest.raises(TypeMismatch, match=r"column i: list<.*> cannot become INT"):
        read(tmp_path, sink.getvalue(), "parquet")
