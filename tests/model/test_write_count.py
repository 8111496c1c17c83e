"""A session's state in ZooKeeper is a few KB and a constant number of writes, however many files it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from fakes.builder import BuildsInMemory
from fakes.objects import MemoryObjectStore, new_memory, open_memory
from fakes.pinot import FakePinot
from fakes.tables import SYNC, write_table
from fakes.zookeeper import FakeZooKeeper, Write

from pinot_assets.build.keys import receipt_key
from pinot_assets.build.order import BuildOrder, FileTask, nobody
from pinot_assets.session.driver import Driver
from pinot_assets.session.edges import Edges
from pinot_assets.session.receipt import Failure, Receipt
from pinot_assets.session.report import Report, Result
from pinot_assets.session.staging import Staging
from pinot_assets.session.store import SessionStore
from pinot_assets.spec import TableSpec

SIZES = (100, 10_000, 100_000)


class EmptyFiles(BuildsInMemory):
    """A builder of files without rows, of which each `nth` fails the first time.

    What it builds is worth a receipt and no segment: the state of a session is the point, not segments.
    """

    def __init__(self, nth: int) -> None:
        self._nth = nth

    def build(
        self,
        order: BuildOrder,
        tasks: Sequence[FileTask],
        on_done: Callable[[Receipt | Failure], None],
        on_rows: Callable[[int], None] = nobody,
    ) -> None:
        store = open_memory(order.staging_uri)
        for task in tasks:
            uri, version = task.file.uri, task.file.fingerprint
            if order.attempt == 0 and task.ordinal % self._nth == 0:
                on_done(Failure(uri, task.ordinal, 0, "UNREADABLE", "as the test wants it " * 50))
                continue
            receipt = Receipt(uri, task.ordinal, order.attempt, version, "", 0, 0, (), 0.0, "")
            store.put_if_absent(receipt_key(uri, version, order.attempt), _as_written(receipt))
            on_done(receipt)


def _as_written(receipt: Receipt) -> bytes:
    """`Receipt.to_bytes` of an empty file, made in a tenth of its time."""
    which = f'"uri": "{receipt.uri}", "ordinal": {receipt.ordinal}, "attempt": {receipt.attempt}'
    read = f'"size": {receipt.read.size}, "mtime_us": {receipt.read.mtime_us}'
    rest = '"sha256": "", "rows": 0, "bad_rows": 0, "outputs": [], "seconds": 0.0, "worker": ""'
    return f'{{{which}, "read": {{{read}}}, {rest}}}'.encode()


class Counted:
    """A table with so many files, and what its sessions write into ZooKeeper."""

    def __init__(self, spec: TableSpec, files: int) -> None:
        self.zookeeper, self._pinot, self._spec = FakeZooKeeper(), FakePinot(), spec
        self.zookeeper.client().ensure_path("/pinot/PROPERTYSTORE")
        self._pinot.put_schema(spec.schema_json)
        self._pinot.create_table(spec.table_json)
        self._source, self._staging = new_memory(), Staging(new_memory())
        _fill(self._source, files)

    def trigger(self) -> tuple[Report, list[Write]]:
        """One trigger, and what it wrote."""
        self.zookeeper.writes.clear()
        store = SessionStore(self.zookeeper.client(), "pinot", "counted_OFFLINE")  # type: ignore[arg-type]
        edges = Edges(store, self._pinot, self._source, self._staging, EmptyFiles(10))
        with Driver(self._spec, edges, "a run") as driver:
            report = driver.trigger()
        return report, list(self.zookeeper.writes)


def _fill(source: MemoryObjectStore, files: int) -> None:
    for n in range(files):
        source.write(f"part-{n:06}.csv", b"")


@pytest.fixture
def spec(tmp_path: Path) -> TableSpec:
    return write_table(tmp_path, "counted", {**SYNC, "consistentPushMaxRetries": "3"})


def test_a_session_of_100_000_files_writes_as_little_as_one_of_a_hundred(spec: TableSpec) -> None:
    counts, sizes = [], []
    for files in SIZES:
        table = Counted(spec, files)
        failed, first = table.trigger()
        assert (failed.result, len(failed.failed)) == (Result.FAILED, files // 10)
        through, second = table.trigger()
        assert (through.result, len(through.built)) == (Result.NOOP, files // 10)
        assert through.session is not None
        assert through.session.retry_count == 1
        writes = first + second
        counts.append(len(writes))
        sizes.append(sum(w.bytes for w in writes))
        assert max(w.bytes for w in writes) < 4096
    assert counts == counts[:1] * len(SIZES), counts
    assert max(sizes) < 1.05 * min(sizes), sizes
    assert max(sizes) < 40_960, sizes
