"""What is read back of a segment's metadata is what was built."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.segment import SegmentSpec, build_segment
from pinot_assets.segment.write.metadata import read_facts


def test_every_column_with_its_type_and_bounds(golden: Any) -> None:
    segment = golden.build()
    facts = read_facts(segment.files["metadata.properties"])
    assert facts.rows == 4
    said = {column.name: column[1:] for column in facts.columns}
    assert list(said) == [column.name for column in segment.columns]
    assert said["i"] == ("INT", "1", "7")
    assert said["m"] == ("LONG", "0", "6")
    assert said["b"] == ("BOOLEAN", "0", "1")
    assert said["d"] == ("DOUBLE", "-Infinity", "2.0E23")
    assert said["absent"] == ("STRING", "null", "null")
    assert said["ts"] == ("TIMESTAMP", "1600000000000", "1600000000009")


@given(st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0xFFFF), max_size=9))
def test_texts_come_back(text: str) -> None:
    names = ["a b", "c.minValue", "d=e:f"]
    schema = {
        "schemaName": "t",
        "dimensionFieldSpecs": [{"name": name, "dataType": "STRING"} for name in names],
    }
    config = {"tableName": "t_OFFLINE", "tableType": "OFFLINE", "tableIndexConfig": {}}
    spec = SegmentSpec.from_pinot(schema, config, write_for="1.5")
    segment = build_segment(
        pa.table({name: [text] for name in names}),
        spec,
        name="t_0",
        table_name="t",
        creation_time_ms=0,
        now_ms=0,
    )
    facts = read_facts(segment.files["metadata.properties"])
    stats = {column.name: column.lowest for column in segment.columns}
    assert [column.name for column in facts.columns] == list(stats)
    for column in facts.columns:
        stored = str(stats[column.name])
        if "," not in stored and stored == stored.strip(" "):  # what is protected is said in another way
            assert column.low == column.high == stored


def test_of_a_long_text_the_beginning_is_enough(golden: Any) -> None:
    table = pa.table({"j": [f'"{letter * 400}"' for letter in "bacd"]})
    facts = read_facts(golden.build(table).files["metadata.properties"])
    [column] = [column for column in facts.columns if column.name == "j"]
    assert (column.low, column.high) == ('"' + "a" * 63, '"' + "d" * 63)


@pytest.mark.parametrize("text", ["", "segment.total.docs = 3\ncolumn.a.minValue = 1\n"])
def test_what_says_too_little_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"does not say"):
        read_facts(text.encode())
