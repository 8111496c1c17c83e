"""Files that end their workers, on a real Spark: each fails by its own name, and the others are built."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import psutil
import pytest
from pyspark.sql import SparkSession

from pinot_assets.ingest.contract.build_spec import BuildSpec, Query
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.snapshot.receipt import Failure, Receipt

pytestmark = pytest.mark.spark

_BIG = 1_000_000
"""Bytes: above what the small files have, below what the killer has."""


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    started = local_session("worker deaths", 2)
    yield started
    started.stop()


@pytest.fixture
def build_spec(fakes: ModuleType, tmp_path: Path) -> BuildSpec:
    made: BuildSpec = fakes.make_order(tmp_path, max_rows_per_segment=8_000_000)
    for n in range(6):
        fakes.write_names(tmp_path / "in" / f"{n}.csv", 5)
    fakes.write_names(tmp_path / "in" / "killer.csv", 4_000_000)
    return made


def is_at_the_killer(process: psutil.Process) -> bool:
    try:
        opened = [o.path for o in process.open_files() if "pinot-assets-build-" in o.path]
        return any(os.path.getsize(path) > _BIG for path in opened)
    except (psutil.Error, FileNotFoundError):
        return False


def build(
    session: SparkSession, fakes: ModuleType, build_spec: BuildSpec
) -> tuple[list[Receipt], list[Failure], list[int]]:
    """Build all, while every process that works on the killer is killed."""
    done = threading.Event()
    killed: list[int] = []

    def kill() -> None:
        while not done.is_set():
            for process in psutil.Process().children(recursive=True):
                if is_at_the_killer(process):
                    process.kill()
                    killed.append(process.pid)
            time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    results: list[Receipt | Failure] = []
    try:
        SparkBuilder(lambda: session).build(build_spec, fakes.tasks_of(build_spec), results.append)
    finally:
        done.set()
        killer.join()
    assert len({result.ordinal for result in results}) == len(results)
    receipts = [result for result in results if isinstance(result, Receipt)]
    return receipts, [result for result in results if isinstance(result, Failure)], killed


@pytest.mark.parametrize("query", [None, Query("count >= 0")], ids=["direct", "sql"])
def test_a_file_that_kills_its_workers_is_named_and_fails_alone(
    session: SparkSession, fakes: ModuleType, build_spec: BuildSpec, query: Query | None
) -> None:
    receipts, failures, killed = build(session, fakes, replace(build_spec, query=query))
    assert len(killed) >= 4  # Spark's own retries
    assert len(receipts) == 6
    [failure] = failures
    assert failure.uri.endswith("/killer.csv")
    if query is None:
        assert failure.code == "OUT_OF_MEMORY", failure
        assert "SIGKILL" in failure.reason
    else:
        assert failure.code == "WORKER_DIED", failure  # Spark does not say of which signal
        assert "Python worker exited unexpectedly" in failure.reason
