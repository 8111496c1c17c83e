"""What a sweep of the files sensor over a million objects costs, over listing them.

`make bench-sensor`. A process lists a bucket (pages of ListObjectsV2 from 127.0.0.1) with the
product's client and does nothing else. Another one does what the sensor does at its ticks: lists a stretch,
keeps it, continues at the next one, joins the parts at the end, and finds that nothing has changed: the
sweep of which nearly all days consist, and the last line's. A third finds changes: it reads the ledger, too,
compares, makes the picture of partitions and decides. What Dagster itself costs is `make bench-dagster`'s.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
from fakes.tables import SYNC, write_table
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
from object_pages import BUCKET, PAGE, PREFIX, serving
from plan_listing import CHANGED, bare, open_bucket, write_ledger

from pinot_assets.assets.partition_events import PartitionEvents
from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.this_machine import take_memory_from_system
from pinot_assets.scheduling.files_tick import FilesCursor, decide_tick, settlement
from pinot_assets.session.detect.listing import (
    CompleteListing,
    KeptParts,
    ListingCursor,
    resume_listing,
)
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.state import Pointer
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef, sha256_hex
from pinot_assets.snapshot.published_files import PublishedFiles
from pinot_assets.source import open_store
from pinot_assets.source.bucket_store import BucketObjectStore
from pinot_assets.table_spec import TableSpec

ROUNDS = 5
OBJECTS = 1_000_000
TICKS = 10
GOAL, GOAL_GB = 1.3, 1.0
WHAT = {
    "bare": "the listing alone, with the same client",
    "changed": "a sweep of the sensor that finds changes",
    "settled": "a sweep of the sensor that finds none",
}
STANDING = "a snapshot"
SPEC = {**SYNC, "inputDirURI": f"s3://{BUCKET}/{PREFIX}", "includeFileNamePattern": "glob:**/*.parquet"}


class Sensor:
    """What the files sensor does at its ticks, without Dagster's storage.

    :ivar ticks: how many there were.
    """

    def __init__(self, spec: TableSpec, source: BucketObjectStore, kept: KeptParts, count: int) -> None:
        self.spec, self.source, self.kept = spec, source, kept
        self._stretch = count // TICKS
        self._cursor = FilesCursor()
        self.ticks = 0

    def sweep(self) -> CompleteListing:
        """All ticks up to the one that has the whole listing."""
        while isinstance(listed := self._list_on(), ListingCursor):
            self._cursor = replace(FilesCursor.read(self._cursor.text), sweep=listed)
        return listed

    def _list_on(self) -> ListingCursor | CompleteListing:
        self.ticks += 1
        pages = iter(range(self._stretch // 10_000 - 1))
        is_late = lambda: next(pages, None) is None  # noqa: E731
        return resume_listing(self.spec, self.source, self.kept, self._cursor.sweep, is_late)

    def settle(self, sweep: CompleteListing, settled: str) -> None:
        """The rest of the last tick, where nothing has changed."""
        cursor = replace(self._cursor, settled=settled)
        assert cursor.is_settled(settlement(self.spec, sweep.inventory, STANDING), 0)
        self.kept.drop(sweep.parts)

    def decide(self, sweep: CompleteListing, ledger: Path) -> None:
        """The rest of the last tick, where a few files differ."""
        data = ledger.read_bytes()
        assert sha256_hex(data) == ledger.stem
        snapshot = Snapshot(1, "t_OFFLINE", "cp1", "SYNC", "", None, "", "", 0, PublishedFiles(data))
        pointer = Pointer(current_snapshot=SnapshotRef("snapshot", ""))
        observation = Observation(pointer, None, (), {}, None, snapshot, NO_HOLD)
        picture = PartitionEvents.take(self.spec, sweep.inventory.files, snapshot, ["dir:day=00000"])
        # A thousand files a directory; and the table as a whole.
        assert len(picture.source) == -(-len(sweep.inventory.files) // PAGE) + 1
        tick = decide_tick(
            self.spec, sweep.inventory, observation, self._cursor.text, 0, picture.rows.differing
        )
        assert tick.message == f"{CHANGED} new, {CHANGED} rewritten, {CHANGED} deleted; launched"
        self.kept.drop(sweep.parts)


def work(name: str, job: JsonObject) -> None:
    """Be one of the three processes; what it imports and its client are there before it is measured."""
    source = open_bucket(job["url"])
    assert source._calls is not None
    with tempfile.TemporaryDirectory(prefix="bench-sensor-") as folder:
        spec = write_table(Path(job["spec"]), "t", SPEC)
        kept = KeptParts(open_store(folder, {}, UNLIMITED))
        take_memory_from_system()  # as `connect.open_source` does
        pa.scalar(0)  # the first one imports pandas where there is one
        meter = Meter()
        if name == "bare":
            bare(source, job["count"])
            answer({"cost": asdict(meter.read()), "peak": peak_bytes()})
            return
        sensor = Sensor(spec, source, kept, job["count"])
        sweep = sensor.sweep()
        if name == "settled":
            sensor.settle(sweep, job["settled"])
        else:
            sensor.decide(sweep, Path(job["ledger"]))
        cost, peak = asdict(meter.read()), peak_bytes()
        settled = settlement(spec, sweep.inventory, STANDING)
        answer({"cost": cost, "peak": peak, "ticks": sensor.ticks, "settled": settled})


def main() -> None:
    """Alternate the three; or be one of them."""
    if sys.argv[1:2] and sys.argv[1] in WHAT:
        work(sys.argv[1], json.loads(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=OBJECTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    machine("obstore", "pyarrow")
    # Keys that are none: nothing here looks at them.
    os.environ |= {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}
    measured: dict[str, list[Cost]] = {name: [] for name in WHAT}
    peaks: dict[str, list[float]] = {name: [] for name in WHAT}
    with tempfile.TemporaryDirectory(prefix="bench-sensor-") as scratch, serving(arguments.objects) as url:
        ledger = write_ledger(Path(scratch), arguments.objects)
        job = {"url": url, "count": arguments.objects, "ledger": str(ledger), "spec": scratch}
        for _ in rounds(arguments.rounds, f"{arguments.objects:,} objects"):
            for name in WHAT:
                one = in_process_of_its_own(Path(__file__), name, json.dumps(job))
                measured[name].append(Cost(**one["cost"]))
                peaks[name].append(one["peak"] / 1e9)
                job["settled"] = one.get("settled", "")
    CONSOLE.print(f"{arguments.objects:,} objects, a ledger of as many rows, {one['ticks']} ticks\n")
    head("what", "CPU s (min / median / max)", "wall s", "peak GB")
    for name, text in WHAT.items():
        costs(text, measured[name], spread(peaks[name]))
    row("goal", f"{GOAL} times the listing", "", GOAL_GB)
    cpu = {name: [c.cpu for c in costs_of] for name, costs_of in measured.items()}
    CONSOLE.print(f"\nload {os.getloadavg()[0]:.1f} at the end")
    CONSOLE.print(f"where it finds changes: {median_ratio(cpu['changed'], cpu['bare']):.2f}")
    CONSOLE.print(f"sensor overhead: {median_ratio(cpu['settled'], cpu['bare']):.2f}")


if __name__ == "__main__":
    main()
