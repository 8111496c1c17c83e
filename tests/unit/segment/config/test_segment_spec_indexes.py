from __future__ import annotations

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.segment.column.target import target_for
from pinot_assets.segment.column.unsupported import Findings
from pinot_assets.segment.config.column_encoding import ColumnSettings, read_columns
from pinot_assets.segment.config.segment_spec import BloomFilter, Indexes, read_indexes

COLUMNS = read_columns(
    {"dimensionFieldSpecs": [{"name": "c", "dataType": "STRING"}, {"name": "b", "dataType": "BOOLEAN"}]},
    False,
    Findings(),
)
AT_BUILD = {"createInvertedIndexDuringSegmentGeneration": True}
INVERTED = Indexes(inverted=True)
TOLD = "column c: the server builds the inverted index when it loads the segment"


def read(
    indexing: JsonObject | None = None,
    field: JsonObject | None = None,
    write_for: str = "1.5",
    **config: object,
) -> tuple[dict[str, Indexes], list[str], list[str]]:
    fields = [] if field is None else [{"name": "c", **field}]
    findings = Findings()
    table_config = {"tableIndexConfig": indexing or {}, "fieldConfigList": fields, **config}
    settings = [ColumnSettings(column, table_config, findings) for column in COLUMNS]
    found = read_indexes(table_config, settings, target_for(write_for), findings)
    return found, findings.problems, findings.notes


@pytest.mark.parametrize(
    ("indexing", "field", "written"),
    [
        ({"invertedIndexColumns": ["c"]}, None, False),
        ({"invertedIndexColumns": ["c"], **AT_BUILD}, None, True),
        ({"invertedIndexColumns": ["c"]}, {"indexTypes": ["INVERTED"]}, False),
        ({}, {"indexTypes": ["INVERTED"]}, True),
        ({}, {"indexType": "inverted"}, True),
        ({}, {"indexes": {"inverted": {}}}, True),
    ],
)
def test_inverted_indexes_are_written_when_pinots_builder_writes_them(
    indexing: JsonObject, field: JsonObject | None, written: bool
) -> None:
    assert read(indexing, field) == ({"c": INVERTED} if written else {}, [], [] if written else [TOLD])


def test_for_servers_of_1_6_every_inverted_index_is_written() -> None:
    assert read({"invertedIndexColumns": ["c"]}, write_for="1.6") == ({"c": INVERTED}, [], [])
    assert read({}, {"indexTypes": ["INVERTED"]}, write_for="1.6") == ({"c": INVERTED}, [], [])


def test_null_backfill_needs_segments_that_say_which_columns_have_no_null() -> None:
    field = {"indexes": {"null": {"backfill": True}}}
    assert "NULL_BACKFILL_LOSES_VALUES" in "".join(read({}, field, write_for="1.5")[1])
    _, problems, [note] = read({}, field, write_for="1.6")
    assert problems == []
    assert "in segments that were written for servers before 1.6" in note
    assert read({}, {"indexes": {"null": {}}}, write_for="1.6")[2] == []


def test_the_deprecated_switch_counts() -> None:
    custom = {"customConfigs": {"generate.inverted.index.before.push": "true"}}
    assert read({"invertedIndexColumns": ["c"]}, metadata=custom)[0] == {"c": INVERTED}


@pytest.mark.parametrize(
    ("indexing", "field", "bloom"),
    [
        ({"bloomFilterColumns": ["c"]}, None, BloomFilter()),
        (
            {"bloomFilterConfigs": {"c": {"fpp": "0.01"}}, "bloomFilterColumns": ["c"]},
            None,
            BloomFilter(0.01),
        ),
        ({"bloomFilterConfigs": {"c": {"fpp": 0, "maxSizeInBytes": 10}}}, None, BloomFilter(0.05, 10)),
        ({}, {"indexes": {"bloom": {}}}, BloomFilter()),
        ({}, {"indexes": {"bloom": {"fpp": 0.2, "loadOnHeap": True}}}, BloomFilter(0.2)),
        ({}, {"indexes": {"bloom": {"disabled": True}}}, None),
        ({}, {"indexes": {"bloom": None}}, None),
    ],
)
def test_bloom_filters_are_written(
    indexing: JsonObject, field: JsonObject | None, bloom: BloomFilter | None
) -> None:
    assert read(indexing, field) == ({} if bloom is None else {"c": Indexes(bloom=bloom)}, [], [])


@pytest.mark.parametrize(
    ("indexing", "field", "problem"),
    [
        ({"bloomFilterColumns": ["b"]}, None, "column b: bloom filter with fpp 0.05 (INDEX_INVALID"),
        ({"bloomFilterConfigs": {"c": {"fpp": 1.5}}}, None, "column c: bloom filter with fpp 1.5"),
        ({"bloomFilterColumns": ["c"]}, {"indexes": {"bloom": {}}}, "column c: indexes.bloom beside another"),
        ({"invertedIndexColumns": ["c"]}, {"indexes": {"inverted": {}}}, "column c: indexes.inverted beside"),
        ({}, {"indexTypes": ["NEWER"]}, "column c: index type NEWER (NEEDS_JVM_BUILDER"),
        ({}, {"indexes": {"newer": {}}}, "column c: indexes.newer (NEEDS_JVM_BUILDER"),
        ({"starTreeIndexConfigs": [{}]}, None, "starTreeIndexConfigs: star-tree index (STAR_TREE_NEEDS_JVM"),
        ({"enableDefaultStarTree": "true"}, None, "enableDefaultStarTree: star-tree index"),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(
    indexing: JsonObject, field: JsonObject | None, problem: str
) -> None:
    _, problems, _ = read(indexing, field)
    assert [problem in found for found in problems] == [True]


def test_all_other_indexes_are_left_to_the_server() -> None:
    indexing = {
        "rangeIndexColumns": ["c", "elsewhere"],
        "jsonIndexConfigs": {"c": {}},
        "multiColumnTextIndexConfig": {"columns": ["c"]},
        "starTreeIndexConfigs": [{}],
        "enableDynamicStarTreeCreation": True,
    }
    field = {
        "indexTypes": ["TEXT", "FST", "SORTED"],
        "indexes": {"h3": {}, "vector": {}, "range": {"disabled": True}, "forward": {}, "dictionary": {}},
    }
    found, problems, notes = read(indexing, field)
    assert (found, problems) == ({}, [])
    column = ("FST index", "H3 index", "JSON index", "range index", "text index", "vector index")
    assert notes == [
        "the server builds the star-tree index when it loads the segment",
        "the server builds the multi-column text index when it loads the segment",
        *(f"column c: the server builds the {what} when it loads the segment" for what in column),
    ]
