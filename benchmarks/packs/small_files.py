"""What packs are worth: 20,000 files of 20 KB as a table of packs, and queries over the same files with and
without them.

`make bench-pack`. Each run is a whole one, from the listing to the switch, on a local Pinot. CPU seconds are
those of this process and of its Spark; Pinot's are not in them. A file's cost is what its run takes beyond
the run of the same rows in eight files.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from measure import CONSOLE, head, machine, row

from packs.tables import Columns, Table, local_stack
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_context, local_session
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.settings.environment import load_settings

EVENTS: Final = Columns(
    dimensions={"id": "LONG", "city": "STRING", "user": "STRING", "token": "STRING"},
    metrics={"amount": "INT", "score": "DOUBLE"},
)
PACKED: Final[JsonObject] = {"layout": {"pack": True}}
FILES, QUERIED = 20_000, 2_000
FILE_BYTES = 20_000
LARGE_FILES = 8
QUERIES = 60
GOAL_MS, GOAL_RATIO, SPARE = 1.5, 2.0, 8
SQL = "SELECT city, COUNT(*), SUM(amount), MAX(score) FROM {table} WHERE amount > 500 GROUP BY city LIMIT 100"
_CITIES = [f"city-{n:02}" for n in range(40)]


def write(folder: Path, files: int, rows: int, seed: int = 1) -> None:
    """Write csv files with so many rows each."""
    folder.mkdir()
    drawn = random.Random(seed)
    for number in range(files):
        lines = [
            f"{number * rows + n},{drawn.choice(_CITIES)},{drawn.randint(0, 1000)},"
            f"{drawn.random():.6f},user-{drawn.randint(0, 10**6):07},{drawn.getrandbits(96):024x}"
            for n in range(rows)
        ]
        text = "\n".join(["id,city,amount,score,user,token", *lines, ""])
        (folder / f"{number:05}.csv").write_text(text)


def queried(tables: Sequence[str]) -> dict[str, float]:
    """Return the median seconds of a query, by table; the tables take turns."""
    seconds: dict[str, list[float]] = {table: [] for table in tables}
    with HttpPinotClient(load_settings().pinot) as pinot:
        url, *_ = pinot.brokers(tables[0])
        for number in range(QUERIES + 10):
            for table in tables:
                begun = time.perf_counter()
                assert pinot.broker(url).query(SQL.format(table=table)).rows
                if number >= 10:
                    seconds[table].append(time.perf_counter() - begun)
    return {table: statistics.median(values) for table, values in seconds.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--queried", type=int, default=QUERIED, help="files of the tables that are queried")
    options = parser.parse_args()
    machine("pyspark", "pyarrow")
    with local_stack("bench-pack-") as folder:
        _measure(folder, options.files, options.queried)


def _measure(folder: Path, files: int, few: int) -> None:
    rows = FILE_BYTES // 68
    write(folder / "small", files, rows)
    write(folder / "large", LARGE_FILES, files * rows // LARGE_FILES)
    (folder / "few").mkdir()
    for path in sorted((folder / "small").iterdir())[:few]:
        os.link(path, folder / "few" / path.name)
    builder = SparkBuilder(lambda: local_session("bench", 2), lambda: local_context("bench", 2))

    def table(name: str, source: str, layout: JsonObject) -> Table:
        return Table(folder, builder, EVENTS.document(folder, name, folder / source) | layout)

    large = table("large", "large", {})
    large.run()  # starts Spark; the second run below is measured
    for path in (folder / "large").iterdir():
        path.write_bytes(path.read_bytes() + b"0,city-00,0,0.0,user-0,0\n")
    of_large = large.run()
    packed = table("packed", "small", PACKED)
    first = packed.run()
    some = sorted((folder / "small").iterdir())
    some[-1].unlink()  # before the write: the queried files are links to the first ones
    some[-1].write_text(some[0].read_text())
    rewritten = packed.run()
    some[-2].unlink()
    deleted = packed.run()
    alone = table("alone", "few", {}).run()
    together = table("together", "few", PACKED).run()
    medians = queried(["alone", "together"])

    head("run", "CPU s", "wall s", "files read", "segments")
    for what, one in (
        (f"the same rows in {LARGE_FILES} files", of_large),
        (f"{files:,} files in packs", first),
        ("one of them rewritten", rewritten),
        ("one of them deleted", deleted),
        (f"{few:,} files, a segment each", alone),
        (f"{few:,} files in packs", together),
    ):
        row(what, f"{one.cpu:.1f}", f"{one.seconds:.1f}", f"{one.read:,}", f"{len(one.segments):,}")
    cost = 1000 * (first.cpu - of_large.cpu) / files
    changed = len(first.segments - rewritten.segments)
    ratio = medians["alone"] / medians["together"]
    read = deleted.read and FILE_BYTES * deleted.read
    p50 = ", ".join(f"{1000 * seconds:.1f} ms {table}" for table, seconds in medians.items())
    CONSOLE.print(
        f"\nquery p50: {p50}; "
        f"goals: {GOAL_MS:g} ms, 1 pack, 0 bytes, {GOAL_RATIO:g}, at most bytes ÷ target + {SPARE} segments"
    )
    CONSOLE.print(
        f"packs: {len(first.segments):,} segments of {files:,} files, ms a file {cost:.2f}, "
        f"file rewritten: {changed} packs, file deleted: {read} source bytes, "
        f"query p50 ratio (files / packs) {ratio:.1f}"
    )


if __name__ == "__main__":
    main()
