"""What it costs to know what changed among a million files, over listing them.

`make bench-plan`. A process lists a bucket (pages of ListObjectsV2 from 127.0.0.1) with the product's client
and does nothing else; another one lists it as a trigger does, reads the ledger, and compares the two.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from measure import (
    CONSOLE,
    Cost,
    Meter,
    answer,
    costs,
    head,
    in_process_of_its_own,
    machine,
    median_ratio,
    peak_bytes,
    row,
    spread,
)
from object_pages import BUCKET, PAGE, PREFIX, etag, key, modified, serving, size

from pinot_assets.session.receipt import Output
from pinot_assets.snapshot.manifest import PublishedFile, PublishedFiles, files_to_parquet, versions_of
from pinot_assets.source import open_store, take_inventory
from pinot_assets.source.diff import differing
from pinot_assets.source.fingerprint import Fingerprint
from pinot_assets.source.listed_files import columns_of
from pinot_assets.source.s3_objects import S3ObjectStore

ROUNDS = 3
OBJECTS = 1_000_000
LARGE_PIECE = 50_000
CHANGED = 100
GOAL_GB = 1.5


def bare(url: str, count: int) -> None:
    """The listing alone: pages as the client gives them, counted."""
    store = _store(url)
    listed = sum(len(page) for page in obstore.list(store._calls, PREFIX, chunk_size=PAGE))
    assert listed == count


def planned(url: str, count: int, ledger: Path) -> None:
    """What a trigger knows before it plans: what is new, rewritten, gone."""
    inventory = take_inventory(_store(url), include="glob:**/*.parquet")
    published = PublishedFiles(ledger.read_bytes())
    listed, others = differing(columns_of(inventory.files), versions_of(published))
    assert (len(inventory.files), len(published)) == (count, count)
    # Some were written anew, the last ones have been deleted and as many are new.
    assert (listed.num_rows, others.num_rows) == (2 * CHANGED, 2 * CHANGED)


def write_ledger(path: Path, count: int) -> None:
    """A ledger of so many files, all but a few as they are listed; in pieces, to hold little of it."""
    numbers = [*range(count - CHANGED), *range(count, count + CHANGED)]
    writer = None
    for start in range(0, count, LARGE_PIECE):
        data = files_to_parquet(_published(numbers[start : start + LARGE_PIECE]))
        table = pq.read_table(pa.BufferReader(data))
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _published(numbers: list[int]) -> Iterator[PublishedFile]:
    for n in numbers:
        name = f"bench__cp7-0a1b2c_1_{n}_0"
        tar = f"s3://staging/bench/segments/{name}"
        sha256 = etag(n) + etag(-n)
        output = Output(name, n * 7919, 1000, f"{tar}.tar.gz", size(n), sha256, f"{tar}.metadata.tar.gz")
        version = Fingerprint(size(n), modified(n) * 1_000_000, etag(n if n >= CHANGED else n + 1))
        yield PublishedFile(
            f"s3://{BUCKET}/{key(n)}", version, sha256, 1000, 0, "cp7-0a1b2c", (output,), version.token, 1.5
        )


def _store(url: str) -> S3ObjectStore:
    store = open_store(f"s3://{BUCKET}/{PREFIX}", {"endpoint": url, "region": "us-east-1"})
    assert isinstance(store, S3ObjectStore)
    return store


def work(name: str, job: dict[str, Any]) -> None:
    """Be one of the two processes."""
    meter = Meter()
    if name == "bare":
        bare(job["url"], job["count"])
    else:
        planned(job["url"], job["count"], Path(job["ledger"]))
    answer({"cost": asdict(meter.read()), "peak": peak_bytes()})


def main() -> None:
    """Alternate the two; or be one of them."""
    if sys.argv[1:2] in (["bare"], ["planned"]):
        work(sys.argv[1], json.loads(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=OBJECTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    machine("obstore", "pyarrow")
    # Keys that are none: nothing here looks at them.
    os.environ |= {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}
    found: dict[str, list[Cost]] = {"bare": [], "planned": []}
    peaks: dict[str, list[float]] = {"bare": [], "planned": []}
    with tempfile.TemporaryDirectory(prefix="bench-plan-") as scratch, serving(arguments.objects) as url:
        ledger = Path(scratch, "ledger.parquet")
        write_ledger(ledger, arguments.objects)
        job = json.dumps({"url": url, "count": arguments.objects, "ledger": str(ledger)})
        for _ in range(arguments.rounds):
            for name in found:
                one = in_process_of_its_own(Path(__file__), name, job)
                found[name].append(Cost(**one["cost"]))
                peaks[name].append(one["peak"] / 1e9)
        megabytes = ledger.stat().st_size / 1e6
    CONSOLE.print(f"{arguments.objects:,} objects, a ledger of as many rows ({megabytes:.0f} MB)\n")
    head("what", "CPU s (min / median / max)", "wall s", "peak GB")
    costs("the listing alone, with the same client", found["bare"], spread(peaks["bare"]))
    costs("listed, ledger read, compared", found["planned"], spread(peaks["planned"]))
    row("memory goal", "", "", GOAL_GB)
    cpu = {name: [c.cpu for c in costs_of] for name, costs_of in found.items()}
    CONSOLE.print(f"\nplan overhead: {median_ratio(cpu['planned'], cpu['bare']):.2f}")


if __name__ == "__main__":
    main()
