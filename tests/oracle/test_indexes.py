"""Partition metadata, indexes written at build time and sorted rows, each against Pinot's own builder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes.processes.other_jvm import java_fails
from oracle.case import Case, property_of

from pinot_assets.core.json_object import JsonObject

STRING = {"dataType": "STRING"}
INT = {"dataType": "INT"}
LONG = {"dataType": "LONG"}
BOUNDED = {"columnValues": "7|-9|x y|0.5", "columnValuesDelimiter": "|"}
FUNCTIONS: list[tuple[str, JsonObject | None]] = [
    ("Modulo", None),
    ("murmur", None),
    ("Murmur2", {}),
    ("Murmur3", None),
    ("Murmur3", {"seed": 9001}),
    ("murmur3", {"seed": "-7", "variant": "x86_32"}),
    ("Murmur3", {"variant": "x64_32"}),
    ("Murmur3", {"variant": "x64_32", "seed": "-7"}),
    ("Murmur3", {"variant": "", "seed": ""}),
    ("HashCode", None),
    ("ByteArray", None),
    ("BoundedColumnValue", BOUNDED),
]
KINDS: dict[str, list[Any]] = {
    "INT": [7, -9, 0, 2**31 - 1, None, -(2**31)],
    "LONG": [7, -9, 2**60, None, -(2**63)],
    "FLOAT": [0.5, 1.5e10, None, 1e-7, 3.4028234663852886e38],
    "DOUBLE": [0.5, 2e23, None, 1e-7, 123456.789, 4.9e-324, 12.0],
    "STRING": ["7", "x y", "X Y", "é\U0001f600", None, "", "日本語" * 9, "a" * 40],
    "BOOLEAN": [True, None, False],
    "TIMESTAMP": [1_600_000_000_000, None, 5],
    "JSON": ['{"a": 1.0}', "7", None, '"\\ud83d"'],
    "BYTES": [b"\x07", b"", None, b"\xff\x80" * 9],
    "BIG_DECIMAL": ["7", "1E+5", "0.5", "1E-20", None, "-9"],
}


def partitioned(columns: dict[str, JsonObject]) -> JsonObject:
    return {"segmentPartitionConfig": {"columnPartitionMap": columns}}


def how(name: str, config: JsonObject | None, count: int = 7) -> JsonObject:
    if name == "BoundedColumnValue":
        count = 5
    return {
        "functionName": name,
        "numPartitions": count,
        **({} if config is None else {"functionConfig": config}),
    }


@pytest.mark.parametrize(
    ("name", "config"), FUNCTIONS, ids=[f"{name} {config}" for name, config in FUNCTIONS]
)
def test_trap23_partitions_of_every_type(case: Case, name: str, config: JsonObject | None) -> None:
    kinds = ["INT", "LONG", "BOOLEAN", "TIMESTAMP"] if name == "Modulo" else [*KINDS]
    data = {}
    for kind in kinds:
        for i, value in enumerate(KINDS[kind]):  # a column for each value shows each value's partition
            data[f"{kind}_{i}"] = ({"dataType": kind}, [value])
    case.same(data, indexing=partitioned({column: how(name, config, 1_000_003) for column in data}))


@pytest.mark.parametrize("count", [12, 13, 40, 300, 100_000])
def test_trap22_order_of_the_partitions(case: Case, count: int) -> None:
    rng = np.random.default_rng(count)
    texts = [str(number) for number in rng.integers(0, 10**9, 3 * count)]
    data = {
        "s": (STRING, texts),
        "i": (INT, rng.integers(-(2**31), 2**31, 3 * count).tolist()),
        "n": (INT, [None, *rng.permutation(3 * count).tolist()[1:]]),
        "tie": (INT, (16 * rng.permutation(3 * count)).tolist()),
    }
    functions = {"s": how("Murmur", None, count), "i": how("Murmur3", {"variant": "x64_32"}, count)}
    functions |= {"n": how("Modulo", None, count), "tie": how("Modulo", None, 16 * 16)}
    segment = case.same(data, indexing=partitioned(functions))
    assert len(property_of(segment, "column.n.partitionValues").split(",")) == count


def test_modulo_of_texts(case: Case) -> None:
    case.same(
        {"s": ({**STRING, "defaultNullValue": "0"}, ["-7", "+9", "007", None, "9223372036854775807"])},
        indexing=partitioned({"s": how("Modulo", None, 5)}),
    )


@pytest.mark.parametrize(
    "config",
    [
        {"columnValues": "Maths,English", "columnValuesDelimiter": ","},
        {"columnValuesDelimiter": "|;", "columnValues": "Maths;|English|", "note": "a=b:c #!"},
        {"columnValues": "mÄTHS|İ", "columnValuesDelimiter": "|", "note": "${x}\t\\"},
    ],
)
def test_settings_of_a_partition_function_come_back(case: Case, oracle: Any, config: dict[str, str]) -> None:
    texts = ["English", "maths", "x", "MÄTHS", "i", "I", "ı"]
    segment = case.same(
        {"s": (STRING, texts)},
        indexing=partitioned({"s": {**how("BoundedColumnValue", config), "numPartitions": 3}}),
    )
    metadata = oracle.metadata(oracle.segment_folder(segment.files)).getColumnMetadataFor("s")
    assert dict(metadata.getPartitionFunction().getFunctionConfig()) == config


def test_partitions_of_a_long_table(case: Case) -> None:
    rng = np.random.default_rng(5)
    rows = 70_000
    data = {
        "i": (INT, rng.integers(0, 10**6, rows).tolist()),
        "d": ({"dataType": "DOUBLE"}, (rng.standard_normal(rows) * 1e5).tolist()),
        "s": (STRING, [f"ключ {n}" for n in rng.integers(0, 5000, rows)]),
    }
    case.same(data, indexing=partitioned({name: how("Murmur3", {"seed": 1}, 128) for name in data}))


BUILD_INVERTED = {"createInvertedIndexDuringSegmentGeneration": True}
PATTERNS: dict[str, list[Any]] = {
    "few": [3, 1, 2, 1, None, 3],
    "sorted": [1, 1, 2, 3, 3, 3],
    "alternating": [0, 1] * 40_000,
    "ties": [0, 0, 0, 1] * 30,
    "runs": [i // 500 % 7 for i in range(150_000)],
}


@pytest.mark.parametrize("name", PATTERNS)
def test_inverted_index(case: Case, name: str) -> None:
    values = PATTERNS[name]
    segment = case.same({"i": (INT, values)}, indexing={"invertedIndexColumns": ["i"], **BUILD_INVERTED})
    assert (b"inverted_index" in segment.files["index_map"]) is (name != "sorted")


def test_inverted_index_of_many_values(case: Case) -> None:
    rng = np.random.default_rng(6)
    rows = 140_000
    data = {
        "card9": (INT, rng.integers(0, 9, rows).tolist()),
        "card2000": (STRING, [str(n) for n in rng.integers(0, 2000, rows)]),
        "skewed": (LONG, np.minimum(rng.geometric(0.01, rows), 300).tolist()),
        "distinct": (INT, rng.permutation(rows).tolist()),
    }
    case.same(data, indexing={"invertedIndexColumns": [*data], **BUILD_INVERTED})


def test_inverted_index_of_multi_value_columns(case: Case) -> None:
    many = {"singleValueField": False}
    data = {
        "i": ({**INT, **many}, [[1, 2, 2, 1], None, [3], [2, None], [], [1, 1]]),
        "s": ({**STRING, **many}, [["b"], ["a", "b", "b"], [None], ["a"], None, ["c"]]),
    }
    case.same(data, indexing={"invertedIndexColumns": [*data], **BUILD_INVERTED})


@pytest.mark.parametrize(
    ("indexing", "field", "written"),
    [
        ({"invertedIndexColumns": ["i"]}, {}, False),
        ({"invertedIndexColumns": ["i"]}, {"indexTypes": ["INVERTED"]}, False),
        ({}, {"indexTypes": ["INVERTED"]}, True),
        ({}, {"indexes": {"inverted": {}}}, True),
        ({}, {"indexes": {"inverted": {"disabled": True}}}, False),
    ],
)
def test_inverted_indexes_are_written_when_pinot_writes_them(
    case: Case, indexing: JsonObject, field: JsonObject, written: bool
) -> None:
    fields = [{"name": "i", "encodingType": "DICTIONARY", **field}]
    segment = case.same({"i": (INT, [3, 1, 2, 1])}, indexing=indexing, fields=fields)
    assert (b"inverted_index" in segment.files["index_map"]) is written


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "BOOLEAN"])
def test_bloom_filter_of_every_type(case: Case, kind: str) -> None:
    case.same({"c": ({"dataType": kind}, KINDS[kind])}, indexing={"bloomFilterColumns": ["c"]})


@pytest.mark.parametrize(
    "settings",
    [{}, {"fpp": 0.3}, {"fpp": 0.001}, {"fpp": 0.05, "maxSizeInBytes": 100}, {"maxSizeInBytes": 1}],
)
def test_bloom_filter_settings(case: Case, settings: JsonObject) -> None:
    rng = np.random.default_rng(7)
    data = {
        "i": (INT, rng.integers(0, 10**6, 3000).tolist()),
        "m": ({**STRING, "singleValueField": False}, [[f"x{n}", f"y{n % 7}"] for n in range(3000)]),
    }
    case.same(data, indexing={"bloomFilterConfigs": dict.fromkeys(data, settings)})
    case.same(data, fields=[{"name": name, "indexes": {"bloom": settings}} for name in data])


def by(*keys: list[Any]) -> list[int]:
    """The rows in the order of their keys, a stable sort."""
    return sorted(range(len(keys[0])), key=lambda row: tuple(key[row] for key in keys))


def test_trap02_rows_are_sorted_in_pinots_order(case: Case) -> None:
    texts = ["\uffff", "\U00010000", "\ue000", "\ud7ff", "\U0001f600", "z", "é", "z", None, "\U00010000"]
    key = [("null" if text is None else text).encode("utf-16-be") for text in texts]
    segment = case.same(
        {
            "s": (STRING, texts),
            "n": (INT, [None if i % 3 else i for i in range(10)]),
            "m": ({**INT, "singleValueField": False}, [[i] * (i % 4) for i in range(10)]),
        },
        indexing={"sortedColumn": ["s"]},
        pinots_order=by(key),
    )
    assert {column.name: column.is_sorted for column in segment.columns}["s"]


def test_rows_are_sorted_by_all_sorted_columns(case: Case) -> None:
    rng = np.random.default_rng(8)
    rows = 3000
    data = {
        "a": (INT, rng.integers(-5, 5, rows).tolist()),
        "b": ({"dataType": "DOUBLE"}, rng.integers(0, 20, rows).astype(float).tolist()),
        "c": (STRING, [str(n) for n in rng.integers(0, 10**6, rows)]),
    }
    segment = case.same(
        data,
        indexing={
            "sortedColumn": ["b", "a"],
            "bloomFilterColumns": ["c"],
            **partitioned({"c": how("Murmur", None, 16)}),
        },
        pinots_order=by(data["b"][1], data["a"][1]),
    )
    assert [column.is_sorted for column in segment.columns] == [False, True, False]


@pytest.mark.parametrize("name", ["Murmur", "ByteArray", "HashCode", "Modulo", "BoundedColumnValue"])
def test_an_old_server_reads_partitions_and_indexes(case: Case, old_server: Any, name: str) -> None:
    segment = case.same(
        {"i": (INT, [5, 3, None, 3, 9])},
        indexing={
            "invertedIndexColumns": ["i"],
            "bloomFilterColumns": ["i"],
            **BUILD_INVERTED,
            **partitioned({"i": how(name, BOUNDED if name == "BoundedColumnValue" else None)}),
        },
    )
    folder = old_server.segment_folder(segment.files)
    assert old_server.read(folder, {"i": "INT"})["i"].values == [5, 3, -(2**31), 3, 9]
    metadata = old_server.metadata(folder).getColumnMetadataFor("i")
    assert metadata.getPartitionFunction().getName() == name
    written = property_of(segment, "column.i.partitionValues").split(",")
    assert {str(value) for value in metadata.getPartitions()} == {*written}


@pytest.mark.parametrize("at_build", [True, False])
@pytest.mark.parametrize("optimize", ["optimizeDictionary", "optimizeDictionaryForMetrics"])
def test_trap25_only_an_inverted_index_that_is_written_keeps_the_dictionary(
    case: Case, at_build: bool, optimize: str
) -> None:
    distinct = np.random.default_rng(25).permutation(1000).tolist()
    segment = case.same(
        {"i": ({**INT, "section": "metric"}, distinct)},
        indexing={
            optimize: True,
            "invertedIndexColumns": ["i"],
            "createInvertedIndexDuringSegmentGeneration": at_build,
        },
    )
    assert property_of(segment, "column.i.hasDictionary") == ("true" if at_build else "false")


def test_a_raw_column_may_leave_its_inverted_index_to_the_server(case: Case) -> None:
    indexing = {"noDictionaryColumns": ["i"], "invertedIndexColumns": ["i"]}
    segment = case.same({"i": (INT, [3, 1, 2])}, indexing=indexing)
    assert b"inverted_index" not in segment.files["index_map"]


def test_an_old_server_cannot_load_murmur3(case: Case, old_server: Any) -> None:
    segment = case.same({"i": (INT, [1, 2])}, indexing=partitioned({"i": how("Murmur3", None)}))
    with java_fails():
        old_server.metadata(old_server.segment_folder(segment.files))


RAW: dict[str, tuple[JsonObject, list[Any]]] = {
    "i": (INT, [5, None, 3, 5, -1]),
    "s": (STRING, ["b", "a\U0001f600", None, "b", ""]),
    "b": ({"dataType": "BYTES"}, [b"\xff", b"", None, b"\xff", b"a"]),
    "d": ({"dataType": "BIG_DECIMAL"}, ["1E+5", "0.5", None, "100000", "-7"]),
    "m": ({**INT, "singleValueField": False}, [[1, 2], None, [3], [2, 2], []]),
}


def test_raw_columns_have_bloom_filters_and_partitions(case: Case) -> None:
    single = [name for name in RAW if name != "m"]
    case.same(
        RAW,
        indexing={
            "noDictionaryColumns": [*RAW],
            "bloomFilterColumns": [*RAW],
            **partitioned({name: how("Murmur", None, 1000) for name in single}),
        },
    )


@pytest.mark.parametrize(("name", "order"), [("i", [1, 4, 2, 0, 3]), ("s", [4, 1, 0, 3, 2])])
def test_rows_are_sorted_by_a_raw_column(case: Case, name: str, order: list[int]) -> None:
    indexing = {"noDictionaryColumns": [*RAW], "sortedColumn": [name]}
    segment = case.same(RAW, indexing=indexing, pinots_order=order)
    assert property_of(segment, f"column.{name}.isSorted") == "true"
    assert property_of(segment, f"column.{name}.hasDictionary") == "false"


def test_null_times_are_sorted_as_what_they_become(case: Case) -> None:
    field = {"dataType": "LONG", "format": "1:DAYS:EPOCH", "granularity": "1:DAYS", "section": "dateTime"}
    days = [18_000, None, 17_000, 19_000, None]
    segment = case.same(
        {"day": ({**field, "defaultNullValue": 18_500}, days), "i": (INT, [1, 2, 3, 4, 5])},
        time_column="day",
        indexing={"sortedColumn": ["day"]},
        pinots_order=[2, 0, 1, 4, 3],
    )
    assert [column.is_sorted for column in segment.columns] == [True, False]
