"""What happens when jobs of several files end early, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from fakes.builder import make_order, tasks_of, write_names
from pyspark.accumulators import Accumulator

from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.spark import file_jobs, tasks
from pinot_assets.ingest.spark.file_jobs import RestartedFiles, SparkFiles
from pinot_assets.snapshot.receipt import Failure, FileResult, Fingerprint, Receipt, SourceFile

TASKS = [FileTask(SourceFile(f"file:///{n}", Fingerprint(1, 1)), n) for n in range(4)]


def receipt(task: FileTask) -> Receipt:
    return Receipt(task.file.uri, task.ordinal, 1, task.file.fingerprint, "", 0, 0, (), 0.0, "")


class Files:
    """`SparkFiles` whose shared job builds some files.

    :ivar alone: ordinals of the files that were given to jobs of their own.
    """

    def __init__(self, shares: Sequence[int], *, ends: bool = False) -> None:
        self._shares, self.has_ended, self._ends = shares, False, ends
        self.alone: list[int] = []

    def shared(self, given: Sequence[FileTask]) -> Iterator[FileResult | None]:
        for task in given:
            if task.ordinal in self._shares:
                yield receipt(task)
                yield receipt(task)  # by the accumulator, and by the job
        yield None
        self.has_ended = self._ends

    def results(self, given: Sequence[FileTask]) -> Iterator[FileResult | None]:
        for task in given:
            self.alone.append(task.ordinal)
            yield receipt(task)

    def moved(self) -> bool:
        return False


def built_by(*sparks: Files) -> list[int]:
    """Ordinals of the files with a result, where these Sparks start one after the other."""
    starts = iter(sparks)
    files = RestartedFiles(lambda: cast(SparkFiles, next(starts)), make_order_of_none())
    return sorted({result.ordinal for result in files.results(TASKS) if result is not None})


def make_order_of_none() -> BuildSpec:
    return cast(BuildSpec, None)  # only a failure needs it


def test_what_shared_jobs_did_not_build_gets_a_job_of_its_own() -> None:
    some, all_of_them = Files([0, 2]), Files(range(4))
    assert built_by(some) == built_by(all_of_them) == [0, 1, 2, 3]
    assert (some.alone, all_of_them.alone) == ([1, 3], [])


def test_spark_that_ends_under_many_files_is_started_again_and_suspects_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_jobs, "exit_of_jvm", lambda: 137)
    ended, other = Files([1], ends=True), Files(range(4))
    assert built_by(ended, other) == [0, 1, 2, 3]
    assert (ended.alone, other.alone) == ([], [0, 2, 3])


class Collected:
    """An accumulator without Spark."""

    def __init__(self) -> None:
        self.value: list[FileResult] = []

    def add(self, results: list[FileResult]) -> None:
        self.value.extend(results)


@pytest.mark.parametrize("is_own", [True, False])
def test_rows_of_another_file_are_never_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_own: bool
) -> None:
    build_spec = make_order(tmp_path)
    write_names(tmp_path / "in" / "a.csv", 1)
    [task] = tasks_of(build_spec)
    monkeypatch.setattr(tasks, "file_of_partition", lambda files: files[0])
    uri = task.file.uri if is_own else "file:///another"
    values = {
        "name": ["n0", None], "count": ["0", None], "at": ["2020-01-01T00:00:00Z", None],
        tasks.ROW: [0, None], tasks.CORRUPT: [None, uri], tasks.END: [False, True],
    }  # fmt: skip
    schema = pa.schema(
        [(n, pa.int64() if n == tasks.ROW else pa.bool_() if n == tasks.END else pa.string()) for n in values]
    )
    batch = pa.record_batch([pa.array(values[name], schema.field(name).type) for name in values], schema)
    collected = Collected()
    finished = cast(Accumulator[list[FileResult]], collected)
    checked = [(task, task.file.fingerprint)]
    [written] = tasks.write_in_partition(build_spec, checked, (), tuple(values), finished, iter([batch]))
    result = pickle.loads(written.column(0)[0].as_py())
    if is_own:
        assert isinstance(result, Receipt), result
        assert collected.value == [result]
    else:
        assert isinstance(result, Failure), result
        assert "rows of file:///another" in result.reason
        assert collected.value == []
