"""What Spark's text readers would take without a word is found in the bytes."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import Any

import pytest

from pinot_assets.core.file_errors import Unreadable
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.formats.json_documents import check_lines
from pinot_assets.ingest.spark import file_checks
from pinot_assets.ingest.spark.file_checks import check_csv, check_json, check_packing


def written(folder: Path, data: bytes) -> Path:
    path = folder / "source"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "uri", "input_format", "why"),
    [
        (gzip.compress(b"a", mtime=0), "file:///a.csv", "csv", "but it is gzip"),
        (b"a", "file:///a.json.gz", "json", "as gzip, but it is plain text"),
        (bz2.compress(b"a"), "file:///a.gz", "csv", "as gzip, but it is bz2"),
        (
            gzip.compress(b"PAR1", mtime=0),
            "file:///a.parquet",
            "parquet",
            "parquet file that is compressed with gzip",
        ),
    ],
)
def test_packing_goes_by_name(tmp_path: Path, data: bytes, uri: str, input_format: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        check_packing(written(tmp_path, data), uri, input_format)


def test_packing_that_spark_sees_too(tmp_path: Path) -> None:
    check_packing(written(tmp_path, gzip.compress(b"a", mtime=0)), "file:///a.csv.gz", "csv")
    check_packing(written(tmp_path, b"a"), "file:///a.csv", "csv")
    check_packing(written(tmp_path, b"PAR1"), "file:///a.gz", "parquet")


def test_not_utf8_is_found_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinot_assets.ingest.formats.content.BLOCK_BYTES", 4)
    with pytest.raises(Unreadable, match="line 3: is not UTF-8"):
        check_csv(written(tmp_path, "a\né\nx".encode() + b"\xff\n"), CsvSettings())
    with pytest.raises(Unreadable, match="line 2: is not UTF-8"):
        check_json(written(tmp_path, b'{"a":1}\n\xc3'))


@pytest.mark.parametrize("block", [1, 2, 3, 1 << 20])
def test_a_quote_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr("pinot_assets.ingest.formats.content.BLOCK_BYTES", block)
    check_csv(written(tmp_path, b'a,b\n"x ""y""",1\n'), CsvSettings())
    check_csv(written(tmp_path, rb'"x \" \\","y"'), CsvSettings(escape="\\"))
    with pytest.raises(Unreadable, match="number of quotes is odd"):
        check_csv(written(tmp_path, b'a,b\n1,"x\n2,y\n'), CsvSettings())
    with pytest.raises(Unreadable, match="number of quotes is odd"):
        check_csv(written(tmp_path, rb'"x \\\"'), CsvSettings(escape="\\"))


@pytest.mark.parametrize("block", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (b"a,b\n1,x\r\n", r"in \\r\\n, but the first one in \\n"),
        (b"a,b\r\n1,x\n", r"in \\n, but the first one in \\r\\n"),
        (b"a,b\r1,x\n", r"in \\n, but the first one in \\r"),
        (b"a,b\n1,x\r2,y", r"in \\r, but the first one in \\n"),
        (b'"a\nb",c\r\n1,x\r\n', r"in \\r\\n, but the first one in \\n"),
        (b"#\na,b\r\n1,x\r\n", r"in \\r\\n, but the first one in \\n"),
    ],
)
def test_line_ends_that_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, data: bytes, ends: str
) -> None:
    monkeypatch.setattr("pinot_assets.ingest.formats.content.BLOCK_BYTES", block)
    with pytest.raises(Unreadable, match=ends):
        check_csv(written(tmp_path, data), CsvSettings(comment="#"))


@pytest.mark.parametrize("block", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_ends_in_cells_may_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, end: bytes
) -> None:
    monkeypatch.setattr("pinot_assets.ingest.formats.content.BLOCK_BYTES", block)
    rows = [b"a,b", b'1,"x\r\ny\nz\rw"', b'2,"""\r\n"""', b"3,z"]
    check_csv(written(tmp_path, end.join(rows)), CsvSettings())
    check_csv(written(tmp_path, end.join([*rows, b"", b""])), CsvSettings())
    check_csv(written(tmp_path, b"a,b" + end), CsvSettings())
    check_csv(written(tmp_path, b"a,b"), CsvSettings())
    check_csv(written(tmp_path, end.join([*rows, b'4,\\"\\\r'])), CsvSettings(escape="\\"))


@pytest.mark.parametrize("block", [16, 1 << 20])
def test_a_quote_in_a_comment_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr("pinot_assets.ingest.formats.content.BLOCK_BYTES", block)
    comment = CsvSettings(comment="#")
    check_csv(written(tmp_path, b'a,b\n# 5"\n1,x\n'), comment)
    with pytest.raises(Unreadable, match="number of quotes is odd"):
        check_csv(written(tmp_path, b'a,b\n# 5"\n1,"x\n'), comment)


def test_text_behind_a_closing_quote(tmp_path: Path) -> None:
    """Spark takes such a cell for one without quotes, and cuts it at a delimiter in it."""
    check_csv(written(tmp_path, b'a,b\n1,"x" \n2,5" x "y\n'), CsvSettings())
    with pytest.raises(Unreadable, match=r"text follows a closing quote: '1,\"x\"y'"):
        check_csv(written(tmp_path, b'a,b\n1,"x"y\n'), CsvSettings())


def test_json_arrays_and_endless_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinot_assets.ingest.formats.content.BLOCK_BYTES", 8)
    monkeypatch.setattr(file_checks, "LONGEST_ROW", 40)
    with pytest.raises(Unreadable, match="JSON array"):
        check_json(written(tmp_path, b' \n[{"a":1}]'))
    check_json(written(tmp_path, b"".join(b'{"a": "%s"}\n' % (b"x" * n) for n in (1, 28, 29, 3))))
    with pytest.raises(Unreadable, match="a line is longer than"):
        check_json(written(tmp_path, b'{"a": 1}\n{"a": "%s"}\n' % (b"x" * 60)))


@pytest.mark.parametrize("block", [7, 1 << 20])
@pytest.mark.parametrize("before", [b"", b'{"a":1}\n', b'{"a":"\n', b'{"a":{"b":[1,{}]}}\n \n'])
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"a":1}{"a":2}{"a":3}', r"""'{"a":2}{"a":3}' follows"""),
        (b'{"a":1} garbage', "'garbage' follows"),
        (b'{"a":"}"}\t,', "',' follows"),
        (b'{"a":{"b":"\\"}\\\\"}}}', "'}' follows"),
        (b' {"a":1}"', "'\"' follows"),
        (b'[] {"a":1}', r"""'{"a":1}' follows"""),
        (b"{'a':'\\'}'} {'a':2}", "follows the value"),
        (b'{"a":-INF} 2', "'2' follows"),
    ],
)
def test_json_behind_the_first_value_of_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, before: bytes, line: bytes, said: str
) -> None:
    """Spark reads the first value of each line and leaves out the rest."""
    monkeypatch.setattr("pinot_assets.ingest.formats.content.BLOCK_BYTES", block)
    number = before.count(b"\n") + 2
    for end in (b"", b"\n", b"\r\n", b'\n{"a":4}\n'):
        with pytest.raises(Unreadable, match=f"line {number}: .*{said}"):
            check_json(written(tmp_path, b'{"a":0}\n' + before + line + end))


@pytest.mark.parametrize("block", [7, 1 << 20])
@pytest.mark.parametrize(
    "line",
    [
        b'{"a":{"b":1},"c":[{"d":2},{}]}',
        b'{"a":"} {"}',
        b'{"a":"\\"} x"} \t',
        b'{"a":1}\r{"a":2}',
        b"{'a':'} x'}",
        b'{"a":"it\'s"}',
        b'{"a" 1} x',  # Spark finds that by itself, and may put the row aside
        b'{"a":"',
        b'"',
        b"}",
        b" ",
    ],
)
def test_json_of_one_value_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, line: bytes
) -> None:
    monkeypatch.setattr("pinot_assets.ingest.formats.content.BLOCK_BYTES", block)
    for end in (b"", b"\n", b"\r\n", b'\n\n{"a":{"b":1}}\n'):
        check_json(written(tmp_path, b'{"a":0}\n' + line + end))


def test_a_cut_gzip_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="damaged or incomplete"):
        check_csv(written(tmp_path, gzip.compress(b"a,b\n1,2\n" * 999)[:-9]), CsvSettings())


class _Counted(bytes):
    """Counts the bytes that are cut out of it."""

    cut = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.cut += len(found) if isinstance(found, bytes) else 1
        return found


def test_a_broken_line_is_looked_at_without_all_that_follows_it() -> None:
    """Cut out of a copy of the rest, each of many: a megabyte of such lines took half a minute."""
    lines = _Counted(b"{a} 1\n" * 1000)
    assert check_lines(lines, 1) == 1000
    assert lines.cut < len(lines)
