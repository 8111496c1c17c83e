from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.segment import SegmentSpec
from pinot_assets.segment.column.target import Target, target_for
from pinot_assets.segment.column.types import Column
from pinot_assets.segment.column.unsupported import Findings
from pinot_assets.segment.config.column_encoding import read_columns
from pinot_assets.segment.values.partition import PartitionFunction, Partitioning, read_partitionings

NOW, OLD = target_for("1.5"), target_for("0.11")


def schema(kind: str = "STRING", **options: object) -> JsonObject:
    return {"dimensionFieldSpecs": [{"name": "c", "dataType": kind, **options}]}


def columns(kind: str = "STRING", **options: object) -> list[Column]:
    return read_columns(schema(kind, **options), False, Findings())


def read(entry: JsonObject, kind: str = "STRING", server: Target = NOW) -> Any:
    config = {"segmentPartitionConfig": {"columnPartitionMap": {"c": entry, "elsewhere": {}}}}
    findings = Findings()
    found = read_partitionings(config, columns(kind), server, findings)
    return found.get("c") or findings.problems


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("modulo", PartitionFunction.MODULO),
        ("MURMUR", PartitionFunction.MURMUR),
        ("Murmur2", PartitionFunction.MURMUR),
        ("Murmur3", PartitionFunction.MURMUR3),
        ("byteArray", PartitionFunction.BYTE_ARRAY),
        ("HashCode", PartitionFunction.HASH_CODE),
    ],
)
def test_functions_are_known_whatever_their_case(name: str, function: PartitionFunction) -> None:
    assert read({"functionName": name, "numPartitions": "4"}) == Partitioning(function, 4)


def test_settings_are_texts_in_their_order() -> None:
    entry = {
        "functionName": "Murmur3",
        "numPartitions": 4,
        "functionConfig": {"variant": "x64_32", "seed": -7},
    }
    assert read(entry) == Partitioning(PartitionFunction.MURMUR3, 4, (("variant", "x64_32"), ("seed", "-7")))


BOUNDED = {"functionName": "BoundedColumnValue", "numPartitions": 3}


@pytest.mark.parametrize(
    ("entry", "kind", "why"),
    [
        ({"functionName": "Custom", "numPartitions": 4}, "STRING", "no function Custom"),
        ({"numPartitions": 4}, "STRING", "no function None"),
        ({"functionName": "Murmur"}, "STRING", "numPartitions None"),
        ({"functionName": "Murmur", "numPartitions": 0}, "STRING", "numPartitions 0"),
        ({"functionName": "Murmur", "numPartitions": 2**31}, "STRING", "numPartitions"),
        ({"functionName": "Modulo", "numPartitions": 4}, "DOUBLE", "Modulo of DOUBLE"),
        ({"functionName": "Modulo", "numPartitions": 4}, "JSON", "Modulo of JSON"),
        ({"functionName": "Murmur3", "numPartitions": 4, "functionConfig": {"seed": "x"}}, "INT", "seed x"),
        ({"functionName": "Murmur3", "numPartitions": 4, "functionConfig": {"seed": 2**31}}, "INT", "seed"),
        (
            {"functionName": "Murmur3", "numPartitions": 4, "functionConfig": {"variant": "x64"}},
            "INT",
            "variant x64",
        ),
        (
            {"functionName": "Murmur", "numPartitions": 4, "functionConfig": {"useRawBytes": "true"}},
            "BYTES",
            "useRawBytes",
        ),
        (BOUNDED, "STRING", "no columnValues and no columnValuesDelimiter"),
        ({**BOUNDED, "functionConfig": {"columnValues": "a|b"}}, "STRING", "no columnValuesDelimiter"),
        (
            {**BOUNDED, "functionConfig": {"columnValues": "a", "columnValuesDelimiter": "|"}},
            "STRING",
            "numPartitions 3 for 1 values",
        ),
        (
            {**BOUNDED, "functionConfig": {"columnValues": "a| b ", "columnValuesDelimiter": "|"}},
            "STRING",
            "would not come back",
        ),
    ],
)
def test_what_has_no_partition_is_refused_by_name(entry: JsonObject, kind: str, why: str) -> None:
    (problem,) = read(entry, kind)
    assert problem.startswith("column c: partition metadata (segmentPartitionConfig): ")
    assert why in problem
    assert "PARTITION_COLUMN_INVALID" in problem


@pytest.mark.parametrize("server", [OLD, target_for("1.0")])
def test_murmur3_is_refused_for_servers_that_cannot_load_it(server: Target) -> None:
    entry = {"functionName": "Murmur3", "numPartitions": 4}
    assert "cannot load a segment with Murmur3" in read(entry, server=server)[0]
    assert read({**entry, "functionName": "Murmur2"}, server=server) == Partitioning(
        PartitionFunction.MURMUR, 4
    )


def test_a_multi_value_column_has_no_partitions() -> None:
    config = {"segmentPartitionConfig": {"columnPartitionMap": {"c": {"functionName": "Murmur"}}}}
    findings = Findings()
    assert read_partitionings(config, columns(singleValueField=False), NOW, findings) == {}
    [problem] = findings.problems
    assert "multi-value column" in problem


def test_sorted_columns_keep_their_order_and_must_be_single_values() -> None:
    def order(columns: JsonObject, *names: str) -> tuple[str, ...]:
        return SegmentSpec.from_pinot(columns, {"tableIndexConfig": {"sortedColumn": [*names]}}).sort_order

    assert order(schema(), "c") == ("c",)
    assert order(schema()) == SegmentSpec.from_pinot(schema(), {}).sort_order == ()
    with pytest.raises(UnsupportedFeature) as refused:
        order(schema(singleValueField=False), "c", "gone")
    problems = str(refused.value.why).split("; ")
    assert [problem.split(":")[0] for problem in problems] == ["column c", "column gone"]
