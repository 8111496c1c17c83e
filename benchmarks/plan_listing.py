"""What it costs to know what changed among a million files, over listing them.

`make bench-plan`. A process lists a bucket (pages of ListObjectsV2 from 127.0.0.1) with the product's client
and does nothing else; another one reads the ledger, lists as a trigger does, and compares the two.
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
    rounds,
    row,
    spread,
)
from object_pages import BUCKET, PREFIX, etag, key, modified, serving, size

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.this_machine import take_memory_from_system
from pinot_assets.session.detect.listing import changes_of
from pinot_assets.snapshot.manifest import Snapshot, sha256_hex
from pinot_assets.snapshot.published_files import PublishedFile, PublishedFiles, files_to_parquet
from pinot_assets.snapshot.receipt import Fingerprint, Output
from pinot_assets.source import open_store, take_inventory
from pinot_assets.source.bucket_store import BucketObjectStore

ROUNDS = 3
OBJECTS = 1_000_000
LARGE_PIECE = 50_000
CHUNK = 10_000
CHANGED = 100  # of each kind, all over the ledger
GOAL_GB = 1.5


def bare(store: BucketObjectStore, count: int) -> None:
    """The listing alone: in its cheapest form, as many objects at a time as the product takes."""
    pages = obstore.list(store._calls, PREFIX, chunk_size=CHUNK, return_arrow=True)
    assert sum(page.num_rows for page in pages) == count


def planned(store: BucketObjectStore, count: int, ledger: Path) -> None:
    """What a trigger knows before it plans: what is new, rewritten, gone."""
    data = ledger.read_bytes()
    assert sha256_hex(data) == ledger.stem
    snapshot = Snapshot(1, "t_OFFLINE", "cp1", "SYNC", "", None, "", "", 0, PublishedFiles(data))
    inventory = take_inventory(store, include="glob:**/*.parquet")
    changes = changes_of(store, inventory, snapshot)
    assert (len(inventory.files), len(snapshot.files)) == (count, count)
    assert [*map(len, (changes.new, changes.rewritten, changes.deleted))] == [CHANGED] * 3


def write_ledger(folder: Path, count: int) -> Path:
    """A ledger of so many files, all but a few as they are listed; in pieces, to hold little of it."""
    path = folder / "ledger"
    writer = None
    for start in range(0, count, LARGE_PIECE):
        data = files_to_parquet(_published(range(start, min(start + LARGE_PIECE, count)), count // CHANGED))
        table = pq.read_table(pa.BufferReader(data))
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return path.rename(folder / f"{sha256_hex(path.read_bytes())}.parquet")


def _published(numbers: range, step: int) -> Iterator[PublishedFile]:
    for n in numbers:
        if n % step == step // 2:
            continue  # new
        yield _file(n, key(n), size(n) - 1 if n % step == 0 else size(n))
        if n % step == step - 1:
            yield _file(n, key(n).replace("c000", "c001"), size(n))  # deleted since


def _file(n: int, name: str, bytes_: int) -> PublishedFile:
    segment = f"bench__cp7-0a1b2c_1_{n}_0"
    tar = f"s3://staging/bench/segments/{segment}"
    sha256 = etag(n) + etag(-n)
    output = Output(segment, n * 7919, 1000, f"{tar}.tar.gz", size(n), sha256, f"{tar}.metadata.tar.gz")
    version = Fingerprint(bytes_, modified(n) * 1_000_000, etag(n))
    return PublishedFile(
        f"s3://{BUCKET}/{name}", version, sha256, 1000, 0, "cp7-0a1b2c", (output,), version.token, 1.5
    )


def open_bucket(url: str) -> BucketObjectStore:
    """The bucket of `object_pages.serving`."""
    store = open_store(f"s3://{BUCKET}/{PREFIX}", {"endpoint": url, "region": "us-east-1"}, UNLIMITED)
    assert isinstance(store, BucketObjectStore)
    return store


def work(name: str, job: JsonObject) -> None:
    """Be one of the two processes; what it imports and its client are there before it is measured."""
    store = open_bucket(job["url"])
    assert store._calls is not None
    take_memory_from_system()  # as `connect.open_source` does
    pa.scalar(0)  # the first one imports pandas where there is one
    meter = Meter()
    if name == "bare":
        bare(store, job["count"])
    else:
        planned(store, job["count"], Path(job["ledger"]))
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
    measured: dict[str, list[Cost]] = {"bare": [], "planned": []}
    peaks: dict[str, list[float]] = {"bare": [], "planned": []}
    with tempfile.TemporaryDirectory(prefix="bench-plan-") as scratch, serving(arguments.objects) as url:
        ledger = write_ledger(Path(scratch), arguments.objects)
        job = json.dumps({"url": url, "count": arguments.objects, "ledger": str(ledger)})
        for _ in rounds(arguments.rounds, f"{arguments.objects:,} objects"):
            for name in measured:
                one = in_process_of_its_own(Path(__file__), name, job)
                measured[name].append(Cost(**one["cost"]))
                peaks[name].append(one["peak"] / 1e9)
        megabytes = ledger.stat().st_size / 1e6
    CONSOLE.print(f"{arguments.objects:,} objects, a ledger of as many rows ({megabytes:.0f} MB)\n")
    head("what", "CPU s (min / median / max)", "wall s", "peak GB")
    costs("the listing alone, with the same client", measured["bare"], spread(peaks["bare"]))
    costs("listed, ledger read, compared", measured["planned"], spread(peaks["planned"]))
    row("memory goal", "", "", GOAL_GB)
    cpu = {name: [c.cpu for c in costs_of] for name, costs_of in measured.items()}
    CONSOLE.print(f"\nplan overhead: {median_ratio(cpu['planned'], cpu['bare']):.2f}")


if __name__ == "__main__":
    main()
