"""A session of as many files as a table may have writes no more into ZooKeeper than a small one."""

from __future__ import annotations

from pathlib import Path

from fakes.tables import SYNC, write_table
from model.world.counted import assert_as_little, written


def test_a_session_of_100_000_files_writes_as_little_as_one_of_a_hundred(tmp_path: Path) -> None:
    spec = write_table(tmp_path, "counted", {**SYNC, "consistentPushMaxRetries": "3"})
    assert_as_little(written(spec, 100), written(spec, 100_000))
