"""What it costs to move rows into segments of one partition and one day: 30 days and 16 partitions from 60
files that are sorted by neither.

`make bench-layout`. Two whole runs over the same files on a local Pinot, each of its own table: a segment a
file, and cells. CPU seconds are those of this process and of its Spark; Pinot's are not in them.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import tarfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from measure import CONSOLE, head, machine, row

from packs.tables import Columns, Run, Table, local_stack
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_context, local_session
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.settings.environment import load_settings

FILES, ROWS = 60, 100_000
DAYS, PARTITIONS = 30, 16
GOAL_RATIO = 1.6
_DAY_MS: Final = 86_400_000
_START_MS: Final = 20_000 * _DAY_MS
_CITIES: Final = [f"city-{n:02}" for n in range(40)]
EVENTS: Final = Columns(
    dimensions={"id": "LONG", "city": "STRING", "user": "STRING", "token": "STRING"},
    metrics={"amount": "INT", "score": "DOUBLE"},
    times={"at": "LONG"},
)
CELLS: Final[JsonObject] = {"layout": {"pack": True, "partition": True, "timeSlice": "DAY"}}


def write(folder: Path, files: int, rows: int) -> None:
    """Write csv files with rows of any day and any user."""
    folder.mkdir()
    for number in range(files):
        drawn = random.Random(number)
        lines = [
            f"{number * rows + n},{drawn.choice(_CITIES)},{drawn.randint(0, 1000)},{drawn.random():.6f},"
            f"user-{drawn.randint(0, 10**6):07},{drawn.getrandbits(96):024x},"
            f"{_START_MS + drawn.randrange(DAYS * _DAY_MS)}"
            for n in range(rows)
        ]
        text = "\n".join(["id,city,amount,score,user,token,at", *lines, ""])
        (folder / f"{number:03}.csv").write_text(text)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rows", type=int, default=ROWS, help="of each file")
    options = parser.parse_args()
    machine("pyspark", "pyarrow")
    with local_stack("bench-layout-") as folder:
        _measure(folder, options.files, options.rows)


def _measure(folder: Path, files: int, rows: int) -> None:
    write(folder / "in", files, rows)
    (folder / "few").mkdir()
    os.link(folder / "in" / "000.csv", folder / "few" / "000.csv")
    builder = SparkBuilder(lambda: local_session("bench", 2), lambda: local_context("bench", 2))

    def table(name: str, source: str, layout: JsonObject) -> Table:
        document = EVENTS.document(folder, name, folder / source) | layout
        config = document["table"]
        config["segmentsConfig"]["timeColumnName"] = "at"
        config["tableIndexConfig"]["segmentPartitionConfig"] = {
            "columnPartitionMap": {"user": {"functionName": "Murmur", "numPartitions": PARTITIONS}}
        }
        config["routing"] = {"segmentPrunerTypes": ["partition", "time"]}
        return Table(folder, builder, document)

    table("warm", "few", {}).run()  # starts Spark
    table("warm_cells", "few", CELLS).run()
    of_files = table("files", "in", {}).run()
    of_cells = table("cells", "in", CELLS).run()
    head("run", "CPU s", "wall s", "segments", "segments queried")
    asked = {}
    for name, one in (("files", of_files), ("cells", of_cells)):
        asked[name] = _asked(name)
        segments = f"{len(one.segments):,}"
        row(name, f"{one.cpu:.1f}", f"{one.seconds:.1f}", segments, f"{asked[name]:,}")
    total, single = len(of_cells.segments), sum(_is_of_one_cell(one) for one in _metadata(folder, of_cells))
    ratio = of_cells.cpu / of_files.cpu
    CONSOLE.print(
        f"\n{files * rows:,} rows in {files:,} files; goals: 100 %, at most T ÷ {DAYS * PARTITIONS} + 1, "
        f"{GOAL_RATIO:g} × a segment a file"
    )
    CONSOLE.print(
        f"layout: single-partition {100 * single // total} %, "
        f"segments queried {asked['cells']:,} of {total:,}, CPU ratio {ratio:.2f}"
    )


def _asked(table: str) -> int:
    """Return how many segments servers look at for one user on one day."""
    first = _START_MS + 7 * _DAY_MS
    sql = (
        f"SELECT COUNT(*) FROM {table} WHERE user = 'user-0000042' "
        f"AND at BETWEEN {first} AND {first + _DAY_MS - 1}"
    )
    with HttpPinotClient(load_settings().pinot) as pinot:
        url, *_ = pinot.brokers(table)
        answer = pinot.broker(url).ask(sql, {}, 60.0)
    assert answer.trouble is None, answer
    return answer.segments


def _metadata(folder: Path, run: Run) -> Iterator[Mapping[str, str]]:
    """Yield what the metadata of each segment say."""
    [staging] = (folder / "staging").glob("cells*")
    for name in run.segments:
        with tarfile.open(staging / "segments" / f"{name}.metadata.tar.gz") as archive:
            for member in archive.getmembers():
                if member.name.endswith("metadata.properties"):
                    content = archive.extractfile(member)
                    assert content is not None
                    yield dict(re.findall(r"^(\S+) = (.*)$", content.read().decode(), re.MULTILINE))


def _is_of_one_cell(said: Mapping[str, str]) -> bool:
    ends = (int(said[f"segment.{end}.time"]) for end in ("start", "end"))
    days = {datetime.fromtimestamp(end / 1000, UTC).date() for end in ends}
    return len(days) == 1 and said["column.user.partitionValues"].isdecimal()


if __name__ == "__main__":
    main()
