"""What a build of a few small files costs, and of a few wide ones: Pinot's standalone job, and ours.

`make bench-small`. The peer is `LaunchDataIngestionJob`, which only creates segments here: one JVM for all
files. Ours builds the same files as a run does, in a new process that starts a Spark of its own: as the first
runs of a user do, and as later ones, whose JVM maps an archive of Spark's classes. All use the same JDK and
take two files at a time. CPU seconds are those of all processes of a side, from start to end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path

from measure import CONSOLE, head, machine, median_ratio, rounds, row, spread
from pinot_builder import HEAP, HERE
from small_build import CORES
from small_tables import SMALL_FILES, SMALL_ROWS, WIDE_FILES, WIDE_ROWS, Case, cases

from pinot_assets.core.this_machine import find_java
from pinot_assets.local.jars import resolve_jars
from pinot_assets.settings.local_stack import default_cache

ROUNDS = 3
STARTS = 10
"""After so many, the product makes the archive of Spark's classes."""
ARCHIVE_S = 300.0
GOALS = {"transforms": 1 / 0.6, "plain": 1 / 0.5, "wide": 1 / 0.4}
_WHOLE_TREE = HERE / "whole_tree.py"
_RUNNER = "org.apache.pinot.plugin.ingestion.batch.standalone.SegmentGenerationJobRunner"
_LAUNCHER = "org.apache.pinot.tools.admin.command.LaunchDataIngestionJobCommand"
_READERS = {
    "avro": "org.apache.pinot.plugin.inputformat.avro.AvroRecordReader",
    "csv": "org.apache.pinot.plugin.inputformat.csv.CSVRecordReader",
}

Facts = list[tuple[str, ...]]
"""Of each segment, sorted: its rows, then each column with its number of different values."""


def our_command(case: Case, out: Path) -> list[str]:
    """A new Python process that builds the case (`small_build`)."""
    values = {"in": str(case.source), "out": str(out), "format": case.input_format, "pack": case.pack}
    job = out / "job.json"
    job.write_text(json.dumps({**values, "schema": case.schema, "tableConfig": case.table_config}))
    return [sys.executable, str(HERE / "small_build.py"), str(job)]


def pinots_command(case: Case, out: Path) -> list[str]:
    """A JVM with Pinot's job for the case, with default JIT and collector."""
    (out / "schema.json").write_text(json.dumps(case.schema))
    (out / "table.json").write_text(json.dumps(case.table_config))
    spec = {
        "executionFrameworkSpec": {"name": "standalone", "segmentGenerationJobRunnerClassName": _RUNNER},
        "jobType": "SegmentCreation",
        "inputDirURI": case.source.as_uri(),
        "includeFileNamePattern": f"glob:**/*.{case.input_format}",
        "outputDirURI": (out / "segments").as_uri(),
        "segmentCreationJobParallelism": CORES,
        "pinotFSSpecs": [{"scheme": "file", "className": "org.apache.pinot.spi.filesystem.LocalPinotFS"}],
        "recordReaderSpec": {"dataFormat": case.input_format, "className": _READERS[case.input_format]},
        "tableSpec": {
            "tableName": "bench",
            "schemaURI": (out / "schema.json").as_uri(),
            "tableConfigURI": (out / "table.json").as_uri(),
        },
    }
    job = out / "job.yaml"
    job.write_text(json.dumps(spec))  # JSON is YAML, too
    return [
        str(find_java().executable),
        f"-Xmx{HEAP}",
        f"-Dlog4j2.configurationFile={package_files('pinot_assets.local') / 'log4j2.xml'}",
        f"-Djava.io.tmpdir={out}",
        "-cp",
        os.pathsep.join(map(str, resolve_jars(HERE / "pinot-job.xml"))),
        _LAUNCHER,
        "-jobSpecFile",
        str(job),
    ]


@dataclass(frozen=True)
class Side:
    """Who builds.

    :ivar cache: the folder with what this user has in the cache.
    """

    command_of: Callable[[Case, Path], list[str]]
    cache: Path


def caches(folder: Path, case: Case) -> tuple[Path, Path]:
    """Return a cache that never gets an archive of Spark's classes, and one that got it."""
    users = default_cache()
    without, later = folder / "first", folder / "later"
    for cache in (without, later):
        cache.mkdir()
        (cache / "jars").symlink_to(users / "jars")
    archives = later / "spark-classes"
    (without / archives.name).touch()  # a file where the folder would be
    for _ in rounds(STARTS, "starts before the archive is made"):
        run(Side(our_command, later), case, folder)
    until = time.monotonic() + ARCHIVE_S
    while not [*archives.glob("*.jsa")]:
        if time.monotonic() > until:
            raise SystemExit(f"there is no archive in {archives} after {STARTS} starts")
        time.sleep(1)
    return without, later


def run(side: Side, case: Case, folder: Path) -> tuple[float, Facts]:
    """Run one side once: the CPU seconds of all its processes, and what it built."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        command = [sys.executable, str(_WHOLE_TREE), *side.command_of(case, Path(name))]
        environment = os.environ | {"PINOT_ASSETS_CACHE": str(side.cache)}
        done = subprocess.run(command, capture_output=True, check=False, env=environment)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)[-300:]}\n{done.stderr.decode()[-2000:]}")
        tars = [*Path(name, "segments").rglob("*.tar.gz")]
        built = sorted(facts(path) for path in tars if not path.name.endswith(".metadata.tar.gz"))
    return float(done.stdout.splitlines()[-1]), built


def facts(tar: Path) -> tuple[str, ...]:
    """What a segment's metadata say: the rows, then each column's number of different values."""
    with tarfile.open(tar) as members:
        [name] = [one for one in members.getnames() if one.endswith("metadata.properties")]
        content = members.extractfile(name)
        assert content is not None
        lines = [line.replace(" ", "") for line in content.read().decode().splitlines()]
    counts = [line for line in lines if line.startswith("column.") and ".cardinality=" in line]
    return (*[line for line in lines if line.startswith("segment.total.docs=")], *sorted(counts))


def bench(case: Case, sides: dict[str, Side], count: int, folder: Path) -> tuple[float, float]:
    """Let the sides take turns, print their CPU seconds, and return how many times ours Pinot needs.

    :returns: the median ratios for our first runs and for our later ones.
    """
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    run(sides["ours"], case, folder)  # stores bytecode, and puts the files into memory
    for _ in rounds(count, case.name):
        built: list[Facts] = []
        for name, side in sides.items():
            cpu, found = run(side, case, folder)
            seconds[name].append(cpu)
            built.append(found)
        assert len(built[0]) == case.files, f"{len(built[0])} segments of {case.files} files"
        assert all(other == built[0] for other in built), "the sides built other segments"
    first, later = (median_ratio(seconds["pinot"], seconds[name]) for name in ("ours", "later"))
    row(
        case.name,
        *(spread(seconds[name]) for name in sides),
        f"{first:.2f}",
        f"{later:.2f}",
        f"{GOALS[case.name]:.2f}",
    )
    return first, later


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--rows", type=int, default=WIDE_ROWS, help="of each wide file")
    parser.add_argument("--only", choices=[*GOALS], help="one of the cases")
    options = parser.parse_args()
    machine("pyspark", "pyarrow", "fastavro")
    small, wide = f"{SMALL_FILES} Avro of {SMALL_ROWS} rows", f"{WIDE_FILES} csv of {options.rows:,} rows"
    CONSOLE.print(f"{small}, {wide}; {CORES} files at a time, -Xmx{HEAP} for Pinot\n")
    ratios: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-small-") as name:
        folder = Path(name)
        sides: dict[str, Side] = {}
        for case in cases(folder, options.rows):
            if options.only not in (None, case.name):
                continue
            case.write()
            if not sides:
                without, later = caches(folder, case)
                ours = {"ours": Side(our_command, without), "later": Side(our_command, later)}
                sides = {**ours, "pinot": Side(pinots_command, default_cache())}
                seconds = "CPU s (min / median / max)"
                head(
                    "case", f"ours, {seconds}", "with the archive", "Pinot", "Pinot / ours", "with it", "goal"
                )
            ratios[case.name] = bench(case, sides, options.rounds, folder)
            shutil.rmtree(case.source)
    told = ", ".join(f"{name} {later:.2f}" for name, (_, later) in ratios.items())
    CONSOLE.print(f"\nwith the archive of Spark's classes, from the eleventh start on: {told}")
    told = ", ".join(f"{name} {first:.2f}" for name, (first, _) in ratios.items())
    CONSOLE.print(f"small runs, CPU ratio (Pinot / ours): {told}")


if __name__ == "__main__":
    main()
