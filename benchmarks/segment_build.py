"""What one segment costs: Pinot's own builder against ours.

`make bench-build`. Both make the same bytes of the same rows, which is checked, and both end with a tar.gz.
"""

from __future__ import annotations

import argparse
import statistics
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import our_builder
import pyarrow.csv
import pyarrow.parquet as pq
from isal import igzip
from measure import CONSOLE, Cost, costs, head, machine, median_ratio, rounds, row, spread
from pinot_builder import HEAP, NAME, PinotBuilder, compiled, pinot_builder, rows_class_path
from samples import Sample, events, mixed

ROUNDS = 2  # Pinot works for two minutes on one
ROWS = 1_250_000
MIXED_ROWS = 250_000
GOAL_PEAK = 1.0


@dataclass
class Measured:
    """One table: what each round cost, first build of a process (cold) and second one (warm)."""

    ours: tuple[list[Cost], list[Cost]] = field(default_factory=lambda: ([], []))
    pinot: tuple[list[Cost], list[Cost]] = field(default_factory=lambda: ([], []))
    pinot_reading: list[Cost] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)
    pinot_peaks: list[float] = field(default_factory=list)

    @property
    def cold(self) -> float:
        """How many times less CPU a first build takes."""
        return median_ratio([c.cpu for c in self.pinot[0]], [c.cpu for c in self.ours[0]])

    @property
    def warm(self) -> float:
        """How many times less CPU a second build takes."""
        return median_ratio([c.cpu for c in self.pinot[1]], [c.cpu for c in self.ours[1]])

    @property
    def reading(self) -> float:
        """How many times less CPU a warm build takes where Pinot reads the Parquet file, too."""
        return median_ratio([c.cpu for c in self.pinot_reading], [c.cpu for c in self.ours[1]])


class Bench:
    """One table, built by both."""

    def __init__(self, sample: Sample, jar: Path, folder: Path) -> None:
        self.sample = sample
        self.jar = jar
        self.folder = folder
        folder.mkdir()
        self.parquet = folder / "rows.parquet"
        pq.write_table(sample.rows, self.parquet)

    def measure(self, count: int) -> Measured:
        """Alternate; every round has processes of its own.

        :raises AssertionError: the two segments differ.
        """
        measured = Measured()
        for _ in rounds(count, f"{self.sample.rows.num_rows:,} rows"):
            ours = our_builder.build([self.parquet], "parquet", self.sample, self.folder, 2)
            (cold, warm), peak = ours.costs, ours.peak
            measured.ours[0].append(cold)
            measured.ours[1].append(warm)
            measured.peaks.append(peak / 1e9)
            with tarfile.open(self.folder / "ours.tar.gz") as tar:
                tar.extractall(self.folder / "segment", filter="data")
            with pinot_builder(rows_class_path(self.jar), self.folder) as pinot:
                self._peer(pinot, measured)
        return measured

    def _peer(self, pinot: PinotBuilder, measured: Measured) -> None:
        segment = self.folder / "segment" / NAME
        for costs_of in measured.pinot:
            costs_of.append(pinot.build(pinot.from_memory(segment, self.sample), self.sample))
            for name, content in pinot.built.items():
                assert content == (segment / "v3" / name).read_bytes(), f"{name} differs"
        if self.sample.is_flat:
            measured.pinot_reading.append(pinot.build(pinot.from_parquet(self.parquet), self.sample))
        measured.pinot_peaks.append(pinot.peak_bytes / 1e9)

    def text_files(self) -> list[tuple[str, int, Cost]]:
        """Format, bytes and cost of the same rows as csv.gz and json.gz, ours alone."""
        rows, built = self.sample.rows, []
        with igzip.open(self.folder / "rows.csv.gz", "wb") as out:  # type: ignore[no-untyped-call]
            pyarrow.csv.write_csv(rows, out)
        with igzip.open(self.folder / "rows.json.gz", "wb") as out:  # type: ignore[no-untyped-call]
            for batch in rows.to_batches(1 << 16):
                out.write(_json_lines(batch))
        for kind in ("csv", "json"):
            path = self.folder / f"rows.{kind}.gz"
            (cost,) = our_builder.build([path], kind, self.sample, self.folder).costs
            built.append((kind, path.stat().st_size, cost))
        return built


def _json_lines(batch: pyarrow.RecordBatch) -> bytes:
    import json

    return "".join(json.dumps(r, default=lambda t: t.isoformat()) + "\n" for r in batch.to_pylist()).encode()


def show(what: str, bench: Bench, measured: Measured) -> None:
    """The rows of one table."""
    count = bench.sample.rows.num_rows
    sizes = (
        bench.parquet,
        bench.folder / "ours.tar.gz",
        bench.folder / "segment" / NAME / "v3" / "columns.psf",
    )
    parquet, tar, segment = (path.stat().st_size / 1e6 for path in sizes)
    CONSOLE.print(
        f"\n**{what}**: {count:,} rows, {bench.sample.rows.num_columns} columns; "
        f"{bench.sample.rows.nbytes / 1e6:.0f} MB in Arrow, {parquet:.0f} MB Parquet, "
        f"{segment:.0f} MB segment, {tar:.0f} MB tar.gz\n"
    )
    head("what", "CPU s (min / median / max)", "wall s", "rows a CPU second", "peak GB")
    for name, parts, peaks in (
        ("ours, Parquet to tar.gz", measured.ours, measured.peaks),
        ("Pinot, rows from memory to tar.gz", measured.pinot, measured.pinot_peaks),
    ):
        costs(f"{name}, cold", parts[0], _rate(count, parts[0]), "")
        costs(f"{name}, warm", parts[1], _rate(count, parts[1]), spread(peaks))
    if measured.pinot_reading:
        costs(
            "Pinot, Parquet to tar.gz, warm", measured.pinot_reading, _rate(count, measured.pinot_reading), ""
        )
        row("ratio with the same reading, warm", f"{measured.reading:.1f}", "", "", "")
    row("ratio, Pinot favoured, warm", f"{measured.warm:.1f}", "", "", "")
    row("ratio, Pinot favoured, cold", f"{measured.cold:.1f}", "", "", "")


def _rate(count: int, measured: list[Cost]) -> str:
    return f"{count / statistics.median(c.cpu for c in measured):,.0f}"


def main() -> None:
    """Measure both tables and the text formats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--mixed-rows", type=int, default=MIXED_ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    machine("pyarrow", "numpy", "isal")
    with tempfile.TemporaryDirectory(prefix="bench-build-") as scratch:
        folder = Path(scratch)
        jar = compiled(folder)
        with pinot_builder(rows_class_path(jar), folder) as pinot:
            CONSOLE.print(f"Pinot 1.5.1 on Java {pinot.java}, -Xmx{HEAP}, default JIT and collector")
        plain = Bench(events(arguments.rows), jar, folder / "events")
        measured = plain.measure(arguments.rounds)
        show("13 columns with dictionary", plain, measured)
        for kind, size, cost in plain.text_files():
            costs(
                f"ours, {kind}.gz ({size / 1e6:.0f} MB) to tar.gz, cold",
                [cost],
                _rate(arguments.rows, [cost]),
                "",
            )
        other = Bench(mixed(arguments.mixed_rows), jar, folder / "mixed")
        show("nulls, multi-values, columns without dictionary", other, other.measure(arguments.rounds))
    CONSOLE.print(f"\npeak memory of a worker: {max(measured.peaks):.2f} GB (goal: {GOAL_PEAK:.1f})")
    CONSOLE.print(f"build CPU ratio: {measured.warm:.1f} (cold {measured.cold:.1f})")


if __name__ == "__main__":
    main()
