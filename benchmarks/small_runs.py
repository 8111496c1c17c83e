"""What a build of a few small files costs, and of a few wide ones: Pinot's standalone job, and ours.

`make bench-small`. The peer is `LaunchDataIngestionJob`, which only creates segments here: one JVM for all
files. Ours builds the same files as a run does, in a new process that starts a Spark of its own. Both use the
same JDK and take two files at a time. CPU seconds are those of all processes of a side, from start to end.
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
from collections.abc import Callable
from importlib.resources import files as package_files
from pathlib import Path

from measure import CONSOLE, head, machine, median_ratio, rounds, row, spread
from pinot_builder import HEAP, HERE
from small_build import CORES
from small_tables import SMALL_FILES, SMALL_ROWS, WIDE_FILES, WIDE_ROWS, Case, cases

from pinot_assets.core.this_machine import find_java
from pinot_assets.local.jars import resolve_jars

ROUNDS = 3
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
    values = {"in": str(case.source), "out": str(out), "format": case.input_format}
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


def run(command_of: Callable[[Case, Path], list[str]], case: Case, folder: Path) -> tuple[float, Facts]:
    """Run one side once: the CPU seconds of all its processes, and what it built."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        command = [sys.executable, str(_WHOLE_TREE), *command_of(case, Path(name))]
        done = subprocess.run(command, capture_output=True, check=False)
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


def bench(case: Case, count: int, folder: Path) -> float:
    """Alternate the two sides; print their CPU seconds and return the median ratio."""
    seconds: dict[str, list[float]] = {"ours": [], "pinot": []}
    sides = {"ours": our_command, "pinot": pinots_command}
    run(our_command, case, folder)  # stores bytecode, and puts the files into memory
    for _ in rounds(count, case.name):
        built: list[Facts] = []
        for name, command_of in sides.items():
            cpu, found = run(command_of, case, folder)
            seconds[name].append(cpu)
            built.append(found)
        assert len(built[0]) == case.files, f"{len(built[0])} segments of {case.files} files"
        assert built[0] == built[1], "the two sides built other segments"
    ratio = median_ratio(seconds["pinot"], seconds["ours"])
    row(
        case.name,
        spread(seconds["ours"]),
        spread(seconds["pinot"]),
        f"{ratio:.2f}",
        f"{GOALS[case.name]:.2f}",
    )
    return ratio


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
    head("case", "ours, CPU s (min / median / max)", "Pinot", "Pinot / ours", "goal")
    ratios = {}
    with tempfile.TemporaryDirectory(prefix="bench-small-") as name:
        for case in cases(Path(name), options.rows):
            if options.only in (None, case.name):
                case.write()
                ratios[case.name] = bench(case, options.rounds, Path(name))
                shutil.rmtree(case.source)
    told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    CONSOLE.print(f"\nsmall runs, CPU ratio (Pinot / ours): {told}")


if __name__ == "__main__":
    main()
