"""Pinot's builder of a compiled source beside our writer (`make oracle-1.6`).

`ORACLE_RECORD=1` writes the list of hashes anew; do so only if the source is another one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from oracle import compiled_source, golden
from oracle.seeded_tables import seeded_table

from pinot_assets.core.json_object import JsonObject
from pinot_assets.segment import SegmentSpec, build_segment

if TYPE_CHECKING:
    from oracle.conftest import Oracle


def _built(oracle: Oracle, seed: int) -> dict[str, bytes]:
    table = seeded_table(seed)
    return oracle.build(
        table.rows, table.schema, table.table_config, name="t_0", creation_time_ms=golden.CREATED
    )


def test_real_zeros_stay_zeros_after_a_backfill_of_nulls(oracle: Oracle) -> None:
    """A server that loads a segment with `indexes.null.backfill` makes null of each default value, unless the
    segment says that the column has no null."""
    schema: JsonObject = {"schemaName": "t", "metricFieldSpecs": [{"name": "m", "dataType": "LONG"}]}
    plain: JsonObject = {
        "tableName": "t_OFFLINE",
        "tableType": "OFFLINE",
        "segmentsConfig": {"replication": "1"},
        "tenants": {},
        "tableIndexConfig": {"nullHandlingEnabled": True},
        "metadata": {},
    }
    backfill = {**plain, "fieldConfigList": [{"name": "m", "indexes": {"null": {"backfill": True}}}]}
    nulls = {}
    for write_for, config in (("1.6", backfill), ("1.5", plain)):
        spec = SegmentSpec.from_pinot(schema, config, write_for=write_for)
        segment = build_segment(
            pa.table({"m": [0, 1, 0, 2]}), spec, name="t", table_name="t", creation_time_ms=0, now_ms=0
        )
        nulls[write_for] = oracle.nulls_after_load(
            oracle.segment_folder(segment.files), schema, backfill, "m"
        )
    assert nulls == {"1.6": [], "1.5": [0, 2]}


def test_seeded_tables(oracle: Oracle) -> None:
    assert oracle.write_for == golden.WRITE_FOR
    theirs = {}
    wrong = []
    for seed in range(golden.TABLES):
        files = _built(oracle, seed)
        theirs[seed] = golden.hashes(files)
        mine = golden.ours(seeded_table(seed))
        try:
            oracle.assert_identical(files, mine)
        except AssertionError as differ:
            wrong.append(f"seed {seed}: {differ}")
    if wrong:
        pytest.fail(f"{len(wrong)} tables differ\n" + "\n".join(wrong[:5]))
    if os.environ.get("ORACLE_RECORD"):
        golden.store(compiled_source.commit(Path(os.environ[compiled_source.HOME])), theirs)
    assert theirs == golden.read()
