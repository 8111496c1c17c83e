"""The same build on a standalone cluster: a real master and two workers, processes on loopback.

One executor is killed amid the build and tasks are run twice by speculation: never a wrong or double segment.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import psutil
import pyspark
import pytest

from pinot_assets.build.query import Query
from pinot_assets.local.ports import pick

pytestmark = [pytest.mark.integration, pytest.mark.spark]

FILES, ROWS = 6, 150_000
_DEADLINE_S = 300

# In a process of its own: there is one Spark session in a process, and other tests have theirs.
_DRIVER = """
import dataclasses, json, pickle, sys
from pathlib import Path
from pinot_assets.build.environment_spark import environment_session
from pinot_assets.build.spark import SparkBuilder

order, tasks = pickle.loads(Path(sys.argv[1]).read_bytes())
session = environment_session()
told = []
SparkBuilder(lambda: session).build(order, tasks, told.append)
print(json.dumps({"master": session.sparkContext.master,
                  "results": [dataclasses.asdict(result) for result in told]}))
session.stop()
"""

_PROPERTIES = """
spark.cores.max 2
spark.driver.memory 400m
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.executor.memory 450m
spark.executor.cores 1
spark.ui.enabled false
spark.speculation true
spark.speculation.interval 100ms
spark.speculation.multiplier 1.1
spark.speculation.quantile 0.1
spark.speculation.minTaskRuntime 100ms
spark.speculation.task.duration.threshold 2s
"""


@contextmanager
def daemon(folder: Path, name: str, *arguments: str) -> Iterator[psutil.Process]:
    """One of Spark's own daemons; it and its executors are gone afterwards."""
    home = Path(pyspark.__file__).parent
    env = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "200m",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_DIRS": str(folder),
        "PYTHONSAFEPATH": "1",
    }
    with (folder / f"{name}.log").open("w") as log:
        started = subprocess.Popen(
            [home / "bin" / "spark-class", *arguments], env=env, stdout=log, stderr=log, cwd=folder
        )
    process = psutil.Process(started.pid)
    try:
        yield process
    finally:
        left = [*process.children(recursive=True), process]
        for each in left:
            each.terminate()
        _, alive = psutil.wait_procs(left, timeout=20)
        for each in alive:
            each.kill()
        started.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[psutil.Process]]]:
    port = pick(())
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    worker = (f"{deploy}.worker.Worker", *here, "--cores", "1", "--memory", "600m", master)
    with (
        daemon(tmp_path, "master", f"{deploy}.master.Master", *here, "--port", str(port)),
        daemon(tmp_path, "worker-1", *worker) as one,
        daemon(tmp_path, "worker-2", *worker) as two,
    ):
        log = tmp_path / "master.log"
        until(lambda: log.read_text().count("Registering worker") == 2, "two workers")
        yield master, [one, two]


def until(reached: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def executors(workers: list[psutil.Process]) -> list[psutil.Process]:
    found = []
    for worker in workers:
        for child in worker.children():
            if any("CoarseGrainedExecutorBackend" in word for word in child.cmdline()):
                found.append(child)
    return found


def _path() -> list[str]:
    """Executors find the package where this process does."""
    here = os.environ.get("PYTHONPATH")
    return [f"spark.executorEnv.PYTHONPATH {here}"] if here else []


@pytest.mark.parametrize("query", [False, True], ids=["arrow", "spark-sql"])
def test_an_executor_dies_and_tasks_run_twice(
    cluster: tuple[str, list[psutil.Process]], fakes: ModuleType, tmp_path: Path, query: bool
) -> None:
    made = Query(where="cast(count AS bigint) >= 0", transforms={"name": "upper(name)"}) if query else None
    order = fakes.make_order(tmp_path / "table", query=made, max_rows_per_segment=100_000)
    for n in range(FILES):
        fakes.write_names(tmp_path / "table" / "in" / f"{n}.csv", ROWS, n * ROWS)
    (tmp_path / "order").write_bytes(pickle.dumps((order, fakes.tasks_of(order))))
    (tmp_path / "spark.conf").write_text(
        "".join(f"{line}\n" for line in (_PROPERTIES, f"spark.pyspark.python {sys.executable}", *_path()))
    )
    master, workers = cluster
    env = os.environ | {
        "PINOT_ASSETS_SPARK_MASTER": master,
        "PINOT_ASSETS_SPARK_PROPERTIES": str(tmp_path / "spark.conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    segments = tmp_path / "table" / "staging" / "segments"
    with (tmp_path / "driver.log").open("w+") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", _DRIVER, tmp_path / "order"],
            env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        try:
            until(lambda: driver.poll() is not None or any(segments.glob("*_0.tar.gz")), "a first segment")
            assert driver.poll() is None, (tmp_path / "driver.log").read_text()[-3000:]
            executors(workers)[0].kill()
            out, _ = driver.communicate(timeout=_DEADLINE_S)
        finally:
            driver.kill()
            driver.wait()
    assert driver.returncode == 0, (tmp_path / "driver.log").read_text()[-3000:]
    (line,) = (line for line in out.splitlines() if line.startswith("{"))
    found = json.loads(line)
    assert found["master"] == master
    results = found["results"]
    assert sorted(result["ordinal"] for result in results) == list(range(FILES))
    outputs = [output for result in results for output in result["outputs"]]
    assert sum(output["rows"] for output in outputs) == FILES * ROWS
    # Whatever ran twice wrote the same bytes under the same names, and nothing else is there.
    names = {output["segment"] for output in outputs}
    assert {
        path.name.removesuffix(".tar.gz").removesuffix(".metadata") for path in segments.iterdir()
    } == names
    for output in outputs:
        assert (
            hashlib.sha256((segments / f"{output['segment']}.tar.gz").read_bytes()).hexdigest()
            == (output["tar_sha256"])
        )
    assert len(list((tmp_path / "table" / "staging").rglob("files/*.json"))) == FILES
