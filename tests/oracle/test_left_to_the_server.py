"""What is left to the server is built by the server: Pinot's loader makes every such index."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fakes.processes.other_jvm import java_fails
from oracle.case import CREATED

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.segment import SegmentSpec, build_segment

STRING, INT = {"dataType": "STRING"}, {"dataType": "INT"}
FLOATS = {"dataType": "FLOAT", "singleValueField": False}
TEXTS = ["b", "a", "b", "c"]
NUMBERS = pa.array([4, 1, 2, 4], pa.int32())
JSON = ['{"a":1}', '{"a":2}', "{}", '{"b":[1]}']
VECTOR = {
    "vectorIndexType": "HNSW",
    "vectorDimension": 2,
    "vectorDistanceFunction": "COSINE",
    "version": 1,
    "properties": {},
}
RAW = {"encodingType": "RAW"}
# Two points as Pinot's `GeometrySerializer` writes them: kind, then two doubles.
POINTS = [b"\x80" + struct.pack(">dd", *place) for place in ((8.5, 47.4), (8.6, 47.3))] * 2


def table_config(indexing: JsonObject, field: JsonObject | None) -> JsonObject:
    return {
        "tableName": "t_OFFLINE",
        "tableType": "OFFLINE",
        "segmentsConfig": {"replication": "1"},
        "tenants": {},
        "tableIndexConfig": indexing,
        "metadata": {},
        "fieldConfigList": [{"name": "c", "encodingType": "DICTIONARY", **field}] if field else [],
    }


@pytest.mark.parametrize(
    ("what", "field_spec", "values", "indexing", "field"),
    [
        ("InvertedIndex", STRING, TEXTS, {"invertedIndexColumns": ["c"]}, None),
        ("RangeIndex", INT, NUMBERS, {"rangeIndexColumns": ["c"]}, None),
        ("RangeIndex", INT, NUMBERS, {}, {"indexes": {"range": {}}}),
        ("JsonIndex", {"dataType": "JSON"}, JSON, {"jsonIndexColumns": ["c"]}, None),
        ("FSTIndex", STRING, TEXTS, {}, {"indexTypes": ["FST"]}),
        ("IFSTIndex", STRING, TEXTS, {}, {"indexes": {"ifst": {}}}),
        ("TextIndex", STRING, TEXTS, {}, {"indexTypes": ["TEXT"]}),
        ("H3Index", {"dataType": "BYTES"}, POINTS, {}, {"indexes": {"h3": {"resolution": [5]}}}),
        ("VectorIndex", FLOATS, [[1.0, 2.0]] * 4, {}, {"indexes": {"vector": VECTOR}}),
        ("InvertedIndex", INT, NUMBERS, {"invertedIndexColumns": ["c"]}, RAW),
        ("RangeIndex", INT, NUMBERS, {"rangeIndexColumns": ["c"]}, RAW),
        ("JsonIndex", {"dataType": "JSON"}, JSON, {"jsonIndexColumns": ["c"]}, RAW),
        ("TextIndex", STRING, TEXTS, {}, {**RAW, "indexTypes": ["TEXT"]}),
        (
            "StarTree",
            STRING,
            TEXTS,
            {
                "enableDynamicStarTreeCreation": True,
                "starTreeIndexConfigs": [
                    {"dimensionsSplitOrder": ["c"], "functionColumnPairs": ["COUNT__*"], "maxLeafRecords": 1}
                ],
            },
            None,
        ),
    ],
)
def test_a_server_builds_it(
    oracle: Any,
    what: str,
    field_spec: JsonObject,
    values: Any,
    indexing: JsonObject,
    field: JsonObject | None,
) -> None:
    schema = {"schemaName": "t", "dimensionFieldSpecs": [{"name": "c", **field_spec}]}
    config = table_config(indexing, field)
    spec = SegmentSpec.from_pinot(schema, config)
    assert any("the server builds the" in note for note in spec.notes)
    segment = build_segment(
        pa.table({"c": values}), spec, name="t_0", table_name="t", creation_time_ms=CREATED, now_ms=CREATED
    )
    folder = oracle.segment_folder(segment.files)
    assert oracle.server_built(folder, schema, table_config({}, None), "c") == set()
    assert what in oracle.server_built(folder, schema, config, "c")


@pytest.mark.parametrize(
    ("field_spec", "values", "field"),
    [
        (STRING, TEXTS, {"indexTypes": ["FST"]}),
        (STRING, TEXTS, {"indexTypes": ["RANGE"]}),
        (FLOATS, [[1.0, 2.0]] * 4, {"indexes": {"vector": VECTOR}}),
    ],
)
def test_a_server_fails_on_what_needs_a_dictionary(
    oracle: Any, field_spec: JsonObject, values: Any, field: JsonObject
) -> None:
    schema = {"schemaName": "t", "dimensionFieldSpecs": [{"name": "c", **field_spec}]}
    with pytest.raises(UnsupportedFeature, match=r"column c: .* index without dictionary"):
        SegmentSpec.from_pinot(schema, table_config({}, {**RAW, **field}))
    spec = SegmentSpec.from_pinot(schema, table_config({}, RAW))
    segment = build_segment(
        pa.table({"c": values}), spec, name="t_0", table_name="t", creation_time_ms=CREATED, now_ms=CREATED
    )
    with java_fails():
        oracle.server_built(
            oracle.segment_folder(segment.files), schema, table_config({}, {**RAW, **field}), "c"
        )


@pytest.mark.parametrize("null_handling", [False, True])
def test_a_server_derives_the_columns_of_a_timestamp_index(oracle: Any, null_handling: bool) -> None:
    """But without their nulls, which Pinot's builder records: hence the refusal with null handling."""
    schema = {"schemaName": "t", "dimensionFieldSpecs": [{"name": "c", "dataType": "TIMESTAMP"}]}
    indexing = {"nullHandlingEnabled": null_handling}
    field = {"indexTypes": ["TIMESTAMP"], "timestampConfig": {"granularities": ["DAY"]}}
    config = table_config(indexing, field)
    if null_handling:
        with pytest.raises(UnsupportedFeature, match=r"column c: timestamp index"):
            SegmentSpec.from_pinot(schema, config)
    else:
        note = "column c: the server builds the timestamp index when it loads the segment"
        assert SegmentSpec.from_pinot(schema, config).notes == (note,)
    times = [1_600_000_000_000, None, 1_600_000_100_000]
    segment = build_segment(
        pa.table({"c": pa.array(times, pa.int64()).cast(pa.timestamp("ms"))}),
        SegmentSpec.from_pinot(schema, table_config(indexing, None)),
        name="t_0",
        table_name="t",
        creation_time_ms=CREATED,
        now_ms=CREATED,
    )
    theirs = oracle.build(
        [{"c": time} for time in times], schema, config, name="t_0", creation_time_ms=CREATED
    )
    days = [1_599_955_200_000, 0, 1_599_955_200_000]
    kinds = {"$c$DAY": "TIMESTAMP"}
    folders = [oracle.segment_folder(segment.files), oracle.segment_folder(theirs)]
    assert oracle.server_built(folders[0], schema, config, "$c$DAY") == {"RangeIndex"}
    ours, pinots = (oracle.read(folder, kinds)["$c$DAY"] for folder in folders)
    assert (ours.values, pinots.values) == (days, days)
    assert (ours.nulls, pinots.nulls) == ([], [1] if null_handling else [])


def test_a_server_builds_the_multi_column_text_index(oracle: Any) -> None:
    schema = {"schemaName": "t", "dimensionFieldSpecs": [{"name": name, **STRING} for name in "cd"]}
    config = table_config({"multiColumnTextIndexConfig": {"columns": ["c", "d"]}}, None)
    spec = SegmentSpec.from_pinot(schema, config)
    segment = build_segment(
        pa.table({"c": TEXTS, "d": TEXTS}), spec, name="t", table_name="t", creation_time_ms=0, now_ms=0
    )
    folder = oracle.segment_folder(segment.files)
    assert oracle.server_built(folder, schema, config, "c") == {"MultiColumnTextIndex"}


def test_a_server_keeps_what_is_written(oracle: Any) -> None:
    schema = {"schemaName": "t", "dimensionFieldSpecs": [{"name": "c", **INT}]}
    config = table_config(
        {
            "invertedIndexColumns": ["c"],
            "createInvertedIndexDuringSegmentGeneration": True,
            "bloomFilterColumns": ["c"],
        },
        None,
    )
    rng = np.random.default_rng(1)
    table = pa.table({"c": rng.integers(0, 50, 5000).astype(np.int32)})
    segment = build_segment(
        table, SegmentSpec.from_pinot(schema, config), name="t", table_name="t", creation_time_ms=0, now_ms=0
    )
    folder = oracle.segment_folder(segment.files)
    assert oracle.server_built(folder, schema, config, "c") == {"InvertedIndex", "BloomFilter"}
    assert (folder / "v3" / "columns.psf").read_bytes() == segment.files["columns.psf"]
