"""Ours: read a file, build its segment, write the tar.gz, several times in a process of its own.

Called by the other programs: `our_builder.py JOB`, where JOB is a JSON file; prints what it cost.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from measure import Cost, Meter, answer, in_process_of_its_own, peak_bytes, worked
from pinot_builder import CREATED_MS, NAME
from samples import Sample

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.this_machine import convert_without_pandas, keep_freed_memory, take_memory_from_system
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema, cut
from pinot_assets.ingest.formats.read import read_batches
from pinot_assets.segment import Segment, SegmentSpec, build_segment, write_tar

_ALL_ROWS = 1 << 40


@dataclass(frozen=True)
class Built:
    """What one process did.

    :ivar costs: of every time.
    :ivar whole: of the process from its start, imports included.
    :ivar peak: the most memory that it ever held, in bytes.
    """

    costs: list[Cost]
    whole: Cost
    peak: int


def build(files: list[Path], input_format: str, sample: Sample, folder: Path, times: int = 1) -> Built:
    """Build the files one after the other, so many times, in a new process."""
    job = folder / "job.json"
    values = {"files": [*map(str, files)], "format": input_format, "folder": str(folder), "times": times}
    job.write_text(json.dumps({**values, "schema": sample.schema, "tableConfig": sample.table_config}))
    printed = in_process_of_its_own(Path(__file__), str(job))
    return Built([Cost(**cost) for cost in printed["costs"]], Cost(**printed["whole"]), printed["peak"])


def _segment(job: JsonObject, path: Path) -> Segment:
    spec = SegmentSpec.from_pinot(job["schema"], job["tableConfig"])
    tables = read_batches(
        path, TargetSchema.of(spec), job["format"], reader={}, verdicts=BadRowPolicy("null")
    )
    (rows,) = cut(tables, _ALL_ROWS, None)
    return build_segment(
        rows, spec, name=NAME, table_name="bench", creation_time_ms=CREATED_MS, now_ms=CREATED_MS
    )


def main() -> None:
    """Do the job."""
    job = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(job["folder"])
    convert_without_pandas()  # as Spark's workers and every task do
    take_memory_from_system()
    keep_freed_memory()
    per_build = []
    for _ in range(job["times"]):
        meter = Meter()
        for path in job["files"]:
            segment = _segment(job, Path(path))
            write_tar(segment, folder / "ours.tar.gz")
        per_build.append(meter.read())
        del segment
    process = psutil.Process()
    whole = Cost(worked(process), time.time() - process.create_time())
    answer({"costs": [*map(asdict, per_build)], "whole": asdict(whole), "peak": peak_bytes()})


if __name__ == "__main__":
    main()
