from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.core.file_errors import FileRejected, TypeMismatch, Unreadable, ZoneMissing
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats import json_documents, json_file
from pinot_assets.ingest.formats.json_file import read_documents

MOMENT = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("t", MOMENT),
        ("j", pa.string()),
    ]
)
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
NOON_MS = 1357041600000


def read(text: str | bytes) -> pa.Table:
    data = text if isinstance(text, bytes) else text.encode()
    tables = read_documents(iter([data]), TargetSchema(SCHEMA, json=frozenset("j")), BadRowPolicy())
    return pa.concat_tables([SCHEMA.empty_table(), *tables])


def column(name: str, *values: str) -> list[Any]:
    table = read("\n".join(f'{{"{name}":{value}}}' for value in values))
    assert table.schema.equals(SCHEMA)
    found: list[Any] = table[name].to_pylist()
    return found


def test_missing_members_are_null_and_unknown_ones_left_out() -> None:
    rows = read('{"i":1,"x":{"y":[1]}}\n\n{"s":"a","i":null}\n').to_pylist()
    assert [(row["i"], row["s"], row["d"]) for row in rows] == [(1, None, None), (None, "a", None)]


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("i", ["1", "-2147483648", "1.0", '"7"', "null"], [1, -(2**31), 1, 7, None]),
        ("l", ["9223372036854775807", '"-9223372036854775808"'], [2**63 - 1, -(2**63)]),
        ("l", ["123456789012345678.0", "9.223372036854775807E18"], [123456789012345678, 2**63 - 1]),
        ("l", ["1e3", "-0.0"], [1000, 0]),
        ("d", ['"NaN "', '"-Infinity"'], [pytest.approx(float("nan"), nan_ok=True), float("-inf")]),
        ("j", ['{"a":' + "9" * 5000 + "}"], ['{"a":' + "9" * 5000 + "}"]),
        ("d", ["1", "1.5", "1e400", '"2.5"'], [1.0, 1.5, float("inf"), 2.5]),
        ("s", ['"a"', "12", "true", '"\\u00e9\\ud83d\\ude00"'], ["a", "12", "true", "é😀"]),
        ("s", ["12", '"a"'], ["12", "a"]),
        ("b", ["true", "false", '"TRUE"', '"0"'], [True, False, True, False]),
        ("t", [str(NOON_MS), '"2013-01-01T12:00:00Z"', f'"{NOON_MS}"', f"{NOON_MS}.0"], [NOON] * 4),
        ("t", ['"2013-01-01T12:00:00Z"', '"2013-01-01T13:00:00+01:00"'], [NOON] * 2),
        ("t", [str(NOON_MS)], [NOON]),
        ("j", ['{"a" : [1, 2.5, "é"]}', "[ ]", '"{\\"a\\": 1}"', "3", "null"],
         ['{"a":[1,2.5,"é"]}', "[]", '{"a": 1}', "3", None]),
        ("j", ['"text"', '{"a":1}'], ["text", '{"a":1}']),
    ],
)  # fmt: skip
def test_values(name: str, values: list[str], expected: list[Any]) -> None:
    assert column(name, *values) == expected


def test_values_may_change_their_kind_late() -> None:
    values = [str(NOON_MS)] * 5000 + ['"2013-01-01T12:00:00Z"']
    assert column("t", *values) == [NOON] * 5001


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ('{"i":1}\n{"i":1.5}\n', TypeMismatch, "column i, row 2: 1.5"),
        ('{"i":1}\n\n{"i":2147483648}\n', TypeMismatch, "column i, row 2: 2147483648"),
        ('{"i":true}', TypeMismatch, "column i, row 1: True"),
        ('{"i":"1_0"}', TypeMismatch, "column i, row 1: '1_0'"),
        ('{"d":"1_0"}', TypeMismatch, "column d, row 1: '1_0'"),
        ('{"d":[1]}', TypeMismatch, "column d, row 1"),
        ('{"l":123456789012345678.5}', TypeMismatch, "column l, row 1: 123456789012345678.5"),
        ('{"l":9.223372036854775808E18}', TypeMismatch, "column l, row 1"),
        ('{"l":1e999999999}', TypeMismatch, "column l, row 1"),
        ('{"l":1e-99999999999999999999}', TypeMismatch, "column l, row 1"),
        ('{"t":123456789012345678.5}', TypeMismatch, "column t, row 1"),
        ('{"d":NaN}', TypeMismatch, "column d, row 1: nan cannot become DOUBLE"),
        ('{"d":1}\n{"d":-Infinity}', TypeMismatch, "column d, row 2: -inf cannot become DOUBLE"),
        ('{"d":1}\n{"d":1e400}\n{"d":NaN}', TypeMismatch, "column d, row 3: nan cannot become DOUBLE"),
        ('{"d":"１２"}', TypeMismatch, "column d, row 1"),
        ('{"i":1}\n{"i":' + "9" * 5000 + "}", TypeMismatch, "column i, row 2: 9999"),
        ('{"s":1.5}', TypeMismatch, "column s, row 1: 1.5"),
        ('{"s":{"a":1}}', TypeMismatch, "column s, row 1"),
        ('{"s":"\\ud83d"}', TypeMismatch, "column s, row 1"),
        ('{"b":1}', TypeMismatch, "column b, row 1: 1"),
        ('{"b":"yes"}', TypeMismatch, "column b, row 1: 'yes'"),
        ('{"t":"noon"}', TypeMismatch, "column t, row 1: 'noon'"),
        ('{"t":true}', TypeMismatch, "column t, row 1: True"),
        ('{"t":"2013-01-01T12:00:00Z"}\n{"t":"2013-01-01T12:00:00"}', ZoneMissing, "column t, row 2"),
        ('{"j":{"a":NaN}}', TypeMismatch, "column j, row 1"),
        ('{"i":1}\n{"i":2\n', Unreadable, "row 2: line 3"),
        ('{"i":1}\n{"i":2},\n', Unreadable, "row 3: line 2"),
        ('{"i":1}\n{"s":"a\tb"}\n', Unreadable, "line 2: Invalid control character at character 8"),
        ('{"i":1}\n{"s":"a\n', Unreadable, "line 2: Invalid control character at character 8"),
        ('{"i":1}\n{"s":"a', Unreadable, "line 2: Unterminated string starting at character 6"),
        ('{"i":1}\n7\n', Unreadable, "row 2: 7 is not a JSON object"),
        (b'{"s":"a"}\n{"s":"\xff"}\n', Unreadable, "not UTF-8"),
        ('{"I":1}\n{"x":2}\n', Unreadable, "none of the table's columns: its first row has I"),
        ('{"j":' + "[" * 100_000 + "]" * 100_000 + "}", Unreadable, "row 1: values are nested too deeply"),
    ],
)
def test_what_is_wrong_is_named(text: str | bytes, error: type[FileRejected], said: str) -> None:
    with pytest.raises(error) as caught:
        read(text)
    assert said in str(caught.value)


def test_columns_that_are_null_in_every_row_are_still_known() -> None:
    assert read('{"i":null}\n{"x":1}\n').num_rows == 2


def test_a_number_of_any_length_may_stand_in_a_member_that_nobody_wants() -> None:
    assert read('{"i":1,"x":' + "9" * 5000 + '}\n{"i":2.0}\n')["i"].to_pylist() == [1, 2]


def test_the_last_of_two_members_counts_as_in_jackson() -> None:
    assert column("i", '1,"i":2') == [2]


def test_a_document_may_be_long_and_take_several_lines() -> None:
    long = "x" * (17 << 20)
    assert column("s", f'\n"{long}"') == [long]


def test_a_first_document_that_is_longer_than_the_look_ahead() -> None:
    assert read('{"x":"' + "y" * 70_000 + '","i":1}\n{"i":2}\n')["i"].to_pylist() == [1, 2]


cells = {
    "i": st.integers(-(2**31), 2**31 - 1),
    "l": st.integers(-(2**63), 2**63 - 1),
    "d": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53),
    "s": st.text(st.characters(exclude_categories=["Cs"])),
    "b": st.booleans(),
    "t": st.integers(-(2**40), 2**40),
}
first = st.fixed_dictionaries(cells)
rest = st.lists(
    st.fixed_dictionaries({}, optional={name: st.none() | cell for name, cell in cells.items()}), max_size=5
)


@settings(max_examples=60, deadline=None)
@given(first, rest)
def test_both_ways_to_read_agree(first: JsonObject, rest: list[JsonObject]) -> None:
    documents = [first, *rest]
    text = "\n".join(json.dumps(document) for document in documents)
    schema = pa.schema([field for field in SCHEMA if field.name != "j"])
    data = text.encode()
    fast, slow = (json_file._JsonReader(TargetSchema(schema), BadRowPolicy()) for _ in range(2))
    assert fast._by_arrow(data).equals(slow._by_python(data, is_last=True))


objects = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.fixed_dictionaries({"j": objects}, optional={"i": cells["i"]}), min_size=1, max_size=4))
def test_both_ways_to_read_objects_agree(documents: list[JsonObject]) -> None:
    data = "\n".join(map(json.dumps, documents)).encode()
    schema = pa.schema([("i", pa.int32()), ("j", pa.string())])
    fast, slow = (
        json_file._JsonReader(TargetSchema(schema, json=frozenset("j")), BadRowPolicy()) for _ in range(2)
    )
    expected = slow._by_python(data, is_last=True)
    assert fast.read(data, is_last=True).equals(expected)


def test_objects_do_not_keep_the_other_columns_from_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_file._JsonReader, "_by_python", None)
    rows = read('{"j":{"a":1.50},"i":1}\n{"i":2,"j":[]}\n{"i":3}\n{"j":"x","s":"y"}').to_pylist()
    assert [(row["i"], row["j"], row["s"]) for row in rows] == [
        (1, '{"a":1.50}', None),
        (2, "[]", None),
        (3, None, None),
        (None, "x", "y"),
    ]


@pytest.mark.parametrize(
    "text", ['[{"i":1},{"i":2}]', ' [ {"i" : 1 }\n,\n{"i":2}\n] \n', '{"i":1}{"i":2}', '{"i":1} {"i":2}']
)
def test_arrays_and_documents_side_by_side(text: str) -> None:
    assert read(text)["i"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "said"), [("[1]", "row 1: 1 is not a JSON object"), ('[{"i":1},[]]', "row 2: ")]
)
def test_an_array_of_something_else(text: str, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        read(text)


def test_an_empty_array_has_no_rows() -> None:
    assert read(" [ ]\n").num_rows == 0


def test_numbers_in_json_and_decimals_stay_as_they_are_written() -> None:
    schema = pa.schema([("n", pa.string()), ("j", pa.string()), ("m", pa.list_(pa.string()))])
    wanted = TargetSchema(schema, json=frozenset("j"), decimals=frozenset("nm"))
    text = '{"n":0.10,"j":{"a":[1.10,1e400]},"m":[1,2.50]}\n{"n":"1e5","m":7}'
    tables = read_documents(iter([text.encode()]), wanted, BadRowPolicy())
    assert pa.concat_tables(tables).to_pylist() == [
        {"n": "0.10", "j": '{"a":[1.10,1e400]}', "m": ["1", "2.50"]},
        {"n": "1e5", "j": None, "m": ["7"]},
    ]
    with pytest.raises(TypeMismatch, match="column n, row 1: 'a' cannot become BIG_DECIMAL"):
        list(read_documents(iter([b'{"n":"a"}']), wanted, BadRowPolicy()))


def test_a_long_document_of_several_lines_is_parsed_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for every block: one of 60 MB would take minutes."""
    tried: list[int] = []
    read_block = json_file._JsonReader.read

    def counted(self: json_file._JsonReader, block: bytes, *, is_last: bool = False) -> pa.Table:
        tried.append(len(block))
        return read_block(self, block, is_last=is_last)

    monkeypatch.setattr(json_file._JsonReader, "read", counted)
    lines = [b'{"i":0}\n{\n', *[b'"x%d":1,\n' % n for n in range(2000)], b'"i":7}\n{"i":8}\n']
    wanted = TargetSchema(pa.schema([("i", pa.int64())]))
    tables = list(read_documents(iter(lines), wanted, BadRowPolicy()))
    assert pa.concat_tables(tables)["i"].to_pylist() == [0, 7, 8]
    assert len(tried) < 20
    assert sum(tried) < 5 * sum(map(len, lines))


def test_a_document_of_several_lines_may_not_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_documents, "DOCUMENT_BYTES", 1000)
    count = [0]

    def blocks() -> Iterator[bytes]:
        yield b'{"i":0}\n{\n'
        for n in range(1000):
            count[0] = n
            yield b'"x%d":1,\n' % n

    with pytest.raises(Unreadable, match="a document is longer than"):
        list(read_documents(blocks(), TargetSchema(pa.schema([("i", pa.int64())])), BadRowPolicy()))
    assert count[0] < 200
