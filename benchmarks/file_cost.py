"""What a small file costs beyond its rows: many files, against the same number of rows in three files.

`make bench-files`. Both are built as a run does it, in a new process that starts a Spark of its own. CPU
seconds are those of all its processes. The third side puts the rows of the small files into packs. Listing,
ledger, push and switch of a run are not measured.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from measure import CONSOLE, head, machine, rounds, row, spread
from small_runs import Side, our_command, run
from small_tables import CSV_KINDS, Case

ROUNDS = 3
FILES, ROWS = 3000, 50
LARGE_FILES = 3
GOAL_MS = 20.0
PACKED_GOAL_MS = 1.5


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rows", type=int, default=ROWS, help="of each file")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    machine("pyspark", "pyarrow")
    with tempfile.TemporaryDirectory(prefix="bench-files-") as name:
        folder = Path(name)
        (folder / "cache").mkdir()
        (folder / "cache" / "spark-classes").touch()  # a file there: no archive is made
        side = Side(our_command, folder / "cache")
        of_large = options.files * options.rows // LARGE_FILES
        small = Case("small", folder / "small", "csv", options.files, options.rows, CSV_KINDS)
        large = Case("large", folder / "large", "csv", LARGE_FILES, of_large, CSV_KINDS)
        small.write()
        large.write()
        cases = [small, replace(small, name="packed", pack=True), large]
        seconds: dict[str, list[float]] = {case.name: [] for case in cases}
        run(side, large, folder)  # stores bytecode
        for _ in rounds(options.rounds, f"{options.files:,} files"):
            for case in cases:
                cpu, built = run(side, case, folder)
                most = max(1, case.files // 100) if case.pack else case.files
                assert len(built) <= most, f"{len(built)} segments of {case.files} files"
                rows = sum(int(facts[0].partition("=")[2]) for facts in built)
                assert rows == case.files * case.rows, f"{rows} rows of {case.files} files"
                seconds[case.name].append(cpu)
        for case in (small, large):
            shutil.rmtree(case.source)
    head("what", "CPU s (min / median / max)")
    for case in cases:
        columns = 1 + len(case.columns)
        what = (
            f"{case.files:,} files of {case.rows:,} rows, {columns} columns{', packed' if case.pack else ''}"
        )
        row(what, spread(seconds[case.name]))
    own, packed = (cost(seconds[name], seconds["large"], options.files) for name in ("small", "packed"))
    CONSOLE.print(
        f"\nfile cost: {own:.1f} ms a file beyond its rows (goal: {GOAL_MS:g}), "
        f"packed {packed:.1f} (goal: {PACKED_GOAL_MS:g})"
    )


def cost(small: Sequence[float], large: Sequence[float], files: int) -> float:
    """Return how many milliseconds of CPU a file costs beyond its rows."""
    pairs = zip(small, large, strict=True)
    return statistics.median(1000 * (one - other) / (files - LARGE_FILES) for one, other in pairs)


if __name__ == "__main__":
    main()
