"""What a push asks of Pinot's controller: segment by segment, as Pinot's own batch jobs push, against ours.

`make bench-push`. Both send metadata alone and let Pinot take the tar from where it lies; ours also looks
whether every segment is there, which the other does not.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import psutil
import pyarrow as pa
from fakes.pinot.controller import ControllerCluster
from fakes.pinot.staged import STAGED
from kazoo.client import KazooClient
from measure import CONSOLE, Meter, head, machine, rounds, row, spread

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot import HttpPinotClient, PinotConnection, PushMode, PushReport, Timeouts, wait_online
from pinot_assets.segment import SegmentSpec, build_segment, metadata_tar, write_tar
from pinot_assets.session.lineage.switch import BatchSizer
from pinot_assets.snapshot.receipt import Output

SEGMENTS = 2_000
ROUNDS = 2
COMPUTED = 6_150
"""Segments of the largest push that was ever published."""
LARGE_BYTES = 10_000_000
LARGE_SEGMENTS = 4
DEADLINE_S = 20.0
"""What a session gives one upload: a new owner of the lease waits so long (rule R2)."""


class Counting(httpx.BaseTransport):
    """Counts the bytes of uploads on their way to the controller."""

    def __init__(self) -> None:
        self._inner = httpx.HTTPTransport()
        self.bytes = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Count, and pass on."""
        if request.method == "POST":
            self.bytes += int(request.headers["content-length"])
        return self._inner.handle_request(request)

    def close(self) -> None:
        """Let go of the connections."""
        self._inner.close()


@dataclass(frozen=True)
class Pushed:
    """One push.

    :ivar seconds: of each segment, its upload's shared among those that went with it.
    :ivar writes: of the table's ideal state, by the version of its node.
    :ivar cpu: seconds of the controller.
    """

    seconds: list[float]
    writes: int
    bytes: int
    cpu: float

    @property
    def slope(self) -> float:
        """How much longer a segment of the last quarter took than one of the first."""
        quarter = len(self.seconds) // 4
        return statistics.mean(self.seconds[-quarter:]) / statistics.mean(self.seconds[:quarter])


class Bench:
    """A controller, and a new table for every push."""

    def __init__(self, cluster: ControllerCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._tables = (f"push{n}" for n in itertools.count())
        self._counting = Counting()
        waits = Timeouts(upload=DEADLINE_S, call=60)  # a table of thousands of segments takes long to go
        connection = PinotConnection(cluster.controller_url, timeouts=waits)
        self._pinot = HttpPinotClient(connection, transport=self._counting)
        self._zookeeper = KazooClient(cluster.zookeeper)
        self._zookeeper.start()

    def close(self) -> None:
        """Let go of the cluster."""
        self._zookeeper.stop()
        self._zookeeper.close()
        self._pinot.close()

    def staged(self, count: int, size: int) -> list[Output]:
        """Segments of ten rows, their tars on disk.

        :param size: bytes of each tar, about.
        """
        config, schema = _table("staged")
        spec = SegmentSpec.from_pinot(schema, config, write_for="0.11")
        noise = np.random.default_rng(count).integers(0, 256, (10, size // 10), dtype=np.uint8)
        rows = pa.table({"id": range(10), "body": [line.tobytes() for line in noise]})  # gzip gains nothing
        outputs = []
        for n in range(count):
            name = f"staged__cp1-{size:x}_0_{n}_0"
            segment = build_segment(
                rows, spec, name=name, table_name="staged", creation_time_ms=n + 1, now_ms=n + 1
            )
            tar, metadata = self._folder / f"{name}.tar.gz", self._folder / f"{name}.metadata.tar.gz"
            info = write_tar(segment, tar)
            metadata.write_bytes(metadata_tar(segment))
            outputs.append(
                Output(
                    name,
                    segment.crc,
                    10,
                    tar.as_uri(),
                    info.bytes,
                    info.sha256,
                    metadata.as_uri(),
                )
            )
        return outputs

    def measure(
        self, push: Callable[[HttpPinotClient, str, Sequence[Output]], list[float]], what: Sequence[Output]
    ) -> Pushed:
        """Push into a new table; leaves the cluster quiet."""
        table = next(self._tables)
        config, schema = _table(table)
        self._pinot.put_schema(schema)
        self._pinot.create_table(config)
        before, sent = self._version(table), self._counting.bytes
        meter = Meter(_controller_pid())
        seconds = push(self._pinot, table, what)
        cost, writes = meter.read(), self._version(table) - before
        sent = self._counting.bytes - sent
        wait_online(self._pinot, table, [o.segment for o in what], seconds=300)
        self._pinot.delete_table(table)
        self._pinot.delete_schema(table)
        return Pushed(seconds, writes, sent, cost.cpu)

    def _version(self, table: str) -> int:
        return int(self._zookeeper.exists(f"/{self._cluster.cluster}/IDEALSTATES/{table}_OFFLINE").version)


def _table(name: str) -> tuple[JsonObject, JsonObject]:
    schema = {
        "schemaName": name,
        "dimensionFieldSpecs": [
            {"name": "id", "dataType": "LONG"},
            {"name": "body", "dataType": "BYTES", "maxLength": 1 << 30},
        ],
    }
    config = {
        "tableName": name,
        "tableType": "OFFLINE",
        "segmentsConfig": {"schemaName": name, "replication": "1"},
        "tenants": {},
        "tableIndexConfig": {"loadMode": "MMAP", "noDictionaryColumns": ["body"]},
        "metadata": {},
    }
    return config, schema


def _controller_pid() -> int:
    return next(
        p.pid
        for p in psutil.Process().children(recursive=True)
        if any("ControllerStarter" in a for a in p.cmdline())
    )


# --- ways to push ------------------------------------------------------------------------------------


def one_by_one(pinot: HttpPinotClient, table: str, outputs: Sequence[Output]) -> list[float]:
    """As Pinot's own jobs do it: an upload for each, one after the other."""
    uploader, seconds = pinot.uploader(table), []
    for output in outputs:
        began = time.perf_counter()
        uploader.metadata(output.segment, STAGED.read(output.metadata_uri), output.tar_uri)
        seconds.append(time.perf_counter() - began)
    return seconds


def ours(pinot: HttpPinotClient, table: str, outputs: Sequence[Output]) -> list[float]:
    """As a session does it, at its pace."""
    left, pace, seconds = outputs, BatchSizer(), list[float]()
    while left:
        batch = pace.next_of(left)
        report = pinot.push(table, batch, staged=STAGED, mode=PushMode.METADATA)
        seconds += [report.seconds / len(batch)] * len(batch)
        pace, left = pace.after(batch, report, DEADLINE_S), left[len(batch) :]
    return seconds


def whole_tars(pinot: HttpPinotClient, table: str, outputs: Sequence[Output]) -> list[float]:
    """Every tar through the controller."""
    report = pinot.push(table, outputs, staged=STAGED, mode=PushMode.TAR)
    return [report.seconds / len(outputs)] * len(outputs)


# --- the run -----------------------------------------------------------------------------------------


@contextmanager
def bench() -> Iterator[Bench]:
    """A controller of its own in a folder of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="pinot-assets-bench-") as folder,
        ControllerCluster(Path(folder) / "controller") as cluster,
    ):
        (tars := Path(folder) / "tars").mkdir()
        opened = Bench(cluster, tars)
        try:
            yield opened
        finally:
            opened.close()


def show(what: str, pushes: Sequence[Pushed]) -> None:
    """One line of the table."""
    count = len(pushes[0].seconds)
    row(
        what,
        spread([1000 * sum(f.seconds) / count for f in pushes], 1),
        spread([1000 * f.cpu / count for f in pushes], 1),
        spread([f.bytes / count for f in pushes], 0),
        spread([f.writes for f in pushes], 0),
        spread([f.slope for f in pushes]),
    )


def computed(pushed: Pushed, segments: int) -> float:
    """How many times fewer writes so many segments take, each batch as large as the session makes it.

    A batch costs a segment what the last one measured did; the first, a single segment, what the first did.
    """
    left = [Output(f"segment{n}", 0, 0, "", 0, "", "") for n in range(segments)]
    pace, seconds, calls = BatchSizer(), pushed.seconds[0], 0
    while left:
        batch = pace.next_of(left)
        sent = tuple(output.segment for output in batch)
        report = PushReport(sent, (), PushMode.METADATA, None, 1, seconds * len(sent))
        pace, seconds, calls = pace.after(batch, report, DEADLINE_S), pushed.seconds[-1], calls + 1
        left = left[len(sent) :]
    return segments / calls


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--segments", type=int, default=SEGMENTS)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    options = arguments.parse_args()
    machine("httpx")
    with bench() as run:
        small, large = run.staged(options.segments, 600), run.staged(LARGE_SEGMENTS, LARGE_BYTES)
        single, batched = [], []
        for _ in rounds(options.rounds, f"{options.segments:,} segments"):
            single.append(run.measure(one_by_one, small))
            batched.append(run.measure(ours, small))
        tars, large_batched = run.measure(whole_tars, large), run.measure(ours, large)
    head("push", "ms a segment", "controller's CPU ms", "bytes to it", "ideal-state writes", "slope")
    show(f"{options.segments:,} segments, one by one", single)
    show("ours", batched)
    show(f"{LARGE_SEGMENTS} tars of {large[0].tar_bytes / 1e6:.0f} MB, whole", [tars])
    show("ours", [large_batched])
    writes = statistics.median(s.writes / b.writes for s, b in zip(single, batched, strict=True))
    fewer = computed(batched[-1], COMPUTED)
    CONSOLE.print(f"\nideal-state writes for {COMPUTED:,} segments: {fewer:.0f}× fewer (computed)")
    CONSOLE.print(
        f"push: controller bytes ratio {tars.bytes / large_batched.bytes:.0f}, "
        f"ideal-state writes ratio {writes:.0f}, slope {max(b.slope for b in batched):.2f}"
    )


if __name__ == "__main__":
    main()
