"""Workers that die: what Spark says of them, who is to blame, and that all others are built."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest
from fakes.builder import make_order, tasks_of, with_functions
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pinot_assets.errors import BuildError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.failures import Death, death_of
from pinot_assets.ingest.own_process import build_alone, death
from pinot_assets.ingest.spark import builder
from pinot_assets.ingest.spark.batches import Batch
from pinot_assets.ingest.spark.builder import JobDied, SparkBuilder, in_spite_of_deaths
from pinot_assets.ingest.spark.tasks import Build
from pinot_assets.ingest.task import build_or_keep
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.snapshot.receipt import Failure, FileResult, Receipt
from pinot_assets.source import Fingerprint, SourceFile

ABORTED = ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 0.0 failed 4 "
LOST = "times, most recent failure: Lost task 3.3 in stage 0.0 (TID 8) (host executor 1): "


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).", Death(3, False)),
        ("ExecutorLostFailure (executor 1 exited caused by one of the running tasks)", Death(3, False)),
        ("ExecutorLostFailure (executor 1 …) Reason: exited with exit code 137(SIGKILL)", Death(3, True)),
        ("ExecutorLostFailure (…) Reason: Container killed by YARN for exceeding physical", Death(3, True)),
        ("The value 'killed, exit code 137' of the type STRING cannot be cast", None),
        ("java.lang.Exception\nCaused by: java.lang.OutOfMemoryError: Java heap space", Death(3, True)),
        ("org.apache.spark.api.python.PythonException: Traceback: No module named pinot_assets", None),
        ("java.lang.IllegalStateException: Error reading\nCaused by: java.io.EOFException: cut short", None),
    ],
)
def test_what_spark_says_of_a_death(said: str, expected: Death | None) -> None:
    assert death_of(ABORTED + LOST + said) == expected


def test_an_error_of_python_is_no_death() -> None:
    said = "\norg.apache.spark.api.python.PythonException: Traceback\nPython worker exited unexpectedly"
    assert death_of(ABORTED + LOST + said) is None
    assert death_of("Job cancelled because SparkContext was shut down") is None


class Cluster:
    """Runs jobs in this process: a file whose ordinal is in `killers` ends its job.

    :ivar jobs: ordinals of each job, and whether each file had a process of its own.
    :ivar again: ordinals of files that were built again after their batch had ended its worker.
    """

    def __init__(self, *killers: int, names: bool = True, kills_alone: bool = True) -> None:
        self._killers, self._names, self._kills_alone = killers, names, kills_alone
        self.jobs: list[tuple[list[int], bool]] = []
        self.again: list[int] = []

    def run(self, batches: Sequence[Batch], build: Build) -> Generator[FileResult | None, None, None]:
        is_alone = build is build_alone
        self.jobs.append(([task.ordinal for batch in batches for task in batch], is_alone))
        for place, batch in enumerate(batches):
            results: list[FileResult] = []
            for task in batch:
                self.again += [task.ordinal] if build is build_or_keep else []
                if task.ordinal not in self._killers or (is_alone and not self._kills_alone):
                    results.append(receipt(task))
                elif is_alone:
                    results.append(Failure(task.file.uri, task.ordinal, 1, "WORKER_DIED", "it died"))
                else:
                    raise JobDied(Death(place if self._names else None, False), "it died")
            yield from results
            yield None


def receipt(task: FileTask) -> Receipt:
    read = task.file.fingerprint
    return Receipt(task.file.uri, task.ordinal, 1, read, "", 0, 0, (), 0.0, "")


@pytest.fixture
def build_spec(fakes: ModuleType, tmp_path: Path) -> BuildSpec:
    made: BuildSpec = fakes.make_order(tmp_path)
    return made


TASKS = [FileTask(SourceFile(f"file:///{n}", Fingerprint(1, 1)), n) for n in range(6)]
SINGLE = [(task,) for task in TASKS]


def outcome(
    cluster: Cluster, build_spec: BuildSpec, batches: Sequence[Batch] = SINGLE
) -> tuple[list[int], list[int]]:
    """Ordinals of the files that were built, and of those that failed."""
    results = [r for r in in_spite_of_deaths(cluster.run, build_spec, batches) if r is not None]
    built = {r.ordinal for r in results if isinstance(r, Receipt)}
    failed = {r.ordinal for r in results if isinstance(r, Failure)}
    assert not built & failed
    return sorted(built), sorted(failed)


def test_a_killer_fails_alone_and_all_others_are_built(build_spec: BuildSpec) -> None:
    cluster = Cluster(2)
    assert outcome(cluster, build_spec) == ([0, 1, 3, 4, 5], [2])
    assert cluster.jobs == [([0, 1, 2, 3, 4, 5], False), ([2], True), ([3, 4, 5], False)]


def test_one_that_is_built_when_alone_was_only_beside_the_culprit(build_spec: BuildSpec) -> None:
    assert outcome(Cluster(2, kills_alone=False), build_spec) == ([0, 1, 2, 3, 4, 5], [])


def test_many_killers_do_not_make_many_jobs(build_spec: BuildSpec) -> None:
    cluster = Cluster(0, 1, 2, 3, 5)
    assert outcome(cluster, build_spec) == ([4], [0, 1, 2, 3, 5])
    assert cluster.jobs[-1] == ([3, 4, 5], True)


def test_where_spark_does_not_say_which_it_was_each_has_a_process_of_its_own(build_spec: BuildSpec) -> None:
    cluster = Cluster(4, names=False)
    assert outcome(cluster, build_spec) == ([0, 1, 2, 3, 5], [4])
    assert cluster.jobs == [([0, 1, 2, 3, 4, 5], False), ([4, 5], True)]


THOUSAND = [FileTask(SourceFile(f"file:///{n}", Fingerprint(1, 1)), n) for n in range(1000)]


@pytest.mark.parametrize("names", [True, False])
def test_a_killer_in_a_batch_is_found_by_splitting_it(build_spec: BuildSpec, names: bool) -> None:
    batches = [tuple(THOUSAND[:500]), tuple(THOUSAND[500:])]
    cluster = Cluster(700, names=names)
    if not names:  # then no batch is known, and each file gets a process of its own
        assert outcome(cluster, build_spec, batches)[1] == [700]
        return
    built, failed = outcome(cluster, build_spec, batches)
    assert failed == [700]
    assert built == [n for n in range(1000) if n != 700]
    sizes = [len(ordinals) for ordinals, _ in cluster.jobs]
    # The batch in eight parts, one of these in eight, and so on to the file; then the rest of each level.
    assert [len(o) for o, is_alone in cluster.jobs if is_alone] == [1]
    assert sizes[:4] == [1000, 500, 63, 8]
    assert len(cluster.jobs) <= 20
    assert not set(cluster.again[: cluster.again.index(700)]) & set(range(500)), "it is not suspected"


def test_killers_in_one_batch_fail_and_what_is_between_them_is_built(build_spec: BuildSpec) -> None:
    killers = (3, 4, 260, 999)
    cluster = Cluster(*killers)
    built, failed = outcome(cluster, build_spec, [tuple(THOUSAND)])
    assert failed == [*killers]
    assert len(built) == 996


def test_a_batch_full_of_killers_makes_few_jobs(build_spec: BuildSpec) -> None:
    """As where a container's limit ends every build: each file gets a process, and they run side by side."""
    cluster = Cluster(*range(256))
    batches = [tuple(THOUSAND[start : start + 256]) for start in (0, 256)]
    built, failed = outcome(cluster, build_spec, batches)
    assert (len(built), failed) == (256, [*range(256)])
    assert len(cluster.jobs) <= 30
    assert max(len(ordinals) for ordinals, is_alone in cluster.jobs if is_alone) > 200


def test_after_a_death_what_other_batches_have_built_is_kept(build_spec: BuildSpec) -> None:
    cluster = Cluster(2)
    outcome(cluster, build_spec)
    assert cluster.again == [3, 4, 5], "the job after the one that died"


@pytest.mark.parametrize(("of_memory", "code"), [(True, "OUT_OF_MEMORY"), (False, "WORKER_DIED")])
def test_a_file_that_takes_its_executor_with_it_fails_alone(
    build_spec: BuildSpec, of_memory: bool, code: str
) -> None:
    def run(batches: Sequence[Batch], _: Build) -> Generator[FileResult | None, None, None]:
        for place, (task,) in enumerate(batches):
            if task.ordinal == 3:
                raise JobDied(Death(place, of_memory), "executor 1 was lost")
            yield receipt(task)

    results = [r for r in in_spite_of_deaths(run, build_spec, SINGLE) if r is not None]
    [failure] = [r for r in results if isinstance(r, Failure)]
    assert (failure.ordinal, failure.code) == (3, code)
    assert "executor 1 was lost" in failure.reason
    assert len(results) == 6


def test_a_spark_that_loses_all_and_blames_none_is_an_error(build_spec: BuildSpec) -> None:
    def run(_: Sequence[Batch], __: Build) -> Generator[FileResult | None, None, None]:
        yield None
        raise JobDied(Death(None, False), "executors are lost")

    with pytest.raises(BuildError, match="executors are lost"):
        list(in_spite_of_deaths(run, build_spec, SINGLE))


def test_how_a_process_ended_is_told(build_spec: BuildSpec) -> None:
    killed = death(build_spec, TASKS[0], -signal.SIGKILL, "")
    assert (killed.code, "SIGKILL" in killed.reason) == ("OUT_OF_MEMORY", True)
    aborted = death(build_spec, TASKS[0], -signal.SIGABRT, "x\nmemory allocation of 99 bytes failed\n")
    assert aborted.code == "OUT_OF_MEMORY"
    crashed = death(build_spec, TASKS[0], -signal.SIGSEGV, "one\nFatal: two\n\n")
    assert crashed.code == "WORKER_DIED"
    assert "ended with SIGSEGV (Fatal: two)" in crashed.reason


def test_a_file_is_built_in_a_process_of_its_own(
    fakes: ModuleType, tmp_path: Path, build_spec: BuildSpec
) -> None:
    fakes.write_names(tmp_path / "in" / "a.csv", 3)
    [task] = fakes.tasks_of(build_spec)
    built = build_alone(build_spec, task)
    assert isinstance(built, Receipt), built
    assert built.rows == 3
    assert not built.worker.endswith(f"/{os.getpid()}")


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOMEM, "OUT_OF_MEMORY"), (errno.ENOSPC, "MACHINE"), (errno.EAGAIN, "MACHINE")],
)
def test_a_process_that_cannot_be_started_fails_its_file_and_not_the_job(
    build_spec: BuildSpec, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(subprocess, "Popen", refused)
    failed = build_alone(build_spec, TASKS[0])
    assert isinstance(failed, Failure)
    assert (failed.uri, failed.code) == (TASKS[0].file.uri, code)


def test_a_file_that_needs_more_memory_than_a_worker_may_take_says_so(
    fakes: ModuleType, tmp_path: Path, build_spec: BuildSpec
) -> None:
    fakes.write_names(tmp_path / "in" / "a.csv", 700_000)
    [task] = fakes.tasks_of(build_spec)
    limits = FileLimits(worker_bytes=250 << 20)
    failed = build_alone(replace(build_spec, max_rows_per_segment=10**6, limits=limits), task)
    assert isinstance(failed, Failure)
    assert failed.code == "OUT_OF_MEMORY", failed
    assert "PINOT_ASSETS_WORKER_MEMORY" in failed.reason


@pytest.mark.parametrize("error", [JobDied(Death(0, False), "a worker died"), BuildError("Spark gave up")])
def test_what_the_job_without_sql_leaves_is_for_the_one_that_can_start_spark_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    order = with_functions(make_order(tmp_path, input_format="avro"), ("at", "fromEpochDays(day)"))
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.avro").write_bytes(b"x")
    first, second = tasks_of(order)
    waited: list[bool] = []

    def one_receipt(*_: object) -> Generator[FileResult | None, None, None]:
        yield receipt(first)
        raise error

    class Files:
        """A `RestartedFiles` that builds everything."""

        def __init__(self, *_: object) -> None: ...

        def results(self, tasks: Sequence[FileTask]) -> Generator[FileResult | None, None, None]:
            yield from (receipt(task) for task in tasks)

        def moved(self) -> bool:
            return False

    monkeypatch.setattr(builder, "run_job", one_receipt)
    monkeypatch.setattr(builder, "RestartedFiles", Files)
    monkeypatch.setattr(builder, "is_stopped", lambda _: True)
    monkeypatch.setattr(builder, "exit_of_jvm", lambda: waited.append(True))
    done: list[FileResult] = []
    context = cast(SparkContext, SimpleNamespace(defaultParallelism=2))
    SparkBuilder(lambda: cast(SparkSession, None), lambda: context).build(order, [first, second], done.append)
    assert [result.ordinal for result in done] == [first.ordinal, second.ordinal]
    assert waited == [True]
