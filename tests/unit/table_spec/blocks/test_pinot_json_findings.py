"""What the segment writer can do for no server is a problem; what it cannot do for old ones only, a note."""

from __future__ import annotations

import json
from pathlib import Path

from pinot_assets.table_spec.blocks.pinot_json import writer_findings
from pinot_assets.table_spec.yaml.document import DocumentNode, parse_document

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
