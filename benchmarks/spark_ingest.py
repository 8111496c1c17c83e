"""What a Spark job costs that turns files into segments: of the shape of Pinot's, and ours.

`make bench-spark`. The same files, the same Spark (`local[2]`), each job in an application of its own; a task
a file, from the copy of the file to the tar.gz in the target folder.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib.resources import files as package_files
from pathlib import Path

import our_builder
import psutil
import pyarrow.parquet as pq
from measure import (
    CONSOLE,
    Cost,
    Meter,
    answer,
    costs,
    head,
    in_process_of_its_own,
    machine,
    median_ratio,
    rounds,
    worked,
)
from pinot_builder import CREATED_MS, HEAP, compiled, pinot_jars
from pyspark import SparkConf, SparkContext
from samples import Sample, events

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_context, local_session
from pinot_assets.snapshot.receipt import FileResult, Receipt, SourceFile
from pinot_assets.source import open_store

ROUNDS = 2  # Pinot's job works for five minutes on ten million rows
CORES = 2
FILES = 8
ROWS = 10_000_000


def ours(job: JsonObject) -> int:
    """Build all files with the product's own builder; how many tars there are then."""
    root = Path(job["out"]).as_uri()
    order = BuildSpec(
        table="bench", session="cp1-000000", attempt=1, creation_time_ms=CREATED_MS, schema=job["schema"],
        table_config=job["tableConfig"], input_format="parquet", reader={},
        source_uri=Path(job["in"]).as_uri(),
        source_props={}, staging_uri=f"{root}/session", segments_uri=f"{root}/segments", staging_props={},
        max_rows_per_segment=1 << 40, write_for="1.5.1", policy=UNLIMITED,
    )  # fmt: skip
    listed = open_store(order.source_uri, {}, UNLIMITED).list()
    tasks = [FileTask(SourceFile(info.uri, info.fingerprint), n) for n, info in enumerate(listed)]
    done: list[FileResult] = []
    spark = SparkBuilder(lambda: local_session("bench", CORES), lambda: local_context("bench", CORES))
    spark.build(order, tasks, done.append)
    assert all(isinstance(one, Receipt) for one in done), done
    return len(done)


def pinots(job: JsonObject) -> int:
    """Build all files with Pinot's builder; how many tars there are then."""
    context = pinots_context(job)
    files = sorted(Path(job["in"]).iterdir())
    jvm = context._jvm
    assert jvm is not None
    java_files = jvm.java.util.ArrayList()
    for path in files:
        java_files.add(str(path))
    texts = json.dumps(job["schema"]), json.dumps(job["tableConfig"])
    jvm.PinotJob.run(context._jsc, java_files, *texts, job["out"])
    return len([*Path(job["out"]).glob("*.tar.gz")])


def pinots_context(job: JsonObject) -> SparkContext:
    """A Spark of this process with Pinot's jars and the JVM's default flags; no SQL, as in Pinot's runner."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    quiet = Path(str(package_files("pinot_assets.local") / "log4j2.xml")).as_uri()
    settings = {
        "spark.app.name": "peer",
        "spark.master": f"local[{CORES}]",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": HEAP,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.jars": ",".join(map(str, [job["jar"], *pinot_jars()])),
        "spark.local.dir": job["out"],
    }
    return SparkContext.getOrCreate(SparkConf().setAll([*settings.items()]))


def application(name: str, job: JsonObject) -> None:
    """One Spark application: what it cost in all, and what it cost after its Spark had started."""
    begun = psutil.Process().create_time()
    if name == "ours":
        local_context("bench", CORES)
    else:
        pinots_context(job)
    meter = Meter()
    count = ours(job) if name == "ours" else pinots(job)
    assert count == job["files"], f"{count} segments of {job['files']} files"
    since = meter.read()
    whole = Cost(worked(psutil.Process()), time.time() - begun)
    answer({"whole": asdict(whole), "job": asdict(since)})


def run(name: str, folder: Path, sample: Sample, files: int) -> tuple[Cost, Cost]:
    """Start one application; its whole cost and its job's."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        job = {"in": str(folder / "in"), "out": out, "jar": str(folder / "peer.jar"), "files": files}
        path = folder / "job.json"
        path.write_text(json.dumps({**job, "schema": sample.schema, "tableConfig": sample.table_config}))
        printed = in_process_of_its_own(Path(__file__), name, str(path))
    return Cost(**printed["whole"]), Cost(**printed["job"])


def bare_writer(files: list[Path], sample: Sample, folder: Path) -> Cost:
    """The files read, built and written by as many processes as Spark has workers, and nothing else."""

    def some(number: int) -> Cost:
        own = folder / f"bare-{number}"
        own.mkdir(exist_ok=True)
        return our_builder.build(files[number::CORES], "parquet", sample, own).whole

    with ThreadPoolExecutor(CORES) as pool:
        costs_of_all = [*pool.map(some, range(CORES))]
    return Cost(sum(cost.cpu for cost in costs_of_all), max(cost.wall for cost in costs_of_all))


def bench(rows: int, count: int, folder: Path) -> None:
    """Alternate the two, with the bare writer beside them."""
    (folder / "in").mkdir()
    for number in range(FILES):
        sample = events(rows // FILES, seed=number)
        pq.write_table(sample.rows, folder / "in" / f"part-{number}.parquet")
    compiled(folder)
    files = sorted((folder / "in").iterdir())
    whole: dict[str, list[Cost]] = {"ours": [], "pinot": []}
    jobs: list[Cost] = []
    bare: list[Cost] = []
    for _ in rounds(count, f"{rows:,} rows"):
        bare.append(bare_writer(files, sample, folder))
        for name, costs_of in whole.items():
            all_of_it, job = run(name, folder, sample, FILES)
            costs_of.append(all_of_it)
            if name == "ours":
                jobs.append(job)
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    CONSOLE.print(
        f"{FILES} files, {rows:,} rows, {megabytes:.0f} MB Parquet; local[{CORES}], -Xmx{HEAP} for Pinot\n"
    )
    head("what", "CPU s (min / median / max)", "wall s")
    costs("ours, whole application", whole["ours"])
    costs("ours, its job alone", jobs)
    costs(f"ours, the bare writer in {CORES} processes", bare)
    costs("Pinot's builder, whole application", whole["pinot"])
    cpu = {name: [c.cpu for c in costs_of] for name, costs_of in whole.items()}
    over = statistics.median(j.cpu / b.cpu for j, b in zip(jobs, bare, strict=True))
    CONSOLE.print(f"\noverhead of our job over the bare writer: {over:.2f} (goal: 1.25)")
    CONSOLE.print(f"spark CPU ratio: {median_ratio(cpu['pinot'], cpu['ours']):.1f}")


def main() -> None:
    """Measure; or be one of the two applications."""
    if sys.argv[1:2] in (["ours"], ["pinot"]):
        application(sys.argv[1], json.loads(Path(sys.argv[2]).read_text()))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    machine("pyspark", "pyarrow", "numpy", "isal")
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as scratch:
        bench(arguments.rows, arguments.rounds, Path(scratch))


if __name__ == "__main__":
    main()
