"""How much memory a worker takes, whatever the number of columns.

`make bench-memory`. csv files of about 500 MB with 13, 79 and 300 columns; each is built by the product's own
`build_file`, with the limits of a table spec that sets none, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow.csv
from measure import CONSOLE, TELL, answer, head, in_process_of_its_own, machine, peak_bytes, row, worked
from samples import Sample, wide

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.task import build_file
from pinot_assets.snapshot.receipt import Receipt, SourceFile
from pinot_assets.source import open_store
from pinot_assets.table_spec.blocks.ingestion import FileIngestion

COLUMNS = (13, 79, 300)
MEGABYTES = 500
GOAL_BYTES = 1_000_000_000
_CELLS = 1_000_000


def _samples(columns: int) -> Iterator[Sample]:
    """Parts of one table, each of about a million cells."""
    count, start = _CELLS // columns, 0
    while True:
        yield wide(columns, count, start)
        start += count


def write(path: Path, columns: int, size: int) -> Sample:
    """Write a csv file of about so many bytes; return one of its parts, for schema and table config."""
    with path.open("wb") as out:
        for sample in _samples(columns):
            options = pyarrow.csv.WriteOptions(include_header=out.tell() == 0, quoting_style="needed")
            pyarrow.csv.write_csv(sample.rows, out, options)
            if out.tell() >= size:
                break
    return sample


def build(folder: Path, job: Path) -> None:
    """Build the folder's one file; print what it took."""
    values = json.loads(job.read_text())
    root = job.parent.as_uri()
    ingestion = FileIngestion.model_validate(
        {"inputDirURI": folder.as_uri(), "inputFormat": "csv", "output.segment.dir.uri": f"{root}/staging"}
    )
    spec = BuildSpec(
        table="bench", session="cp1-000000", attempt=1, creation_time_ms=1_700_000_000_000,
        schema=values["schema"], table_config=values["tableConfig"], input_format="csv", reader={},
        source_uri=folder.as_uri(), source_props={}, staging_uri=f"{root}/staging/session",
        segments_uri=f"{root}/staging/segments", staging_props={},
        max_rows_per_segment=ingestion.max_rows_per_segment, write_for=ingestion.known_target,
        policy=UNLIMITED, desired_segment_bytes=ingestion.segment_bytes,
    )  # fmt: skip
    (info,) = open_store(spec.source_uri, {}, UNLIMITED).list()
    built = build_file(spec, FileTask(SourceFile(info.uri, info.fingerprint), 0))
    if not isinstance(built, Receipt):
        raise SystemExit(built.reason)
    answer(
        {
            "peak": peak_bytes(),
            "segments": len(built.outputs),
            "rows": built.rows,
            "cpu": worked(psutil.Process()),
        }
    )


def main() -> None:
    """Measure every number of columns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=COLUMNS)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES)
    parser.add_argument("--build", type=Path, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.build:
        build(*arguments.build)
        return
    machine("pyarrow", "numpy")
    head("columns", "csv MB", "rows", "segments", "CPU s", "peak MB")
    peaks: dict[int, int] = {}
    for columns in arguments.columns:
        TELL.print(f"{time.strftime('%H:%M:%S')} {columns} columns")
        with tempfile.TemporaryDirectory(prefix="bench-memory-") as scratch:
            folder, job = Path(scratch, "in"), Path(scratch, "job.json")
            folder.mkdir()
            sample = write(folder / "rows.csv", columns, arguments.megabytes * 1_000_000)
            job.write_text(json.dumps({"schema": sample.schema, "tableConfig": sample.table_config}))
            megabytes = (folder / "rows.csv").stat().st_size / 1e6
            told = in_process_of_its_own(Path(__file__), "--build", str(folder), str(job))
        peaks[columns] = told["peak"]
        cells = (f"{told['rows']:,}", told["segments"], f"{told['cpu']:.1f}", f"{told['peak'] / 1e6:.0f}")
        row(columns, f"{megabytes:.0f}", *cells)
    texts = [f"{columns} columns {peak / 1e6:.0f} MB" for columns, peak in peaks.items()]
    CONSOLE.print(f"\nworker memory: {', '.join(texts)}")
    sys.exit(1 if max(peaks.values()) > GOAL_BYTES else 0)


if __name__ == "__main__":
    main()
