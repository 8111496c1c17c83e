"""What a small file costs beyond its rows: many files, against the same number of rows in three files.

`make bench-files`. Both are built as a run does it, in a new process that starts a Spark of its own. CPU
seconds are those of all its processes. Listing, ledger, push and switch of a run are not measured.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

from measure import CONSOLE, head, machine, rounds, row, spread
from small_runs import Side, our_command, run
from small_tables import CSV_KINDS, Case

ROUNDS = 3
FILES, ROWS = 3000, 50
LARGE_FILES = 3
GOAL_MS = 20.0


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
        cases = [
            Case("small", folder / "small", "csv", options.files, options.rows, CSV_KINDS),
            Case("large", folder / "large", "csv", LARGE_FILES, of_large, CSV_KINDS),
        ]
        seconds: dict[str, list[float]] = {case.name: [] for case in cases}
        for case in cases:
            case.write()
        run(side, cases[1], folder)  # stores bytecode
        for _ in rounds(options.rounds, f"{options.files:,} files"):
            for case in cases:
                cpu, built = run(side, case, folder)
                assert len(built) == case.files, f"{len(built)} segments of {case.files} files"
                seconds[case.name].append(cpu)
        for case in cases:
            shutil.rmtree(case.source)
    head("what", "CPU s (min / median / max)")
    for case in cases:
        columns = 1 + len(case.columns)
        row(f"{case.files:,} files of {case.rows:,} rows, {columns} columns", spread(seconds[case.name]))
    pairs = zip(seconds["small"], seconds["large"], strict=True)
    cost = statistics.median(1000 * (small - large) / (options.files - LARGE_FILES) for small, large in pairs)
    CONSOLE.print(f"\nfile cost: {cost:.1f} ms a file beyond its rows (goal: {GOAL_MS:g})")


if __name__ == "__main__":
    main()
