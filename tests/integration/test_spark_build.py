"""Spark's executors, and not the driver, build the files; and what Spark does when one of them dies."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from pinot_assets.errors import BuildError
from pinot_assets.ingest.contract.build_spec import BuildSpec
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.snapshot.receipt import Failure, Receipt

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    started = local_session("spark build", 2)
    yield started
    started.stop()


@pytest.fixture
def build_spec(fakes: ModuleType, tmp_path: Path) -> BuildSpec:
    made: BuildSpec = fakes.make_order(tmp_path)
    return made


def last_job(session: SparkSession) -> Any:
    """What Spark itself recorded of the newest job."""
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    return session.sparkContext._jsc.sc().statusStore().jobsList(None).head()


def pid(result: Receipt | Failure) -> int:
    assert isinstance(result, Receipt), result
    return int(result.worker.rpartition("/")[2])


def test_executors_build_a_batch_of_small_files_per_task(
    session: SparkSession, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    for n in range(12):
        fakes.write_names(tmp_path / "in" / f"{n}.csv", 5)
    results: list[Receipt | Failure] = []
    SparkBuilder(lambda: session).build(build_spec, fakes.tasks_of(build_spec), results.append)
    assert len(results) == 12
    pids = {pid(result) for result in results}
    assert os.getpid() not in pids
    for worker in pids:
        ancestors = [process.name() for process in psutil.Process(worker).parents()]
        assert ancestors.index("java") < len(ancestors) - 1, "a worker is a child of Spark's JVM"
    job = last_job(session)
    assert (job.numTasks(), job.numCompletedTasks(), job.numFailedTasks()) == (8, 8, 0)
    assert job.description().get() == "names: 12 files of session cp7-abc, attempt 1"


def test_results_arrive_while_the_job_runs(
    session: SparkSession, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    for n in range(6):
        fakes.write_names(tmp_path / "in" / f"{n}.csv", 60_000)
    running: list[int] = []

    def on_done(result: Receipt | Failure) -> None:
        running.append(len(session.sparkContext.statusTracker().getActiveJobsIds()))

    SparkBuilder(lambda: session).build(
        replace(build_spec, max_rows_per_segment=100_000), fakes.tasks_of(build_spec), on_done
    )
    assert len(running) == 6
    assert running[0] == 1


def test_the_largest_file_is_begun_first(
    session: SparkSession, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    sizes = [10, 4000, 10, 10, 8000, 10]
    for n, rows in enumerate(sizes):
        fakes.write_names(tmp_path / "in" / f"{n}.csv", rows)
    written: dict[int, int] = {}
    SparkBuilder(lambda: session).build(build_spec, fakes.tasks_of(build_spec), lambda result: None)
    for path in (tmp_path / "staging" / "segments").glob("*_0.tar.gz"):
        written[int(path.name.split("_")[-2])] = path.stat().st_mtime_ns
    # Two files at a time: the first to be written is one of the two that were begun first.
    assert min(written, key=lambda n: written[n]) in (1, 4)


def is_spark(process: psutil.Process) -> bool:
    """Whether this is Spark's JVM; other tests' children, ended ones too, are beside it."""
    try:
        return "org.apache.spark.deploy.SparkSubmit" in process.cmdline()
    except psutil.Error:
        return False


def holds_a_big_file(process: psutil.Process) -> bool:
    """Whether it is a worker amid the task of the big file, with its copy or its segment open."""
    try:
        opened = [o.path for o in process.open_files() if "pinot-assets-build-" in o.path]
        return any(os.path.getsize(path) > 1_000_000 for path in opened)
    except (psutil.Error, FileNotFoundError):
        return False  # gone meanwhile


def test_a_killed_worker_is_replaced_and_its_file_built(
    session: SparkSession, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    fakes.write_names(tmp_path / "in" / "big.csv", 1_500_000)
    fakes.write_names(tmp_path / "in" / "small.csv", 5)
    results: list[Receipt | Failure] = []
    build = threading.Thread(
        target=SparkBuilder(lambda: session).build,
        args=(
            replace(build_spec, max_rows_per_segment=2_000_000),
            fakes.tasks_of(build_spec),
            results.append,
        ),
    )
    [jvm] = [child for child in psutil.Process().children() if is_spark(child)]
    build.start()
    killed = None
    deadline = time.monotonic() + 60
    while killed is None and time.monotonic() < deadline:
        killed = next(filter(holds_a_big_file, jvm.children(recursive=True)), None)
        time.sleep(0.02)
    assert killed is not None
    killed.kill()
    build.join(120)
    assert not build.is_alive()
    by_ordinal = {result.ordinal: result for result in results}
    assert len(results) == 2
    big = by_ordinal[0]
    assert isinstance(big, Receipt)
    assert big.rows == 1_500_000
    assert pid(big) != killed.pid
    job = last_job(session)
    assert (job.numCompletedTasks(), job.numFailedTasks()) == (2, 1)


def test_a_caller_that_gives_up_ends_the_job(
    session: SparkSession, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    for n in range(30):
        fakes.write_names(tmp_path / "in" / f"{n}.csv", 30_000)

    def on_done(result: Receipt | Failure) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SparkBuilder(lambda: session).build(
            replace(build_spec, max_rows_per_segment=50_000), fakes.tasks_of(build_spec), on_done
        )
    assert session.sparkContext.statusTracker().getActiveJobsIds() == []
    assert last_job(session).numCompletedTasks() < 30


def test_a_worker_imports_no_module_from_the_working_folder(session: SparkSession) -> None:
    paths = session.sparkContext.parallelize([0], 1).map(lambda _: list(sys.path)).collect()[0]
    assert "" not in paths
    assert os.getcwd() not in paths


def test_spark_that_gives_up_is_an_error(fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path) -> None:
    session = local_session("spark that gives up", 1)
    for n in range(20):
        fakes.write_names(tmp_path / "in" / f"{n}.csv", 30_000)
    results: list[Receipt | Failure] = []

    def on_done(result: Receipt | Failure) -> None:
        if not results:
            session.stop()
        results.append(result)

    with pytest.raises(BuildError, match="Spark gave up building names: 20 files"):
        SparkBuilder(lambda: session).build(
            replace(build_spec, max_rows_per_segment=50_000), fakes.tasks_of(build_spec), on_done
        )
    assert 0 < len(results) < 20
    assert all(isinstance(result, Receipt) for result in results)
