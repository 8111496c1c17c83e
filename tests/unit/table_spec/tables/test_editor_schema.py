from __future__ import annotations

import json

import jsonschema
import pytest
from fakes.project import ROOT

from pinot_assets.table_spec.tables.editor_schema import FILE_NAME, editor_schema
from pinot_assets.table_spec.yaml.document import read_document

TABLES = ROOT / "tables"
SAMPLE = TABLES / "flights.yaml"


def errors(value: object) -> list[str]:
    validator = jsonschema.Draft7Validator(json.loads(editor_schema()))
    return [error.json_path for error in validator.iter_errors(value)]


def test_the_committed_file_is_fresh():
    # Write it with: pinot-assets tables json-schema > tables/table.schema.json
    assert (TABLES / FILE_NAME).read_text() == editor_schema()


def test_it_is_a_json_schema():
    jsonschema.Draft7Validator.check_schema(json.loads(editor_schema()))


def test_it_takes_the_sample():
    document, _ = read_document(SAMPLE)
    assert document is not None
    assert errors(document.value) == []
    assert SAMPLE.read_text().splitlines()[0].endswith(f"$schema=./{FILE_NAME}")


@pytest.mark.parametrize(
    ("key", "value", "accepted"),
    [
        ("consistentPushMaxRetries", "3", True),
        ("consistentPushMaxRetries", 3, True),
        ("consistentPushMaxRetries", "-3", False),
        ("consistentPushEnabled", "yes", False),
        ("consistentPushEnabled", True, True),
        ("input.fs.prop.region", "eu", True),
        ("recordReader.prop.delimiter", ";", True),
        ("tableMaxNumTasks", "1", True),
        ("inputFormat", "thrift", False),
        ("push.mode", "Tar", True),
        ("minServer", 0.11, True),
        ("inputFromat", "csv", False),
        ("includeFileNamePattern", "*.csv", False),
    ],
)
def test_it_warns_of_wrong_keys_and_values(key, value, accepted):
    document, _ = read_document(SAMPLE)
    assert document is not None
    document.value["fileIngestion"][key] = value
    assert (errors(document.value) == []) is accepted
