"""Signs of life: only of work, one object at a time, and never a file's undoing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from fakes.builder import make_order, tasks_of, write_names
from fakes.stores.memory import MemoryObjectStore, new_memory

from pinot_assets.errors import SourceError
from pinot_assets.ingest.contract import task_outputs
from pinot_assets.ingest.contract.task_outputs import Heartbeat, HeartbeatReader
from pinot_assets.ingest.task import build_file
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source.local_store import LocalObjectStore


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_outputs, "EVERY_S", 0.0)


@pytest.fixture
def staging() -> MemoryObjectStore:
    return new_memory()


def keys(staging: MemoryObjectStore) -> list[str]:
    return sorted(info.key for info in staging.list())


def test_the_rows_of_all_files_that_are_not_done_are_told(staging: MemoryObjectStore) -> None:
    watch = HeartbeatReader(staging, 2)
    assert watch.look([]) is None
    first, second = Heartbeat(staging, 2, 0), Heartbeat(staging, 2, 7)
    first.worked(10)
    second.worked(5)
    assert watch.look([]) == 15
    second.worked(5)
    assert watch.look([0]) == 10


def test_without_new_work_nothing_is_told(staging: MemoryObjectStore) -> None:
    """A task that hangs leaves its last sign where it is."""
    signs, watch = Heartbeat(staging, 0, 0), HeartbeatReader(staging, 0)
    signs.worked(10)
    assert watch.look([]) == 10
    assert watch.look([]) is None
    signs.worked()  # a segment written: no more rows, and work all the same
    assert watch.look([]) == 10
    signs.close()
    assert watch.look([]) is None


def test_a_task_leaves_one_object_and_takes_it_with_it(staging: MemoryObjectStore) -> None:
    signs = Heartbeat(staging, 0, 0)
    for _ in range(5):
        signs.worked(1)
    assert len(keys(staging)) == 1
    signs.close()
    assert keys(staging) == []


def test_of_two_tasks_of_one_file_the_further_one_counts(staging: MemoryObjectStore) -> None:
    Heartbeat(staging, 0, 3).worked(100)
    Heartbeat(staging, 0, 3).worked(40)
    assert HeartbeatReader(staging, 0).look([]) == 100


def test_signs_of_another_attempt_are_not_read(staging: MemoryObjectStore) -> None:
    Heartbeat(staging, 0, 3).worked(100)
    assert HeartbeatReader(staging, 1).look([]) is None


def test_a_sign_is_rare(staging: MemoryObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_outputs, "EVERY_S", 15.0)
    signs = Heartbeat(staging, 0, 0)
    tables = [pa.table({"a": [1, 2]})] * 1000
    assert list(signs.counted(tables)) == tables
    assert keys(staging) == []


def built(folder: Path, **changes: object) -> Receipt | Failure:
    order = replace(make_order(folder), **changes)  # type: ignore[arg-type]
    write_names(folder / "in" / "a.csv", 2500)
    (task,) = tasks_of(order)
    return build_file(order, task)


def test_a_build_leaves_nothing_but_what_it_builds(tmp_path: Path) -> None:
    assert isinstance(built(tmp_path), Receipt)
    left = {path.parent.name for path in (tmp_path / "staging").rglob("*") if path.is_file()}
    assert left == {"files", "segments"}


def test_every_step_of_a_build_is_a_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    put = LocalObjectStore.put_if_absent

    def note(self: LocalObjectStore, key: str, data: bytes) -> None:
        told.append(key)
        put(self, key, data)

    monkeypatch.setattr(LocalObjectStore, "put_if_absent", note)
    built(tmp_path)
    rows = [int(key.rsplit("-", 1)[1]) for key in told if key.startswith("moving/1/0-")]
    # copied; read; and for each of three segments: made, packed, stored
    assert rows == [0, *[2500] * 10]


def test_signs_that_cannot_be_left_do_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = LocalObjectStore.put_if_absent

    def refuse(self: LocalObjectStore, key: str, data: bytes) -> None:
        if key.startswith("moving/"):
            raise SourceError("no room")
        put(self, key, data)

    monkeypatch.setattr(LocalObjectStore, "put_if_absent", refuse)
    assert isinstance(built(tmp_path), Receipt)


def test_work_that_tasks_tell_nothing_of_is_a_sign_too(staging: MemoryObjectStore) -> None:
    """Spark reads a file for its columns' types, or a filter leaves nothing of its rows."""
    moved = [True, False, True]
    watch, signs = HeartbeatReader(staging, 0, lambda: moved.pop(0)), Heartbeat(staging, 0, 0)
    assert watch.look([]) == 0
    assert watch.look([]) is None
    signs.worked(10)
    assert watch.look([]) == 10
