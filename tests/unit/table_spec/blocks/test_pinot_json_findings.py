"""What the segment writer can do for no server is a problem; what it cannot do for old ones only, a note."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pinot_assets.core.json_object import JsonValue
from pinot_assets.table_spec.blocks.pinot_json import realtime_table_problems, table_problems, writer_findings
from pinot_assets.table_spec.yaml.document import DocumentNode, Problem, parse_document

TOO_OLD = "a run refuses this if one of the table's servers is too old: column c: "


def findings(write_for: str, **field: str) -> tuple[list[str], list[str]]:
    """Problems and notes of a raw column with these settings, without their reasons in parentheses."""
    schema = {"dimensionFieldSpecs": [{"name": "c", "dataType": "STRING"}]}
    table = {"fieldConfigList": [{"name": "c", "encodingType": "RAW", **field}]}
    document, _ = parse_document(json.dumps({"schema": schema, "table": table}), Path("t.json"))
    assert document is not None
    parts = (DocumentNode(document, (name,)) for name in ("schema", "table"))
    problems, notes = writer_findings(*parts, write_for)
    texts = [one.reason for one in problems], [one.text for one in notes]
    return [text.partition(" (")[0] for text in texts[0]], [text.partition(" (")[0] for text in texts[1]]


def test_what_only_newer_servers_read_is_a_note_where_the_servers_decide() -> None:
    gzip = "codec GZIP, which servers read since 1.2 only"
    assert findings("auto", compressionCodec="GZIP") == ([], [TOO_OLD + gzip])
    assert findings("1.1", compressionCodec="GZIP") == ([f"column c: {gzip}"], [])
    assert findings("1.2", compressionCodec="GZIP") == ([], [])


def test_what_no_server_reads_is_a_problem_and_no_note() -> None:
    assert findings("auto", compressionCodec="CLP") == (["column c: codec CLP without dictionary"], [])


def test_what_every_server_reads_is_neither() -> None:
    assert findings("auto", compressionCodec="LZ4") == ([], [])


def test_a_name_outside_ascii_is_answered_with_the_release_that_accepts_it() -> None:
    schema = {"dimensionFieldSpecs": [{"name": "größe", "dataType": "STRING"}]}
    document, _ = parse_document(json.dumps({"schema": schema, "table": {}}), Path("t.json"))
    assert document is not None
    schema_place, table_place = DocumentNode(document, ("schema",)), DocumentNode(document, ("table",))
    (problem,), _ = writer_findings(schema_place, table_place, "1.3")
    assert 'writeFor: "1.5"' in (problem.fix or "")
    assert writer_findings(schema_place, table_place, "1.5")[0] == []


@pytest.mark.parametrize("problems", [table_problems, realtime_table_problems])
@pytest.mark.parametrize(
    ("part", "key", "value", "texts"),
    [
        ("segmentsConfig", "replication", "many", ["is not a whole number"]),
        ("segmentsConfig", "replicasPerPartition", True, ["is not a whole number"]),
        ("segmentsConfig", "retentionTimeValue", "3.5", ["is not a whole number"]),
        ("segmentsConfig", "replication", "2", []),
        ("segmentsConfig", "replication", 2, []),
        ("segmentsConfig", "retentionTimeValue", "", []),
        ("tableIndexConfig", "invertedIndexColumns", "kind", ["is not a list of columns"]),
        ("tableIndexConfig", "sortedColumn", ["kind"], []),
        ("tableIndexConfig", "noDictionaryColumns", None, []),
    ],
)
def test_a_number_and_a_list_of_columns_are_that(
    problems: Callable[[DocumentNode], list[Problem]], part: str, key: str, value: JsonValue, texts: list[str]
) -> None:
    table = {"segmentsConfig": {}, "tenants": {}, "tableIndexConfig": {}, "metadata": {}}
    document, _ = parse_document(json.dumps({**table, part: {key: value}}), Path("t.json"))
    assert document is not None
    found = [one for one in problems(DocumentNode(document, ())) if "is not a" in one.reason]
    assert [one.reason for one in found] == texts
    assert all(key in (one.fix or "") for one in found)
