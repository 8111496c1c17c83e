from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.segment import SegmentSpec

SCHEMA = {"dimensionFieldSpecs": [{"name": "c", "dataType": "STRING"}, {"name": "t", "dataType": "LONG"}]}


def problems(schema: JsonObject, config: JsonObject, **options: str) -> str:
    with pytest.raises(UnsupportedFeature) as caught:
        SegmentSpec.from_pinot(schema, config, **options)
    return str(caught.value)


def test_a_spec_is_picklable_and_names_arrow_types(golden: Any) -> None:
    spec = SegmentSpec.from_pinot(golden.schema, golden.table_config)
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert spec.arrow_schema().field("ts").type == pa.timestamp("ms", "UTC")
    assert [column.name for column in spec.columns] == ["absent", "b", "d", "f", "i", "j", "m", "s", "ts"]


def test_all_problems_are_named_at_once() -> None:
    schema = {
        "dimensionFieldSpecs": [
            {"name": "many", "dataType": "JSON", "singleValueField": False},
            {"name": "zeros", "dataType": "BIG_DECIMAL", "allowTrailingZeros": True},
            {"name": "#c", "dataType": "INT"},
            {"name": "made", "dataType": "INT", "transformFunction": "x + 1"},
        ],
        "metricFieldSpecs": [{"name": "words", "dataType": "STRING"}],
        "dateTimeFieldSpecs": [
            {"name": "ts", "dataType": "STRING", "format": "SIMPLE_DATE_FORMAT|EEE", "granularity": "1:DAYS"}
        ],
        "complexFieldSpecs": [{"name": "map", "dataType": "MAP"}],
    }
    config = {
        "segmentsConfig": {"timeColumnName": "ts"},
        "tableIndexConfig": {
            "noDictionaryColumns": ["ts"],
            "invertedIndexColumns": ["ts"],
            "createInvertedIndexDuringSegmentGeneration": True,
            "aggregateMetrics": False,
        },
        "ingestionConfig": {"transformConfigs": [{"columnName": "x"}]},
        "upsertConfig": {"mode": "FULL"},
    }
    text = problems(schema, config, write_for="0.10")
    for part in (
        "column many: multi-value DIMENSION of type JSON",
        "column zeros: allowTrailingZeros",
        "column #c: unsafe name",
        "column made: transformFunction",
        "column words: a metric of type STRING",
        "column map: complex field",
        "column ts: an inverted index without dictionary",
        "ingestionConfig.transformConfigs",
        "upsertConfig",
        "column ts: time format SIMPLE_DATE_FORMAT|EEE",
        "writeFor 0.10",
    ):
        assert part in text
    assert "aggregateMetrics" not in text


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"fieldConfigList": [{"name": "c", "indexes": {"forward": {"disabled": True}}}]},
            "column c: indexes.forward",
        ),
        (
            {"fieldConfigList": [{"name": "c", "properties": {"forwardIndexDisabled": "true"}}]},
            "forwardIndexDisabled",
        ),
        ({"tableIndexConfig": {"starTreeIndexConfigs": [{}]}}, "starTreeIndexConfigs"),
        ({"tableIndexConfig": {"segmentFormatVersion": "v1"}}, "segmentFormatVersion: segment format v1"),
        (
            {"tableIndexConfig": {"segmentPartitionConfig": {"columnPartitionMap": {"c": {}}}}},
            "column c: partition metadata",
        ),
        ({"segmentsConfig": {"timeColumnName": "gone"}}, "column gone: the table's time column"),
    ],
)
def test_features_of_a_table_that_are_refused(config: JsonObject, problem: str) -> None:
    assert problem in problems(SCHEMA, config)


def test_indexes_that_a_server_builds_are_noted() -> None:
    config = {
        "tableIndexConfig": {
            "invertedIndexColumns": ["c"],
            "rangeIndexColumns": ["t"],
        },
        "fieldConfigList": [
            {"name": "c", "indexTypes": ["TEXT"], "indexes": {"bloom": {}, "range": {"disabled": True}}},
            {"name": "elsewhere", "encodingType": "RAW"},
        ],
    }
    notes = SegmentSpec.from_pinot(SCHEMA, config).notes
    for what in ("inverted index", "text index"):
        assert f"column c: the server builds the {what} when it loads the segment" in notes
    assert not any("column c: the server builds the range index" in note for note in notes)


@pytest.mark.parametrize("version", ["0.11", "0.12.0", "1.4"])
def test_an_old_server_reads_no_names_outside_ascii(version: str) -> None:
    schema = {"dimensionFieldSpecs": [{"name": "é", "dataType": "INT"}]}
    text = problems(schema, {}, write_for=version)
    assert "column é" in text
    assert 'writeFor: "1.5"' in text
    assert SegmentSpec.from_pinot(schema, {}, write_for="1.5.1").columns[0].name == "é"


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("INT", "x"),
        ("INT", 2**31),
        ("LONG", "1.0"),
        ("DOUBLE", "NaN"),
        ("FLOAT", "-0.0"),
        ("TIMESTAMP", "2020-01-01"),
    ],
)
def test_defaults_that_pinot_would_not_take_are_refused(kind: str, default: object) -> None:
    schema = {"dimensionFieldSpecs": [{"name": "c", "dataType": kind, "defaultNullValue": default}]}
    assert "column c: defaultNullValue" in problems(schema, {})


@pytest.mark.parametrize("version", ["", "1", "1.x", "².1", f"1.{'5' * 5000}"])
def test_a_server_version_that_is_none_is_a_problem(version: str) -> None:
    schema = {"dimensionFieldSpecs": [{"name": "c", "dataType": "INT"}]}
    assert "not a version such as 1.5" in problems(schema, {}, write_for=version)
