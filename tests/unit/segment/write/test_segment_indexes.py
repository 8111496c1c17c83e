from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import BuildError
from pinot_assets.segment import Segment, SegmentSpec, build_segment


def build(kind: str, values: Any, indexing: JsonObject, **options: Any) -> Segment:
    schema = {"dimensionFieldSpecs": [{"name": "c", "dataType": kind, **options}]}
    spec = SegmentSpec.from_pinot(schema, {"tableIndexConfig": indexing})
    return build_segment(
        pa.table({"c": values}), spec, name="t", table_name="t", creation_time_ms=0, now_ms=0
    )


def buffers(segment: Segment) -> list[str]:
    lines = segment.files["index_map"].decode().splitlines()
    return [line.split(".")[1] for line in lines if ".startOffset" in line]


EVERY = {
    "nullHandlingEnabled": True,
    "bloomFilterColumns": ["c"],
    "invertedIndexColumns": ["c"],
    "createInvertedIndexDuringSegmentGeneration": True,
}


def test_buffers_stand_in_the_order_of_their_ids() -> None:
    assert buffers(build("INT", pa.array([3, None, 1], pa.int32()), EVERY)) == [
        "bloom_filter", "dictionary", "forward_index", "inverted_index", "nullvalue_vector",
    ]  # fmt: skip


def test_a_sorted_column_has_no_inverted_index() -> None:
    assert "inverted_index" not in buffers(build("INT", pa.array([1, 2, 3], pa.int32()), EVERY))


def partitioned(function: str) -> JsonObject:
    entry = {"functionName": function, "numPartitions": 4}
    return {"segmentPartitionConfig": {"columnPartitionMap": {"c": entry}}}


def test_a_default_counts_as_a_value_for_partitions() -> None:
    properties = build("INT", pa.array([5, None], pa.int32()), partitioned("Modulo"), defaultNullValue=3)
    lines = properties.files["metadata.properties"].decode().splitlines()
    assert "column.c.partitionValues = 1,3" in lines
    assert "column.c.partitionFunction = Modulo" in lines
    assert "column.c.numPartitions = 4" in lines


def test_a_text_without_partition_is_refused_by_name() -> None:
    with pytest.raises(BuildError, match="Column c holds a text that is no whole number"):
        build("STRING", ["1", "x"], partitioned("Modulo"))
