"""Indexes, partitions and sort orders for generated tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from pinot_assets.core.json_object import JsonObject

WHOLE = ("INT", "LONG", "BOOLEAN", "TIMESTAMP")
SORTABLE = (*WHOLE, "FLOAT", "DOUBLE", "STRING", "BYTES", "BIG_DECIMAL")
BOUNDED = ["null", "a", "b", "é", "\u0130", "-2147483648", "0", "true", "1.0", "", "x" * 511]
FUNCTIONS: list[tuple[str, JsonObject | None]] = [
    ("Murmur", None),
    ("murmur2", {}),
    ("Murmur3", {"seed": -7}),
    ("Murmur3", {"variant": "x64_32", "seed": "9001"}),
    ("HashCode", None),
    ("ByteArray", None),
]


@st.composite
def index_settings(draw: st.DrawFn, columns: list[Any]) -> JsonObject:
    """Settings of `tableIndexConfig` for columns that have `name`, `kind`, `lengths` and `config`."""
    some = draw(st.lists(st.sampled_from(columns), unique_by=id))
    sortable = [column.name for column in columns if column.kind in SORTABLE and column.lengths is None]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    partitions = {column.name: draw(partitioning(column.kind)) for column in some if column.lengths is None}
    return {
        "segmentPartitionConfig": {"columnPartitionMap": partitions},
        "bloomFilterConfigs": {
            column.name: {
                "fpp": draw(st.sampled_from([0.05, 0.4])),
                "maxSizeInBytes": draw(st.sampled_from([0, 50])),
            }
            for column in some
            if column.kind != "BOOLEAN"
        },
        "invertedIndexColumns": [column.name for column in some if "encodingType" not in column.config],
        "createInvertedIndexDuringSegmentGeneration": draw(st.booleans()),
        "sortedColumn": rng.permutation(sortable)[: rng.integers(0, 3)].tolist(),
    }


@st.composite
def partitioning(draw: st.DrawFn, kind: str) -> JsonObject:
    """An entry of `columnPartitionMap`, sometimes with more partitions than the 12 of a small `HashSet`."""
    functions = [*FUNCTIONS, ("Modulo", None), ("Modulo", None)] if kind in WHOLE else FUNCTIONS
    name, config = draw(st.sampled_from([*functions, ("BoundedColumnValue", None)]))
    if name == "BoundedColumnValue":
        return draw(bounded())
    return {
        "functionName": name,
        "numPartitions": draw(st.sampled_from([1, 7, 40, 1000])),
        **({} if config is None else {"functionConfig": config}),
    }


@st.composite
def bounded(draw: st.DrawFn) -> JsonObject:
    """An entry of `columnPartitionMap` with a partition for each of some values."""
    values = ["a", *draw(st.lists(st.sampled_from(BOUNDED), max_size=6))]
    return {
        "functionName": "BoundedColumnValue",
        "numPartitions": len([value for value in values if value]) + 1,
        "functionConfig": {"columnValues": "|".join(values), "columnValuesDelimiter": "|"},
    }
