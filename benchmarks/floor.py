"""What the whole writer costs, against what other libraries need for the part that cannot be left out.

`make bench-floor`. The part is: decode the Parquet file, find the sorted distinct values of every column and
each row's position among them, compress the segment's bytes (`floor_peer.py`). The writer does that, too, and
packs the positions, counts, checks and writes all the rest of a segment. Everybody has one thread.

If `PINOT_ORACLE_HOME` names a compiled source of Pinot 1.6, its columnar build from an Arrow file is
measured, too: a whole segment and its tar.gz, in a JVM with default JIT and collector.
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
import pyarrow as pa
import pyarrow.parquet as pq
from floor_peer import LIBRARIES
from measure import CONSOLE, head, machine, median_ratio, rounds, row, spread
from oracle.compiled_source import ARROW_MODULE, HOME, class_path
from pinot_builder import ARROW_OPTIONS, NAME, pinot_builder
from samples import Sample, events

from pinot_assets.core.this_machine import numpy_settings
from pinot_assets.segment.write.archive import GZIP_LEVEL

ROUNDS = 7
ROWS = 1_250_000
GOAL = 0.6
_PEER = Path(__file__).with_name("floor_peer.py")
_ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}


def peer(python: Path, library: str, parquet: Path, segment: Path) -> tuple[float, float]:
    """CPU seconds of a library in a process of its own: encoding, compressing."""
    command = [str(python), str(_PEER), library, str(parquet), str(segment), str(GZIP_LEVEL)]
    environment = os.environ | _ONE_THREAD | numpy_settings(os.environ)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    said = json.loads(done.stdout.splitlines()[-1])
    return said["encode"], said["gzip"]


class ArrowBuild:
    """Pinot 1.6's columnar build of the same rows from an Arrow file.

    The file has one record batch: Pinot loads a batch again for each column, so more of them cost it more.

    :param home: a compiled source.
    :ivar cold: CPU seconds of the first build of each JVM.
    :ivar warm: of the second.
    """

    def __init__(self, home: Path, sample: Sample, folder: Path) -> None:
        self._class_path = class_path(home, folder, ARROW_MODULE, "test")  # which has the segment library
        self._sample, self._folder = sample, folder
        self._rows = folder / "rows.arrow"
        with pa.ipc.new_file(self._rows, sample.rows.schema) as out:
            out.write_table(sample.rows, max_chunksize=ROWS)  # Pinot takes no batch above 256 MB
        self.cold: list[float] = []
        self.warm: list[float] = []

    def measure(self, ours: Path) -> None:
        """Two builds in a new JVM.

        :param ours: the segment that the writer made.
        :raises AssertionError: it has other rows or other cardinalities.
        """
        expected = counts((ours / NAME / "v3" / "metadata.properties").read_bytes())
        assert len(expected) == 1 + self._sample.rows.num_columns, expected
        with pinot_builder(self._class_path, self._folder, ARROW_OPTIONS) as pinot:
            for seconds in (self.cold, self.warm):
                seconds.append(pinot.build(pinot.from_arrow(self._rows), self._sample).cpu)
                built = counts(pinot.built["metadata.properties"])
                assert built == expected, f"Pinot built {built}, the writer {expected}"


def counts(properties: bytes) -> dict[str, int]:
    """Rows of a segment, and the cardinality of each column, by their keys in metadata.properties."""
    lines = (line.partition(" = ") for line in properties.decode().splitlines())
    return {
        key: int(value)
        for key, _, value in lines
        if key == "segment.total.docs" or (key.startswith("column.") and key.endswith(".cardinality"))
    }


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
        arrow = ArrowBuild(Path(home), sample, folder) if (home := os.environ.get(HOME)) else None
        for _ in rounds(options.rounds, f"{options.rows:,} rows"):
            (cost,) = our_builder.build([parquet], "parquet", sample, folder).costs
            ours.append(cost.cpu)
            with tarfile.open(folder / "ours.tar.gz") as tar:
                tar.extractall(folder / "segment", filter="data")
            for library in LIBRARIES:
                parts[library].append(peer(options.peers, library, parquet, folder / "segment"))
                theirs[library].append(sum(parts[library][-1]))
            if arrow:
                arrow.measure(folder / "segment")
    head("what", "CPU s (min / median / max)", "encoding", "compressing", "writer / this")
    row("the whole writer", spread(ours), "", "", "")
    for library, seconds in theirs.items():
        encoding, compressing = (statistics.median(part) for part in zip(*parts[library], strict=True))
        ratio = median_ratio(ours, seconds)
        row(f"{library}, the part", spread(seconds), f"{encoding:.2f}", f"{compressing:.2f}", f"{ratio:.2f}")
    if arrow:
        for what, seconds in (("cold", arrow.cold), ("warm", arrow.warm)):
            ratio = median_ratio(ours, seconds)
            row(f"Pinot's Arrow build, {what}", spread(seconds), "", "", f"{ratio:.2f}")
    best = min(theirs, key=lambda library: statistics.median(theirs[library]))
    CONSOLE.print(f"\nthe best of others is {best} (goal: {GOAL})")
    if arrow:
        cold, warm = (median_ratio(seconds, ours) for seconds in (arrow.cold, arrow.warm))
        CONSOLE.print(f"Pinot's Arrow build / writer: cold {cold:.1f}, warm {warm:.1f}")
    CONSOLE.print(f"writer / best of others: {median_ratio(ours, theirs[best]):.2f}")


if __name__ == "__main__":
    main()
