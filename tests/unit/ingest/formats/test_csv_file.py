from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from pinot_assets.core.file_errors import FileRejected, ReaderSettings, TypeMismatch, Unreadable, ZoneMissing
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.formats.csv_file import read_csv

MOMENT = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("t", MOMENT),
    ]
)


def read(text: str | bytes, reader: dict[str, str] | None = None, schema: pa.Schema = SCHEMA) -> pa.Table:
    data = text if isinstance(text, bytes) else text.encode()
    settings = CsvSettings.from_reader(reader or {})
    return pa.concat_tables(
        [schema.empty_table(), *read_csv(iter([data]), TargetSchema(schema), settings, BadRowPolicy())]
    )


def column(text: str | bytes, name: str, reader: dict[str, str] | None = None) -> list[Any]:
    values: list[Any] = read(text, reader).column(name).to_pylist()
    return values


def test_every_type() -> None:
    table = read("i,l,f,d,s,b,t\n1,-9223372036854775808,1.5,1e-3,é,true,2013-01-01T05:00:00Z\n")
    assert table.schema.equals(SCHEMA)
    assert table.to_pylist() == [
        {
            "i": 1,
            "l": -(2**63),
            "f": 1.5,
            "d": 0.001,
            "s": "é",
            "b": True,
            "t": datetime(2013, 1, 1, 5, tzinfo=UTC),
        }
    ]


def test_an_empty_cell_is_null_and_nothing_else_is() -> None:
    table = read('i,l,f,d,s,b,t\n,,,,"",,\n1,1,NaN,1,NA,1,0\n1,1,1,1,null,0,0\n')
    assert table.slice(0, 1).to_pylist() == [dict.fromkeys(SCHEMA.names)]
    assert table["s"].to_pylist() == [None, "NA", "null"]
    assert table["f"][1].as_py() != table["f"][1].as_py()


def test_columns_go_by_name() -> None:
    table = read("other, s ,i\n9,a,1\n")
    assert table["i"].to_pylist() == [1]
    assert table["s"].to_pylist() == ["a"]
    assert table["l"].null_count == 1
    assert table.column_names == SCHEMA.names


def test_quotes_newlines_and_blank_lines() -> None:
    assert column('\ni,s\n\n1,"a\nb,""c"""\n\n2, d \n', "s") == ['a\nb,"c"', " d "]


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("i,s\n1,a\n517.0,b\n", TypeMismatch, "column i, row 3: '517.0' cannot become INT"),
        ("s,i\n" + "a,1\n" * 100_000 + "a,x\n", TypeMismatch, "column i, row 100002"),
        ("i\n2147483648\n", TypeMismatch, "column i, row 2"),
        ("i,s\n1,0x1\n0x10,a\n", TypeMismatch, "column i, row 3: '0x10' cannot become INT"),
        ("i,b\n1,yes\n", TypeMismatch, "column b, row 2: 'yes' cannot become BOOLEAN"),
        ("i,t\n1,2013-01-01T00:00:00Z\n1,yesterday\n", TypeMismatch, "column t, row 3: 'yesterday'"),
        ("i,t\n1,2013-01-01 00:00:00\n", ZoneMissing, "column t, row 2: '2013-01-01 00:00:00' names no zone"),
        ("i,s\n1,a\n1\n", Unreadable, "row 3: has 1 cell, not 2: '1'"),
        ('i,s\n1,a\n2,"b\n3,c\n', Unreadable, "row 3: a quote is opened and never closed"),
        ('i,s,x\n1,a,5" tall\n2,b,"c\n3,d,e\n', Unreadable, "row 3: a quote is opened and never closed"),
        ('s,i\na,1\nb,"2', Unreadable, "row 3: a quote is opened and never closed"),
        ('i,s,x\n1,a,e\n2,"b\n3,c,e\n', Unreadable, "row 3: a quote is opened and never closed"),
        ('i,s\n\n1,"x"\n2,"x"y\n', Unreadable, """row 3: has text after a closing quote: '2,"x"y'"""),
        (
            'i,s\n1,"he said \\\\"hi\\\\" x"\n',
            Unreadable,
            r"row 2: has text after a closing quote: '1,\"he said",
        ),
        ('"i"x,s\n1,a\n', Unreadable, "row 1: the header has text after a closing quote"),
        (b"i,s\n1,a\n1,\xff\n", Unreadable, "column s, row 3: b'.xff' is not UTF-8"),
        ("i,i,s\n1,2,a\n", Unreadable, "the header names i twice"),
        ("i;s\n1;a\n", Unreadable, "none of the table's columns: its columns are i;s"),
        ("\x00\x01\x02", Unreadable, "none of the table's columns"),
    ],
)
def test_what_is_wrong_is_named(text: str | bytes, error: type[FileRejected], said: str) -> None:
    with pytest.raises(error, match=said.replace("(", r"\(")):
        read(text)


def test_an_error_does_not_quote_the_rest_of_the_file() -> None:
    with pytest.raises(Unreadable) as caught:
        read('i,s\n1,"' + "secret\n" * 1000)
    assert len(str(caught.value)) < 300
    assert "\n" not in caught.value.what


def test_a_header_alone_has_no_rows() -> None:
    assert read("i,s").num_rows == 0
    assert read("i,s\n\n").num_rows == 0


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        ({"delimiter": "|"}, "i|s\n1|a\n"),
        ({"delimiter": r"\t"}, "i\ts\n1\ta\n"),
        ({"fileFormat": "tdf"}, "i\ts\n1\ta\n"),
        ({"header": "i,s"}, "1,a\n"),
        ({"header": "i|s", "delimiter": "|"}, "1|a\n"),
        ({"header": "i,s", "skipHeader": "true"}, "x,y\n1,a\n"),
        ({"quoteCharacter": "'"}, "i,s\n1,'a'\n"),
        ({"escapeCharacter": "\\"}, "i,s\n1,\\a\n"),
        ({"ignoreEmptyLines": "true"}, "i,s\n1,a\n"),
    ],
)
def test_settings(reader: dict[str, str], text: str) -> None:
    table = read(text, reader)
    assert (table["i"].to_pylist(), table["s"].to_pylist()) == ([1], ["a"])


def test_rows_are_counted_from_the_first_of_the_file() -> None:
    with pytest.raises(TypeMismatch, match="row 1"):
        read("x,a\n", {"header": "i,s"})
    with pytest.raises(TypeMismatch, match="row 2"):
        read("x,y\nx,a\n", {"header": "i,s", "skipHeader": "true"})


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_a_file_with_quotes_has_as_many_rows_as_one_without(end: str) -> None:
    assert read('i,s\n1,"a"\n2,' + end).to_pylist()[1]["i"] == 2
    assert read('i,s\n1,"a"\n2,b' + end).num_rows == 2
    assert read('x,s\n,"a"\n,""' + end)["s"].to_pylist() == ["a", None]


def test_another_text_for_null() -> None:
    assert column("i,s\n1,-\n2,\n", "s", {"nullStringValue": "-"}) == [None, None]


@pytest.mark.parametrize(
    ("reader", "said"),
    [
        ({"skipUnParseableLines": "true"}, "skipUnParseableLines are not supported\n.*onBadRow: quarantine"),
        ({"commentMarker": ","}, "commentMarker and delimiter are both ','"),
        ({"multiValueDelimiterEnabled": "no"}, "neither true nor false"),
        ({"delimeter": ","}, "delimeter"),
        ({"ignoreSurroundingSpaces": "true"}, r"ignoreSurroundingSpaces are not supported\n.*trim\("),
        ({"fileFormat": "MYSQL"}, "MYSQL"),
        ({"delimiter": "||"}, "delimiter"),
        ({"skipHeader": "true"}, "skipHeader without header"),
    ],
)
def test_settings_that_cannot_be_used_are_named(reader: dict[str, str], said: str) -> None:
    with pytest.raises(ReaderSettings, match=said):
        CsvSettings.from_reader(reader)


MANY = pa.schema([("s", pa.string()), ("m", pa.list_(pa.string())), ("n", pa.list_(pa.int64()))])


@pytest.mark.parametrize(
    ("reader", "cell", "expected"),
    [
        ({}, "a;b", ["a", "b"]),
        ({}, "a", ["a"]),
        ({}, "", None),
        ({}, ";a;;b;", ["a", "b"]),
        ({}, ";;", None),
        ({}, '"a;""b"""', ["a", '"b"']),
        ({"multiValueDelimiter": "|"}, "a|b;c", ["a", "b;c"]),
        ({"multiValueDelimiter": "."}, "a.b", ["a", "b"]),
        ({"multiValueDelimiterEnabled": "false"}, "a;b", ["a;b"]),
        ({"multiValueDelimiterEnabled": "false"}, "", None),
    ],
)
def test_cells_of_multi_value_columns(reader: dict[str, str], cell: str, expected: list[str] | None) -> None:
    table = read(f"s,m\nx;y,{cell}\n", reader, MANY)
    assert table.to_pylist() == [{"s": "x;y", "m": expected, "n": None}]


def test_a_value_of_many_may_be_wrong() -> None:
    assert read("s,n\n,1;+2; 3\n", schema=MANY)["n"].to_pylist() == [[1, 2, 3]]
    with pytest.raises(TypeMismatch, match=r"column n, row 3: \['1', 'x'\] cannot become multi-value LONG"):
        read("s,n\n,1;2\n,1;x\n", schema=MANY)


def test_comments_are_no_rows() -> None:
    text = '# made by hand\ni,s\n#1,a\n2,"b\n#c"\n# "\nx,d\n'
    with pytest.raises(TypeMismatch, match="row 3: 'x'"):
        read(text, {"commentMarker": "#"})
    assert column(text.replace("x,d", "3,#d"), "s", {"commentMarker": "#"}) == ["b\n#c", "#d"]


@pytest.mark.parametrize(
    ("text", "reader", "expected"),
    [
        ('i,s\n1,5" x\n2,"y\n#z\nw"\n#c\n', {}, ['5" x', "y\n#z\nw"]),
        ('s\n"x\\"y"\n#c\nz', {"escapeCharacter": "\\"}, ['x"y', "z"]),
        ("#c\ri,s\r1,x\r#d\r2,y\r", {}, ["x", "y"]),
    ],
)
def test_a_comment_is_one_where_arrow_begins_a_row(
    text: str, reader: dict[str, str], expected: list[str]
) -> None:
    assert column(text, "s", {"commentMarker": "#"} | reader) == expected


def test_a_quote_that_escapes_itself_is_no_escape() -> None:
    assert column('i,s\n1,"a""b"\n2,"c"\n', "s", {"escapeCharacter": '"'}) == ['a"b', "c"]


def test_a_name_in_the_header_may_hold_what_is_escaped() -> None:
    reader = {"escapeCharacter": "\\"}
    schema = pa.schema([('a"b', pa.int32()), ("c", pa.string())])
    assert read('"a\\"b",c\n1,x\n', reader, schema).to_pylist() == [{'a"b': 1, "c": "x"}]


@pytest.mark.parametrize("before", ["", "\n" * 4095, "\n" * 4096, "\r\n" * 2500])
@pytest.mark.parametrize(
    ("header", "name"), [("i,s", "i"), ('"i\nj",s', "i\nj"), (f"{'i' * 5000},s", "i" * 5000)]
)
def test_a_header_may_begin_and_end_far_from_the_start(before: str, header: str, name: str) -> None:
    schema = pa.schema([(name, pa.int32()), ("s", pa.string())])
    table = read(before + header + "\n" + "1,a\n" * 3000, None, schema)
    assert (table.num_rows, table.column(name)[2999].as_py(), table.column("s")[0].as_py()) == (3000, 1, "a")


def test_a_header_that_is_none_is_told() -> None:
    with pytest.raises(Unreadable, match="no header that can be read"):
        read("i" * 200_000 + ",s\n1,a\n")


def test_numbers_may_have_blanks_around_and_a_sign() -> None:
    assert column("i,s\n 7 , a \n+5,b\n-5,c\n", "i") == [7, 5, -5]
    assert column("t\n+5\n 6\n", "t") == [datetime.fromtimestamp(n / 1000, UTC) for n in (5, 6)]
