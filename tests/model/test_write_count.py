"""A session's state in ZooKeeper is a few KB and a constant number of writes, however many files it has."""

from __future__ import annotations

from pathlib import Path

from fakes.tables import SYNC, write_table
from model.world.counted import assert_as_little, written


def test_a_session_of_10_000_files_writes_as_little_as_one_of_a_hundred(tmp_path: Path) -> None:
    """Of 100,000: tests/slow."""
    spec = write_table(tmp_path, "counted", {**SYNC, "consistentPushMaxRetries": "3"})
    assert_as_little(written(spec, 100), written(spec, 10_000))
