"""The same build on a standalone cluster: a real master and two workers, processes on loopback.

An executor is killed amid a file, and a task is run twice by speculation: never a wrong or double segment.
Executors get the package as a zip; nothing of it is on their paths otherwise.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pyspark
import pytest
from unit.ingest.packs.test_kept_rows import area_of, lists_of

import pinot_assets
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.stored_format import WITH_PACKS
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, PackSettings, Query, TaskKind
from pinot_assets.local.processes import free_port
from pinot_assets.segment.values.cells import CellSettings
from pinot_assets.snapshot.batch_receipt import BatchReceipt
from pinot_assets.snapshot.manifest import sha256_hex
from pinot_assets.snapshot.packs import members_key, members_to_parquet
from pinot_assets.snapshot.receipt import Fingerprint, Receipt
from pinot_assets.source import SourceFile

pytestmark = [pytest.mark.integration, pytest.mark.spark]

BIG, SMALL, SMALLS = 1_500_000, 20_000, 4
"""Rows of the one file that takes long and of the others, and how many these are."""
_DEADLINE_S = 300

# In a process of its own: there is one Spark session in a process, and other tests have theirs.
_DRIVER = """
import dataclasses, json, pickle, sys
from pathlib import Path
from pinot_assets.ingest.spark.environment import environment_session
from pinot_assets.ingest.spark.builder import SparkBuilder

def where():
    import pinot_assets
    return pinot_assets.__file__

order, tasks = pickle.loads(Path(sys.argv[1]).read_bytes())
session = environment_session()
builder = SparkBuilder(lambda: session)
told = []
builder.build(order, tasks, told.append)
context = session.sparkContext._jsc.sc()
context.listenerBus().waitUntilEmpty()
store = context.statusStore()

def listed(seq):
    return [seq.apply(n) for n in range(seq.size())]

stages = {stage for job in listed(store.jobsList(None)) for stage in listed(job.stageIds())}
runs = [task for stage in stages for task in listed(store.taskList(stage, 0, 1000))]
print(json.dumps({"master": session.sparkContext.master,
                  "package": session.sparkContext.parallelize([0], 1).map(lambda _: where()).first(),
                  "tasks": [{"status": run.status(), "speculative": run.speculative()} for run in runs],
                  "results": [dataclasses.asdict(result) for result in told]}))
session.stop()
"""

_PROPERTIES = """
spark.cores.max 2
spark.driver.memory 512m
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.executor.memory 450m
spark.executor.cores 1
spark.ui.enabled false
"""
_SPECULATION = """
spark.speculation true
spark.speculation.interval 100ms
spark.speculation.multiplier 1.1
spark.speculation.quantile 0.1
spark.speculation.minTaskRuntime 100ms
spark.speculation.task.duration.threshold 1s
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
    env.pop("PYTHONPATH", None)
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


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("cluster"), free_port(())
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    # Spark runs no task twice on one host, so the workers stand on two.
    there = ("--host", "127.0.0.2", "--webui-port", "0")
    worker, size = f"{deploy}.worker.Worker", ("--cores", "1", "--memory", "600m", url)
    with (
        daemon(folder, "master", f"{deploy}.master.Master", *here, "--port", str(port)),
        daemon(folder, "worker-1", worker, *here, *size),
        daemon(folder, "worker-2", worker, *there, *size),
    ):
        log = folder / "master.log"
        # One that is slow to be answered registers twice.
        workers = re.compile(r"Registering worker (\S+)")
        until(lambda: len({*workers.findall(log.read_text())}) == 2, "two workers")
        yield url


def until(reached: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def executor_amid_the_big_file(temporary: Path) -> psutil.Process | None:
    """The executor one of whose workers has the big file's copy and is not done with it."""
    return executor_with(temporary, "pinot-assets-build-*/source", 20 * SMALL)


def executor_with(temporary: Path, pattern: str, size: int) -> psutil.Process | None:
    """The executor one of whose workers has a file of more bytes than that in its temporary folder."""
    for file in temporary.glob(pattern):
        try:
            if file.stat().st_size > size:
                return next(filter(is_executor, holder(file.with_name("lock")).parents()), None)
        except (OSError, StopIteration, psutil.Error):
            continue  # gone meanwhile
    return None


def holder(path: Path) -> psutil.Process:
    """The worker that has it open."""
    return next(p for p in psutil.Process().children(recursive=True) if has_open(p, path))


def has_open(process: psutil.Process, path: Path) -> bool:
    """Whether it has the file open; one that has ended meanwhile has none."""
    try:
        return str(path) in [opened.path for opened in process.open_files()]
    except psutil.Error:
        return False


def is_executor(process: psutil.Process) -> bool:
    return any("CoarseGrainedExecutorBackend" in word for word in process.cmdline())


@pytest.fixture(params=[False, True], ids=["arrow", "spark-sql"])
def build_spec(request: pytest.FixtureRequest, fakes: ModuleType, tmp_path: Path) -> BuildSpec:
    query = Query(where="cast(count AS bigint) >= 0", transforms={"name": "upper(name)"})
    made: BuildSpec = fakes.make_order(
        tmp_path / "table", query=query if request.param else None, max_rows_per_segment=1_000_000
    )
    fakes.write_names(tmp_path / "table" / "in" / "big.csv", BIG)
    for n in range(SMALLS):
        fakes.write_names(tmp_path / "table" / "in" / f"{n}.csv", SMALL, BIG + n * SMALL)
    return made


def shipped(folder: Path) -> Path:
    """The package as it is here, in a zip."""
    package, path = Path(pinot_assets.__file__).parent, folder / "shipped.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in package.rglob("*.py"):
            archive.write(file, Path(package.name) / file.relative_to(package))
    return path


@contextmanager
def driver(
    master: str, build_spec: BuildSpec, tasks: Sequence[FileTask], folder: Path, properties: str
) -> Iterator[subprocess.Popen[str]]:
    """A build of these tasks, under way."""
    (folder / "order").write_bytes(pickle.dumps((build_spec, tasks)))
    (folder / "temporary").mkdir(exist_ok=True)
    own = {
        "spark.pyspark.python": sys.executable,
        "spark.submit.pyFiles": shipped(folder),
        "spark.executorEnv.TMPDIR": folder / "temporary",
    }
    lines = "".join(f"{key} {value}\n" for key, value in own.items())
    (folder / "spark.conf").write_text(properties + lines)
    env = os.environ | {
        "PINOT_ASSETS_SPARK_MASTER": master,
        "PINOT_ASSETS_SPARK_PROPERTIES": str(folder / "spark.conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (folder / "driver.log").open("w+") as log, subprocess.Popen(
        [sys.executable, "-c", _DRIVER, folder / "order"],
        env=env, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True,
    ) as started:  # fmt: skip
        try:
            yield started
        finally:
            started.kill()


def outcome(started: subprocess.Popen[str], folder: Path) -> Any:
    out, _ = started.communicate(timeout=_DEADLINE_S)
    assert started.returncode == 0, (folder / "driver.log").read_text()[-3000:]
    (line,) = (line for line in out.splitlines() if line.startswith("{"))
    return json.loads(line)


def assert_each_row_once(run_outcome: Any, master: str, folder: Path) -> None:
    assert run_outcome["master"] == master
    assert "shipped.zip" in run_outcome["package"]
    results = run_outcome["results"]
    assert sorted(result["ordinal"] for result in results) == list(range(1 + SMALLS))
    outputs = [output for result in results for output in result["outputs"]]
    assert sum(output["rows"] for output in outputs) == BIG + SMALLS * SMALL
    # Whatever ran twice wrote the same bytes under the same names, and nothing else is there.
    segments = folder / "table" / "staging" / "segments"
    names = {output["segment"] for output in outputs}
    tars = {path.name.removesuffix(".tar.gz") for path in segments.glob("*.tar.gz")}
    assert {name.removesuffix(".metadata") for name in tars} == names
    for output in outputs:
        tar = (segments / f"{output['segment']}.tar.gz").read_bytes()
        assert hashlib.sha256(tar).hexdigest() == output["tar_sha256"]
    assert len(list((folder / "table" / "staging").rglob("files/*.json"))) == 1 + SMALLS


def test_an_executor_dies_amid_a_file(
    master: str, build_spec: BuildSpec, fakes: ModuleType, tmp_path: Path
) -> None:
    with driver(master, build_spec, fakes.tasks_of(build_spec), tmp_path, _PROPERTIES) as started:
        executors: list[psutil.Process] = []

        def is_amid() -> bool:
            assert started.poll() is None, (tmp_path / "driver.log").read_text()[-3000:]
            executor = executor_amid_the_big_file(tmp_path / "temporary")
            executors.extend([executor] if executor is not None else [])
            return bool(executors)

        until(is_amid, "an executor amid the big file")
        executors[0].kill()
        run_outcome = outcome(started, tmp_path)
    assert [task for task in run_outcome["tasks"] if task["status"] == "FAILED"], "the big file's first task"
    assert_each_row_once(run_outcome, master, tmp_path)


def test_a_file_is_built_twice_at_once(
    master: str, build_spec: BuildSpec, fakes: ModuleType, tmp_path: Path
) -> None:
    with driver(
        master, build_spec, fakes.tasks_of(build_spec), tmp_path, _PROPERTIES + _SPECULATION
    ) as started:
        run_outcome = outcome(started, tmp_path)
    assert [task for task in run_outcome["tasks"] if task["speculative"]], "the big file's second task"
    assert_each_row_once(run_outcome, master, tmp_path)


# --- packs -------------------------------------------------------------------------------------------

PACKED, ROWS_OF_EACH = 24, 60_000
"""Small files, and the rows of each: a task takes some seconds."""


@pytest.fixture(params=[False, True], ids=["packs", "cells"])
def packing(request: pytest.FixtureRequest, fakes: ModuleType, tmp_path: Path) -> BuildSpec:
    cells = CellSettings(partition=True) if request.param else None
    packs = PackSettings((tmp_path / "table" / "staging").as_uri(), 300 << 20, cells=cells)
    made: BuildSpec = fakes.make_order(
        tmp_path / "table", packs=packs, format=WITH_PACKS, max_rows_per_segment=10_000_000
    )
    for n in range(PACKED):
        fakes.write_names(tmp_path / "table" / "in" / f"{n:02}.csv", ROWS_OF_EACH, n * ROWS_OF_EACH)
    columns = {"count": {"functionName": "Modulo", "numPartitions": 3}}
    indexing = made.table_config["tableIndexConfig"] | {
        "segmentPartitionConfig": {"columnPartitionMap": columns}
    }
    return replace(made, table_config={**made.table_config, "tableIndexConfig": indexing})


def built_while_an_executor_dies(
    master: str, order: BuildSpec, tasks: Sequence[FileTask], folder: Path, pattern: str
) -> JsonObject:
    """What a build comes to whose first executor with such a file is killed."""
    with driver(master, order, tasks, folder, _PROPERTIES) as started:
        executors: list[psutil.Process] = []

        def is_amid() -> bool:
            assert started.poll() is None, (folder / "driver.log").read_text()[-3000:]
            executor = executor_with(folder / "temporary", pattern, -1)
            executors.extend([executor] if executor is not None else [])
            return bool(executors)

        until(is_amid, f"an executor with {pattern}")
        executors[0].kill()
        run_outcome: JsonObject = outcome(started, folder)
    assert [task for task in run_outcome["tasks"] if task["status"] == "FAILED"]
    return run_outcome


def test_an_executor_dies_in_each_phase_of_packs(
    master: str, packing: BuildSpec, fakes: ModuleType, tmp_path: Path
) -> None:
    """While small files are read, and while packs are built of their rows: each row is in one segment."""
    small = [replace(task, kind=TaskKind.SMALL_FILE) for task in fakes.tasks_of(packing)]
    read = built_while_an_executor_dies(master, packing, small, tmp_path, "pinot-assets-read-*/source")
    assert sorted(result["ordinal"] for result in read["results"]) == list(range(PACKED))
    # A task that died may have left receipts as well: a session accepts one of each file.
    accepted: dict[int, Receipt] = {}
    for path in sorted((tmp_path / "table" / "staging").rglob("batches/*.json")):
        accepted |= {one.ordinal: one for one in BatchReceipt.from_bytes(path.read_bytes()).files}
    assert {one.rows for one in accepted.values()} == {ROWS_OF_EACH}

    tasks = []
    lists = lists_of(packing, [accepted[ordinal] for ordinal in range(PACKED)])
    for ordinal, members in enumerate(lists.values(), start=PACKED):
        data = members_to_parquet(members)
        area_of(packing).put_if_absent(members_key(sha256_hex(data)), data)
        file = SourceFile(members_key(sha256_hex(data)), Fingerprint(len(data), 0))
        tasks.append(FileTask(file, ordinal, TaskKind.PACK))
    built = built_while_an_executor_dies(master, packing, tasks, tmp_path, "pinot-assets-pack-*/lock")
    assert sorted(result["ordinal"] for result in built["results"]) == [task.ordinal for task in tasks]
    outputs = [output for result in built["results"] for output in result["outputs"]]
    assert sum(output["rows"] for output in outputs) == PACKED * ROWS_OF_EACH
    assert len({output["segment"] for output in outputs}) == len(outputs)
    for output in outputs:
        tar = Path(output["tar_uri"].removeprefix("file://")).read_bytes()
        assert hashlib.sha256(tar).hexdigest() == output["tar_sha256"]
