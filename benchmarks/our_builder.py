"""Ours: read a file, build its segment, write the tar.gz, several times in a process of its own.

Called by the other programs: `our_builder.py JOB`, where JOB is a JSON file; prints what it cost.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from measure import Cost, Meter, answer, in_process_of_its_own, peak_bytes
from pinot_builder import CREATED_MS, NAME
from samples import Sample

from pinot_assets.build.cut import cut
from pinot_assets.build.memory import take_memory_from_system
from pinot_assets.build.read import read_batches
from pinot_assets.build.verdicts import Verdicts
from pinot_assets.build.wanted import Wanted
from pinot_assets.segment import Segment, SegmentSpec, build_segment, write_tar

_ALL_ROWS = 1 << 40


def build(
    files: list[Path], input_format: str, sample: Sample, folder: Path, times: int = 1
) -> tuple[list[Cost], int]:
    """Build the files one after the other, so many times, in a new process.

    :returns: what each time cost, and the most memory that the process ever held.
    """
    job = folder / "job.json"
    values = {"files": [*map(str, files)], "format": input_format, "folder": str(folder), "times": times}
    job.write_text(json.dumps({**values, "schema": sample.schema, "tableConfig": sample.table_config}))
    found = in_process_of_its_own(Path(__file__), str(job))
    return [Cost(**cost) for cost in found["costs"]], found["peak"]


def _segment(job: dict[str, Any], path: Path) -> Segment:
    spec = SegmentSpec.from_pinot(job["schema"], job["tableConfig"])
    tables = read_batches(path, Wanted.of(spec), job["format"], reader={}, verdicts=Verdicts("null"))
    (rows,) = cut(tables, _ALL_ROWS, None)
    return build_segment(
        rows, spec, name=NAME, table_name="bench", creation_time_ms=CREATED_MS, now_ms=CREATED_MS
    )


def main() -> None:
    """Do the job."""
    job = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(job["folder"])
    take_memory_from_system()  # as every task does
    found = []
    for _ in range(job["times"]):
        meter = Meter()
        for path in job["files"]:
            segment = _segment(job, Path(path))
            write_tar(segment, folder / "ours.tar.gz")
        found.append(meter.read())
        del segment
    answer({"costs": [*map(asdict, found)], "peak": peak_bytes()})


if __name__ == "__main__":
    main()
