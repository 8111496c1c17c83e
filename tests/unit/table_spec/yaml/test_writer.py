"""What this project writes as YAML, its own reader reads as the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from pinot_assets.authoring.importing.block import imported_spec
from pinot_assets.authoring.starter import TableType, starting_spec
from pinot_assets.table_spec.yaml.document import parse_document
from pinot_assets.table_spec.yaml.writer import dumped, in_line

# Half a surrogate pair is no text that could be stored.
characters = st.characters(exclude_categories=["Cs"])
numerals = st.from_regex(r"[-+.]?[0-9_]{0,3}[.:eE]?[-+0-9_]{0,3}", fullmatch=True)
signs = st.text(st.sampled_from("~<=-?:,[]{}#&*!|>'\"%@`\\ \t\n\r\x00\x7f\x85\xa0\u2028\ufeff😀e0x"))
bare_words = ("null", "Null", "NULL", "~", "true", "False", "yes", "NO", "on", "Off", "y", "n")
words = st.sampled_from((*bare_words, ".inf", ".nan", "-.Inf", "2013-01-01", "0x1F", "0o7"))
texts = st.text(characters) | numerals | signs | words
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
keys = texts.filter(lambda text: len(in_line(text)) <= 1024)  # YAML takes no longer key without a `?`
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20)


def read(text: str) -> Any:
    document, problems = parse_document(text, Path("x.yaml"))
    assert problems == []
    assert document is not None
    return document.value


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: 1 is not 1.0, nor true."""
    if isinstance(one, dict):
        return type(other) is dict and list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return type(other) is list and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@given(values)
@example(["0099", "08", "1e5", "0e1", "+1", "1.", "1_0", "1:30", "", "~", "<<", "="])
@example({"0099": "08", "<<": {"": "\x85"}})
@example(["a\x85b", "a\u2028b", "\ufeffa", " a", "a\t", "a\r\nb", "a" * 200 + " b"])
@example([1e20, 1e-7, -0.0, 1e300])
def test_a_value_that_is_dumped_is_read_as_the_same(value: Any) -> None:
    assert same(read(dumped({"value": value})), {"value": value})


@given(keys, scalars)
@example("0099", "1e5")
@example("true", "a\x7f")
@example("a" * 1024, "é" * 1024)
def test_what_is_written_into_a_line_is_read_as_the_same(key: str, value: Any) -> None:
    assert same(read(f"- {{{in_line(key)}: {in_line(value)}}}\n"), [{key: value}])
    assert same(read(f"{in_line(key)}: {in_line(value)}\n"), {key: value})


def test_readers_of_yaml_1_1_read_the_same_texts() -> None:
    found = ["yes", "No", "on", "1_0", "1:30", "0x1F", "2013-01-01", "0099", "1e5", "plain words"]
    assert yaml.safe_load(dumped(found)) == found
    assert "- plain words\n" in dumped(found)


def test_what_is_there_twice_is_written_twice() -> None:
    one = {"a": "b"}
    assert dumped([one, one]) == "- a: b\n- a: b\n"


def test_digits_of_a_schema_stay_texts() -> None:
    schema = {"schemaName": "0099", "dimensionFieldSpecs": [{"name": "code", "defaultNullValue": "08"}]}
    table = {"tableName": "1e5", "segmentsConfig": {"replication": "1"}}
    whole = read(imported_spec("x.json", schema, table, {"inputDirURI": "0e1"}, ()))
    assert whole == {"schema": schema, "table": table, "fileIngestion": {"inputDirURI": "0e1"}}


@pytest.mark.parametrize("table_type", TableType)
@pytest.mark.parametrize("name", ["0099", "1e5", "null", "-1", "web-hits", "clicks"])
def test_a_table_to_start_from_has_its_name(table_type: TableType, name: str) -> None:
    whole = read(starting_spec(table_type, name, "[::1]:9092"))
    assert (whole["schema"]["schemaName"], whole["table"]["tableName"]) == (name, name)
    if table_type is TableType.REALTIME:
        assert whole["realtime"]["stream"]["stream.kafka.broker.list"] == "[::1]:9092"
        assert whole["realtime"]["stream"]["stream.kafka.topic.name"] == name
    else:
        assert whole["fileIngestion"]["inputDirURI"] == f"data/{name}"
