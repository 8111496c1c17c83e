"""Pinot's builder of a compiled source beside our writer (`make oracle-1.6`).

`ORACLE_RECORD=1` writes the list of hashes anew; do so only if the source is another one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from oracle import compiled_source, golden
from oracle.seeded_tables import seeded_table

if TYPE_CHECKING:
    from oracle.conftest import Oracle


def _built(oracle: Oracle, seed: int) -> dict[str, bytes]:
    table = seeded_table(seed)
    return oracle.build(
        table.rows, table.schema, table.table_config, name="t_0", creation_time_ms=golden.CREATED
    )


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
