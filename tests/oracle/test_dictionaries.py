"""BYTES and BIG_DECIMAL, forms of the dictionary, and when there is none, against Pinot's own builder."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from oracle.case import alone

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import BuildError

BYTES = {"dataType": "BYTES"}
DECIMAL = {"dataType": "BIG_DECIMAL"}
STRING = {"dataType": "STRING"}


@pytest.mark.parametrize(
    "values",
    [
        [b"ab", b"\xff\0", b"a\0"],
        [b"", b"a", b"ab", b"\0", b"\xff"],
        [b"", b""],
        [None, b"x"],
        [None, None],
        [b"x" * 600, b"y"],
        [b"x" * 256, b"y" * 256, b"y" * 257],
    ],
    ids=lambda values: f"{len(values)} values of {max(len(v or b'') for v in values)}",
)
def test_trap11_bytes(case: Any, oracle: Any, values: list[bytes | None]) -> None:
    segment = case.same({"b": (BYTES, values), "m": ({**BYTES, "section": "metric"}, values)})
    read = oracle.read(oracle.segment_folder(segment.files), {"b": "BYTES"})["b"]
    assert read.values == [value or b"" for value in values]


@pytest.mark.parametrize("strategy", ["TRIM_LENGTH", "NO_ACTION", "SUBSTITUTE_DEFAULT_VALUE"])
def test_trap07_maximum_length_of_bytes(case: Any, strategy: str) -> None:
    field = {**BYTES, "maxLength": 3, "maxLengthExceedStrategy": strategy, "defaultNullValue": "0A0b"}
    case.same({"b": (field, [b"abcd", b"a\0bc", b"abc", None, b""])})


@pytest.mark.parametrize("default", ["", "00ff", "FFEE"])
def test_defaults_of_bytes(case: Any, default: str) -> None:
    case.same(
        {
            "b": ({**BYTES, "defaultNullValue": default}, [None, b"x"]),
            "n": ({**BYTES, "defaultNullValue": default}, []),
        }
    )


DECIMALS: list[list[str | None]] = [
    ["1.50", "1.5", "-0.0", "0"],
    ["100000", "1E+5", "1e-20", "0.000001", "0.0000001"],
    ["127", "128", "-128", "-129", "32767", "-32768", "-32769"],
    ["12", "-7", "1.5"],
    [None, "3"],
    [None, None],
    ["0"],
    ["9" * 100, "-" + "9" * 100 + "." + "1" * 50, "1E+300", "1E-300"],
    ["1E+32767", "1E-32767"],
    [" +1.0 ", ".5", "5."],
]


@pytest.mark.parametrize("values", DECIMALS, ids=lambda values: ascii(values)[:40])
def test_trap12_decimals(case: Any, oracle: Any, values: list[str | None]) -> None:
    segment = case.same(
        {"d": (DECIMAL, values), "m": ({**DECIMAL, "section": "metric"}, values), "r": (DECIMAL, values)},
        indexing={"noDictionaryColumns": ["r"]},
    )
    read = oracle.read(oracle.segment_folder(segment.files), {"d": "BIG_DECIMAL", "r": "BIG_DECIMAL"})
    expected = [Decimal((value or "0").strip()) for value in values]
    assert read["d"].values == read["r"].values == expected


@pytest.mark.parametrize("default", ["1.50", "0.00", "1E+5", "-0", "100", 7, 1.5])
def test_trap12_a_default_keeps_its_zeros(case: Any, default: Any) -> None:
    field = {**DECIMAL, "defaultNullValue": default}
    case.same({"d": (field, [None, "2.50", None]), "n": (field, [])})


def test_trap12_a_default_beside_the_same_number_is_refused(case: Any) -> None:
    field = {**DECIMAL, "defaultNullValue": "1.50"}
    with pytest.raises(BuildError, match="Column d holds its defaultNullValue"):
        case.same({"d": (field, [None, "1.5"])})


def test_trap12_a_scale_that_does_not_fit_is_refused(case: Any) -> None:
    with pytest.raises(BuildError, match="Column d holds a value that is no BIG_DECIMAL"):
        case.same({"d": (DECIMAL, ["1E-40000"])})


VALUES: dict[str, tuple[JsonObject, list[Any]]] = {
    "text": (STRING, ["b", "", None, "\U0001f600", "é" * 300, "a"]),
    "same": (STRING, ["bb", "aa", "cc", "aa", "bb", "cc"]),
    "json": ({"dataType": "JSON"}, ["{}", "[1.0]", None, "", "x", '"a"']),
    "bytes": (BYTES, [b"b", b"a", b"c", b"a", None, b"d"]),
    "equal": (BYTES, [b"b", b"a", b"c", b"a", b"d", b"d"]),
    "decimal": (DECIMAL, ["1", "2", "3", "2", None, "5"]),
    "many": ({**STRING, "singleValueField": False}, [["b", "a"], [], ["ccc"], None, ["a"], ["b"]]),
    "int": ({"dataType": "INT"}, [1, 2, 3, 3, 2, 1]),
}


@pytest.mark.parametrize(
    ("indexing", "dictionary"),
    [
        ({"varLengthDictionaryColumns": [*VALUES]}, None),
        ({}, {"useVarLengthDictionary": True}),
        ({"optimizeDictionaryType": True}, None),
        ({"optimizeDictionaryType": True}, {"useVarLengthDictionary": True}),
        ({"onHeapDictionaryColumns": [*VALUES]}, None),
        ({}, {"onHeap": True}),
    ],
)
def test_trap11_variable_length_dictionaries(
    case: Any, oracle: Any, indexing: JsonObject, dictionary: JsonObject | None
) -> None:
    fields = [{"name": name, "indexes": {"dictionary": dictionary}} for name in VALUES if dictionary]
    segment = case.same(VALUES, indexing=indexing, fields=fields)
    read = oracle.read(oracle.segment_folder(segment.files), {"same": "STRING", "many": "STRING"})
    assert read["same"].values == VALUES["same"][1]
    assert read["many"].values == [row or ["null"] for row in VALUES["many"][1]]


def test_trap27_a_dictionary_that_looks_variable_is_readable(oracle: Any) -> None:
    """Pinot's own is not: it takes the first bytes for the head of a variable-length dictionary."""
    values = [b".vl;\0\0\0\1", b"zzzzzzzz", b".vl;\0\0\0\1"]
    segment = alone({"name": "b", "dataType": "BYTES"}, values)
    assert oracle.read(oracle.segment_folder(segment.files), {"b": "BYTES"})["b"].values == values


def _spread(distinct: int, rows: int) -> list[int]:
    return [n % distinct * 3 for n in range(rows)]


@pytest.mark.parametrize("distinct", [1, 10, 300, 600, 690, 700, 750, 800, 1000])
@pytest.mark.parametrize("switch", ["optimizeDictionary", "optimizeDictionaryForMetrics"])
def test_trap25_optimize_dictionary(case: Any, switch: str, distinct: int) -> None:
    values = _spread(distinct, 1000)
    columns: dict[str, tuple[JsonObject, list[Any]]] = {
        kind.lower(): ({"dataType": kind}, [*map(float, values)] if kind in ("FLOAT", "DOUBLE") else values)
        for kind in ("INT", "LONG", "FLOAT", "DOUBLE", "TIMESTAMP")
    }
    columns |= {
        f"m_{name}": ({**columns[name][0], "section": "metric"}, columns[name][1])
        for name in ("int", "double")
    }
    columns |= {
        "text": (STRING, [*map(str, values)]),
        "flag": ({"dataType": "BOOLEAN"}, [value > 500 for value in values]),
        "many": ({"dataType": "INT", "singleValueField": False}, [[value] for value in values]),
        "m_decimal": ({**DECIMAL, "section": "metric"}, [*map(str, values)]),
    }
    case.same(columns, indexing={switch: True})


@pytest.mark.parametrize("ratio", [0.0, 0.5, 0.99, 1.0, 1.5, 3.0])
def test_trap25_thresholds(case: Any, ratio: float) -> None:
    columns = {
        "int": ({"dataType": "INT"}, _spread(500, 1000)),
        "text": (STRING, [*map(str, _spread(500, 1000))]),
        "bytes": (BYTES, [bytes(str(value), "ascii") for value in _spread(990, 1000)]),
        "decimal": (DECIMAL, [*map(str, _spread(1000, 1000))]),
    }
    indexing = {"noDictionarySizeRatioThreshold": ratio, "noDictionaryCardinalityRatioThreshold": ratio}
    case.same(columns, indexing={"optimizeDictionary": True, **indexing})


def test_trap25_indexes_have_their_say(case: Any) -> None:
    """JSON and text indexes make a column raw; they themselves are left to the server."""

    def same_encodings(theirs: Mapping[str, bytes], ours: Mapping[str, bytes]) -> None:
        for files in (theirs, ours):
            lines = files["metadata.properties"].decode().splitlines()
            found = {line for line in lines if ".hasDictionary" in line}
            assert found == {"column.j.hasDictionary = false", "column.k.hasDictionary = true"}

    columns = {name: ({"dataType": "JSON"}, ['{"a":1}', '{"a":2}'] * 50) for name in ("j", "k")}
    indexing = {"optimizeDictionary": True, "jsonIndexColumns": ["j"]}
    case.same(columns, indexing=indexing, compare=same_encodings)


ENTRIES: list[list[list[int] | None]] = [
    [[1, 2], [1, 2], [2, 1], None, [1]],
    [[n % 7, n % 3] for n in range(500)],
    [[5]] * 9,
    [[n] * (n % 40 + 1) for n in range(3000)],
]


@pytest.mark.parametrize("rows", ENTRIES, ids=lambda rows: f"{len(rows)} rows")
@pytest.mark.parametrize("place", ["field", "forward", "dictIdCompressionType"])
def test_rows_with_a_dictionary_of_their_own(case: Any, oracle: Any, rows: list[Any], place: str) -> None:
    setting: JsonObject = {
        "field": {"compressionCodec": "MV_ENTRY_DICT"},
        "forward": {"indexes": {"forward": {"compressionCodec": "MV_ENTRY_DICT"}}},
        "dictIdCompressionType": {"indexes": {"forward": {"dictIdCompressionType": "MV_ENTRY_DICT"}}},
    }[place]
    columns = {"many": ({"dataType": "INT", "singleValueField": False, "defaultNullValue": 0}, rows)}
    segment = case.same(columns, fields=[{"name": "many", **copy.deepcopy(setting)}])
    read = oracle.read(oracle.segment_folder(segment.files), {"many": "INT"})["many"]
    assert read.values == [rows[row] or [0] for row in read.rows]
