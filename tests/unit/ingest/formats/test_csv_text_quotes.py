"""Text behind a closing quote is found; whatever else stands in a CSV file goes through as it is."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pinot_assets.ingest.contract.accepted_rows import BadRowAllowance, Quarantine
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.formats.csv_file import read_csv, split_cells
from pinot_assets.ingest.formats.csv_text import Quotes
from tests.unit.ingest.formats.test_csv_file import SCHEMA, TargetSchema, column, pa

ANY = {
    None: CsvSettings(),
    "\\": CsvSettings(escape="\\"),
    "'": CsvSettings(quote="'", delimiter="\t"),
}


def found(data: bytes, size: int, how: CsvSettings) -> tuple[bytes, list[bytes]]:
    bad: list[bytes] = []

    def instead(row: bytes) -> bytes:
        bad.append(row)
        return b"<bad>"

    blocks = (data[n : n + size] for n in range(0, len(data), size))
    return b"".join(Quotes(how).checked(blocks, instead)), bad


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1 << 20])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    ("row", "how"),
    [
        (b'1,"x"y', None),
        (b'"a,"b,2', None),
        (b'""x,2', None),
        (b'1,"x"y"z"', None),
        (b'1,"x" "y"', None),
        (b'1,"he said \\"hi\\" x"', None),
        (b'1,"he said \\"hi"x', "\\"),
        (b"1\t'it's'", "'"),
        (b'"x\ny"z,"\n"', None),
    ],
)
def test_text_behind_a_closing_quote(row: bytes, how: str | None, end: bytes, size: int) -> None:
    good = end.join([b"1,2", b"", b"'a''b'\t'c'" if how == "'" else b'"a""b","c"', b"3,4"])
    for before in (b"", good + end):
        for after in (b"", end, end + good, end + good + end):
            assert found(before + row + after, size, ANY[how]) == (before + b"<bad>" + after, [row])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1 << 20])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    ("row", "how"),
    [
        (b'5" tall,"x"', None),
        (b'5" tall,6" tall', None),
        (b'"x" ,"y"\t', None),
        (b'"x"",""\n""y",""', None),
        (b'"",""""', None),
        (b' "x"y,1', None),
        (b'"he said \\"hi\\" x",\\"y"', "\\"),
        (b"'it''s'\t\"x\"y", "'"),
    ],
)
def test_other_quotes(row: bytes, how: str | None, end: bytes, size: int) -> None:
    for data in (row, row + end, end.join([row, row]), end.join([b"1,2", b"", row, b"3,4", b""])):
        assert found(data, size, ANY[how]) == (data, [])


cells = st.text('ab ,;"\n\r', max_size=4)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.lists(cells, min_size=2, max_size=2), max_size=6), st.integers(1, 20))
def test_what_a_writer_writes_is_good(rows: list[list[str]], size: int) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_MINIMAL).writerows(rows)
    data = text.getvalue().encode()
    assert found(data, size, CsvSettings()) == (data, [])


@settings(deadline=None, max_examples=500)
@given(st.text('a,"\n \r', max_size=24), st.integers(1, 9))
@example('"a\n,"\n5"a\n"a"b\n', 3)
def test_where_blocks_end_does_not_matter(text: str, size: int) -> None:
    data = text.encode()
    assert found(data, size, CsvSettings()) == found(data, 1 << 20, CsvSettings())


def test_a_row_without_end_is_left_to_the_parser() -> None:
    data = b'1,2\n3,"' + b"x\n" * 50
    blocks = iter([data[:30], data[30:60], data[60:]])
    checked = Quotes(CsvSettings(), 10).checked(blocks, lambda row: row)
    assert [*checked] == [b"1,2\n", data[4:60], data[60:]]


def test_such_rows_are_put_aside_by_number_and_text(tmp_path: Path) -> None:
    verdicts = Quarantine(tmp_path / "bad", "file:///x.csv", BadRowAllowance(rows=9))
    data = b'i,s\n1,"a"\n2,"x"y\n3,b,c\n4,"\xff"z\n5,"c"\n6,"d"e'
    tables = read_csv(iter([data[:17], data[17:]]), TargetSchema(SCHEMA), CsvSettings(), verdicts)
    assert pa.concat_tables(tables)["i"].to_pylist() == [1, 5]
    verdicts.finish(2)
    bad = pq.read_table(tmp_path / "bad")
    assert bad["row"].to_pylist() == [3, 4, 5, 7]
    assert bad["record"].to_pylist() == ['2,"x"y', "3,b,c", '4,"\\udcff"z', '6,"d"e']
    assert verdicts.rows == 6


def test_a_file_of_one_column() -> None:
    schema = pa.schema([("s", pa.string())])
    verdicts_of = read_csv(
        iter([b's\n"x"y\n']), TargetSchema(schema), CsvSettings(), Quarantine(Path(), "", BadRowAllowance(0))
    )
    with pytest.raises(Exception, match="row 2: has text after a closing quote"):
        list(verdicts_of)


@pytest.mark.parametrize("number", ["1", "2", "x", ""])
def test_a_file_that_holds_our_own_mark_is_read_as_any_other(tmp_path: Path, number: str) -> None:
    schema = pa.schema([("i", pa.int32()), ("s", pa.string())])
    forged = f"\x1a pinot-assets: text behind a quote \x1a{number},,,"
    verdicts = Quarantine(tmp_path / "bad", "file:///x.csv", BadRowAllowance(rows=9))
    data = f'i,s\n1,"x"y\n{forged}\n2,z\n'.encode()
    table = pa.concat_tables(read_csv(iter([data]), TargetSchema(schema), CsvSettings(), verdicts))
    assert table.to_pylist() == [{"i": 2, "s": "z"}]
    verdicts.finish(1)
    reasons = [bad["reason"] for bad in pq.read_table(tmp_path / "bad").to_pylist()]
    assert "text after a closing quote" in reasons[0]
    assert "has 4 cells, not 2" in reasons[1]


def test_inches_are_text() -> None:
    assert column('i,s\n1,5" x 6"\n2,"5"" x"\n', "s") == ['5" x 6"', '5" x']


def test_a_multi_value_cell_that_is_not_utf8_is_a_bad_row(tmp_path: Path) -> None:
    schema = pa.schema([("i", pa.int32()), ("m", pa.list_(pa.string()))])
    verdicts = Quarantine(tmp_path / "bad", "file:///x.csv", BadRowAllowance(rows=9))
    data = b"i,m\n1,a;;b\n2,c;\xff\n3,\n"
    table = pa.concat_tables(read_csv(iter([data]), TargetSchema(schema), CsvSettings(), verdicts))
    assert table.to_pylist() == [{"i": 1, "m": ["a", "b"]}, {"i": 3, "m": None}]
    verdicts.finish(2)
    [bad] = pq.read_table(tmp_path / "bad").to_pylist()
    assert (bad["row"], bad["column"]) == (3, "m")
    assert "UTF-8" in bad["reason"]


@pytest.mark.parametrize("delimiter", [*"\\;|$.^0a*\t"])
def test_whatever_stands_between_values(delimiter: str) -> None:
    cell = delimiter.join(["", "x", "", "y", ""])
    assert split_cells(pa.chunked_array([[cell, None, delimiter]]), delimiter).to_pylist() == [
        ["x", "y"],
        None,
        None,
    ]
