"""Files side by side, each in a thread of the driver: without Spark, which the threads wait for."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pinot_assets.errors import BuildError, SourceChanged
from pinot_assets.ingest.contract.build_spec import FileTask
from pinot_assets.ingest.spark.file_jobs import as_they_finish, same_file
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source import Fingerprint, SourceFile

WAIT_S = 30.0


def tasks(count: int) -> list[FileTask]:
    return [FileTask(SourceFile(f"file:///{n}.csv", Fingerprint(1, 1)), n) for n in range(count)]


def failure(task: FileTask) -> Failure:
    return Failure(task.file.uri, task.ordinal, 1, "SPARK", "as it happens")


def nothing() -> None:
    pass


def test_as_many_files_are_under_way_as_a_growing_cluster_could_take() -> None:
    together = threading.Barrier(64)

    def build(task: FileTask) -> Receipt | Failure:
        together.wait(WAIT_S)  # nobody goes on before all of them are here
        return failure(task)

    found = [result for result in as_they_finish(build, tasks(64), nothing) if result is not None]
    assert sorted(result.ordinal for result in found) == list(range(64))


def test_every_look_is_told_while_files_are_built() -> None:
    go_on = threading.Event()

    def build(task: FileTask) -> Receipt | Failure:
        assert go_on.wait(WAIT_S)
        return failure(task)

    results = as_they_finish(build, tasks(2), nothing)
    assert next(results) is None
    go_on.set()
    assert {result.ordinal for result in results if result is not None} == {0, 1}


def test_a_caller_that_gives_up_cancels_until_no_thread_is_left() -> None:
    begun, cancelled = threading.Semaphore(0), threading.Event()
    ordinals: list[int] = []

    def build(task: FileTask) -> Receipt | Failure:
        ordinals.append(task.ordinal)
        begun.release()
        assert cancelled.wait(WAIT_S)
        return failure(task)

    calls = []

    def cancel() -> None:
        calls.append(1)
        if len(calls) > 1:  # the first one comes too early for a thread that is about to start its job
            cancelled.set()

    results = as_they_finish(build, tasks(100), cancel)
    next(results)
    for _ in range(64):
        assert begun.acquire(timeout=WAIT_S)
    results.close()
    assert len(calls) == 2
    assert len(ordinals) == 64, "what had not begun never does"


def test_an_error_ends_all_of_them() -> None:
    cancelled = threading.Event()

    def build(task: FileTask) -> Receipt | Failure:
        if task.ordinal == 1:
            raise BuildError("Spark stopped")
        assert cancelled.wait(WAIT_S)
        return failure(task)

    with pytest.raises(BuildError, match="Spark stopped"):
        list(as_they_finish(build, tasks(3), cancelled.set))


def test_a_file_of_the_same_name_elsewhere_is_told_apart(tmp_path: Path) -> None:
    same_file("s3://b/a.csv", Fingerprint(7, 1), 7)
    with pytest.raises(SourceChanged, match="has 7 bytes, and Spark sees 8") as error:
        same_file("s3://b/a.csv", Fingerprint(7, 1), 8)
    assert "spark.hadoop.fs.s3a.endpoint" in str(error.value.hint)
