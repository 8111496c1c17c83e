"""What the whole writer costs, against what other libraries need for the part that cannot be left out.

`make bench-floor`. The part is: decode the Parquet file, find the sorted distinct values of every column and
each row's position among them, compress the segment's bytes (`floor_peer.py`). The writer does that, too, and
packs the positions, counts, checks and writes all the rest of a segment. Everybody has one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tarfile
import tempfile
from pathlib import Path

import our_builder
import pyarrow.parquet as pq
from floor_peer import LIBRARIES
from measure import CONSOLE, head, machine, median_ratio, rounds, row, spread
from samples import events

from pinot_assets.segment.write.archive import GZIP_LEVEL

ROUNDS = 7
ROWS = 1_250_000
GOAL = 0.6
_PEER = Path(__file__).with_name("floor_peer.py")
_ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}


def peer(python: Path, library: str, parquet: Path, segment: Path) -> tuple[float, float]:
    """CPU seconds of a library in a process of its own: encoding, compressing."""
    command = [str(python), str(_PEER), library, str(parquet), str(segment), str(GZIP_LEVEL)]
    environment = os.environ | _ONE_THREAD
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    said = json.loads(done.stdout.splitlines()[-1])
    return said["encode"], said["gzip"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", type=Path, help="a Python with polars, duckdb, pyarrow and isal")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    machine("pyarrow", "numpy", "isal")
    ours: list[float] = []
    theirs: dict[str, list[float]] = {library: [] for library in LIBRARIES}
    parts: dict[str, list[tuple[float, float]]] = {library: [] for library in LIBRARIES}
    with tempfile.TemporaryDirectory(prefix="bench-floor-") as scratch:
        folder, sample = Path(scratch), events(options.rows)
        pq.write_table(sample.rows, parquet := folder / "rows.parquet")
        for _ in rounds(options.rounds, f"{options.rows:,} rows"):
            (cost,) = our_builder.build([parquet], "parquet", sample, folder).costs
            ours.append(cost.cpu)
            with tarfile.open(folder / "ours.tar.gz") as tar:
                tar.extractall(folder / "segment", filter="data")
            for library in LIBRARIES:
                parts[library].append(peer(options.peers, library, parquet, folder / "segment"))
                theirs[library].append(sum(parts[library][-1]))
    head("what", "CPU s (min / median / max)", "encoding", "compressing", "writer / this")
    row("the whole writer", spread(ours), "", "", "")
    for library, seconds in theirs.items():
        encoding, compressing = (statistics.median(part) for part in zip(*parts[library], strict=True))
        ratio = median_ratio(ours, seconds)
        row(f"{library}, the part", spread(seconds), f"{encoding:.2f}", f"{compressing:.2f}", f"{ratio:.2f}")
    best = min(theirs, key=lambda library: statistics.median(theirs[library]))
    CONSOLE.print(f"\nthe best of others is {best} (goal: {GOAL})")
    CONSOLE.print(f"writer / best of others: {median_ratio(ours, theirs[best]):.2f}")


if __name__ == "__main__":
    main()
