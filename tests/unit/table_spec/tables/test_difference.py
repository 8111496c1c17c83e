"""What Pinot makes of a schema and a table config is no difference; what a user changes is.

`stored/given.json` was given to a real Pinot 0.11.0 controller and to the classes of pinot-spi 1.5.1, and the
two other files are what they made of it.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.core.json_object import JsonObject
from pinot_assets.table_spec.tables.difference import SpecDifference, diff_json, diff_schema, diff_table

STORED = Path(__file__).parent / "stored"
GIVEN = json.loads((STORED / "given.json").read_text())
PINOTS = ["pinot-0.11.0", "pinot-1.5.1"]


@pytest.fixture(params=PINOTS)
def stored(request) -> JsonObject:
    """Schema and table config as one version of Pinot stores them."""
    return json.loads((STORED / f"{request.param}.json").read_text())


def changed(value: JsonObject, *steps: str | int, to: Any) -> JsonObject:
    result = copy.deepcopy(value)
    inner: Any = result
    for step in steps[:-1]:
        inner = inner[step]
    if to is None:
        del inner[steps[-1]]
    else:
        inner[steps[-1]] = to
    return result


def test_what_pinot_makes_of_it_is_no_difference(stored):
    assert diff_schema(GIVEN["schema"], stored["schema"]) == []
    assert diff_table(GIVEN["table"], stored["table"]) == []
    assert diff_schema(stored["schema"], stored["schema"]) == []
    assert diff_table(stored["table"], stored["table"]) == []


@pytest.mark.parametrize(
    ("steps", "to", "path"),
    [
        (("dimensionFieldSpecs", 3, "dataType"), "STRING", "schema.columns.d.dataType"),
        (("dimensionFieldSpecs", 0, "singleValueField"), False, "schema.columns.a.singleValueField"),
        (("dimensionFieldSpecs", 0, "notNull"), True, "schema.columns.a.notNull"),
        (("dimensionFieldSpecs", 0, "maxLength"), 64, "schema.columns.a.maxLength"),
        (("dimensionFieldSpecs", 5, "maxLength"), None, "schema.columns.f.maxLength"),
        (("dimensionFieldSpecs", 1, "defaultNullValue"), 0, "schema.columns.b.defaultNullValue"),
        (("dimensionFieldSpecs", 1, "defaultNullValue"), None, "schema.columns.b.defaultNullValue"),
        (("dimensionFieldSpecs", 2, "defaultNullValue"), False, "schema.columns.c.defaultNullValue"),
        (("dimensionFieldSpecs", 3, "defaultNullValue"), "{}", "schema.columns.d.defaultNullValue"),
        (("metricFieldSpecs", 0, "defaultNullValue"), 1.5, "schema.columns.m.defaultNullValue"),
        (("dateTimeFieldSpecs", 0, "granularity"), "1:DAYS", "schema.columns.t.granularity"),
        (("dateTimeFieldSpecs", 0, "defaultNullValue"), 1, "schema.columns.t.defaultNullValue"),
        (("dateTimeFieldSpecs", 1, "format"), "1:SECONDS:EPOCH", "schema.columns.u.format"),
        (("primaryKeyColumns",), ["b"], "schema.primaryKeyColumns[0]"),
        (("enableColumnBasedNullHandling",), True, "schema.enableColumnBasedNullHandling"),
    ],
)
def test_a_change_of_the_schema_is_seen(stored, steps, to, path):
    differences = diff_schema(changed(GIVEN["schema"], *steps, to=to), stored["schema"])
    assert [difference.path for difference in differences] == [path]


def test_columns_are_compared_by_name_and_both_ways(stored):
    more, origin = copy.deepcopy(GIVEN["schema"]), {"name": "origin", "dataType": "STRING"}
    more["dimensionFieldSpecs"].insert(0, origin)
    assert diff_schema(more, stored["schema"]) == [SpecDifference("schema.columns.origin", origin, None)]
    fewer = changed(GIVEN["schema"], "dimensionFieldSpecs", 1, to=None)
    dropped = stored["schema"]["dimensionFieldSpecs"][1]
    assert diff_schema(fewer, stored["schema"]) == [SpecDifference("schema.columns.b", None, dropped)]


def test_a_dimension_that_is_a_metric_in_pinot_is_a_difference(stored):
    moved = stored["schema"]
    moved["metricFieldSpecs"].append(moved["dimensionFieldSpecs"].pop(1))
    differences = diff_schema(GIVEN["schema"], moved)
    assert SpecDifference("schema.columns.b.fieldType", "DIMENSION", "METRIC") in differences


@pytest.mark.parametrize(
    ("steps", "to", "path"),
    [
        (("tableName",), "other", "table.tableName"),
        (("segmentsConfig", "replication"), "3", "table.segmentsConfig.replication"),
        (("segmentsConfig", "timeColumnName"), None, "table.segmentsConfig.timeColumnName"),
        (("segmentsConfig", "retentionTimeValue"), None, "table.segmentsConfig.retentionTimeValue"),
        (
            ("segmentsConfig", "segmentPushType"),
            "APPEND",
            "table.ingestionConfig.batchIngestionConfig.segmentIngestionType",
        ),
        (("tableIndexConfig", "nullHandlingEnabled"), False, "table.tableIndexConfig.nullHandlingEnabled"),
        (("tableIndexConfig", "sortedColumn"), ["b"], "table.tableIndexConfig.sortedColumn[0]"),
        (
            ("tableIndexConfig", "invertedIndexColumns"),
            ["b", "e"],
            "table.tableIndexConfig.invertedIndexColumns",
        ),
        (("tableIndexConfig", "rangeIndexColumns"), None, "table.tableIndexConfig.rangeIndexColumns"),
        (("tableIndexConfig", "noDictionaryColumns"), ["b"], "table.tableIndexConfig.noDictionaryColumns"),
        (("tenants", "server"), "other", "table.tenants.server"),
        (("fieldConfigList", 0, "encodingType"), "RAW", "table.fieldConfigList.a.encodingType"),
        (("fieldConfigList",), None, "table.fieldConfigList"),
        (("quota", "storage"), "1G", "table.quota.storage"),
        (("query", "timeoutMs"), 1, "table.query.timeoutMs"),
        (("metadata", "customConfigs", "owner"), "you", "table.metadata.customConfigs.owner"),
        (("upsertConfig",), {"mode": "FULL"}, "table.upsertConfig.mode"),
    ],
)
def test_a_change_of_the_table_config_is_seen(stored, steps, to, path):
    differences = diff_table(changed(GIVEN["table"], *steps, to=to), stored["table"])
    assert [difference.path for difference in differences] == [path]


@pytest.mark.parametrize("section", ["ingestionConfig", "quota", "routing"])
def test_a_section_that_pinot_fills_by_itself_may_be_left_out(stored, section):
    assert diff_table(changed(GIVEN["table"], section, to=None), stored["table"]) == []


def test_the_modern_push_type_equals_the_deprecated_one(stored):
    modern = changed(GIVEN["table"], "segmentsConfig", "segmentPushType", to=None)
    modern["ingestionConfig"]["batchIngestionConfig"] = {"segmentIngestionType": "REFRESH"}
    assert diff_table(modern, stored["table"]) == []


def test_startrees_task_is_no_difference(stored):
    stored["table"]["task"]["taskTypeConfigsMap"]["FileIngestionTask"] = {"inputDirURI": "x"}
    assert diff_table(GIVEN["table"], stored["table"]) == []


def test_a_secret_is_not_shown():
    wanted = {"task": {"input.fs.prop.secretKey": "first", "region": "a"}}
    found = {"task": {"input.fs.prop.secretKey": "second", "region": "b"}}
    text = "".join(map(str, diff_json(wanted, found, "table")))
    assert "first" not in text
    assert "second" not in text
    assert '"a"' in text


def test_a_reference_is_whatever_pinot_made_of_it_but_not_nothing():
    assert diff_json({"secretKey": "${KEY}"}, {"secretKey": "anything"}) == []
    assert diff_json({"secretKey": "${KEY}"}, {}) != []


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (1, "1"),
        ("1", 1),
        (1, 1.0),
        (True, "true"),
        ("0.50", 0.5),
        (None, None),
        ([], None),
        ({}, None),
        (False, None),
    ],
)
def test_spellings_of_one_value_are_equal(wanted, found):
    assert diff_json({"a": wanted}, {} if found is None else {"a": found}) == []


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (1, 2),
        ("a", "A"),
        ("1", "one"),
        (0, None),
        (True, None),
        (True, False),
        ([1], [1, 2]),
        ([1], []),
        ({"b": 1}, 1),
    ],
)
def test_other_values_are_different(wanted, found):
    assert len(diff_json({"a": wanted}, {} if found is None else {"a": found})) == 1


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(_json)
def test_nothing_differs_from_itself(value):
    assert diff_json(value, value) == []


@given(st.dictionaries(st.text(max_size=5), _json, max_size=4), st.dictionaries(st.text(max_size=5), _json))
def test_what_pinot_adds_is_no_difference(wanted, added):
    assert diff_json(wanted, {**added, **wanted}) == []


@pytest.mark.parametrize("setting", ["continueOnError", "rowTimeValueCheck", "segmentTimeValueCheck"])
def test_what_only_a_builder_of_segments_reads_need_not_be_in_pinot(stored: JsonObject, setting: str) -> None:
    """0.11.0 does not know these and leaves them out; pinot-assets reads them from the spec."""
    ours = changed(GIVEN["table"], "ingestionConfig", setting, to=True)
    there = copy.deepcopy(stored["table"])
    there["ingestionConfig"].pop(setting, None)
    assert diff_table(ours, there) == []
    there["ingestionConfig"][setting] = False
    assert [one.path for one in diff_table(ours, there)] == [f"table.ingestionConfig.{setting}"]
    both = [changed(config, "tableType", to="REALTIME") for config in (ours, there)]
    both[1]["ingestionConfig"].pop(setting)
    assert f"table.ingestionConfig.{setting}" in [one.path for one in diff_table(*both)]
