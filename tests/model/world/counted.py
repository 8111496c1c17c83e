"""A table of many files, and what its sessions write into ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fakes.builder import BuildsInMemory
from fakes.pinot.memory import FakePinot
from fakes.stores.memory import MemoryObjectStore, new_memory, open_memory
from fakes.zookeeper.memory import FakeZooKeeper, Write

from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.builder import ignore_rows
from pinot_assets.ingest.contract.task_outputs import receipt_key
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.table_spec import TableSpec


class EmptyFiles(BuildsInMemory):
    """A builder of files without rows, of which each `nth` fails the first time.

    What it builds is worth a receipt and no segment: the state of a session is the point, not segments.
    """

    def __init__(self, nth: int) -> None:
        self._nth = nth

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[Receipt | Failure], None],
        on_rows: Callable[[int], None] = ignore_rows,
    ) -> None:
        store = open_memory(build_spec.staging_uri)
        for task in tasks:
            uri, version = task.file.uri, task.file.fingerprint
            if build_spec.attempt == 0 and task.ordinal % self._nth == 0:
                on_done(Failure(uri, task.ordinal, 0, "UNREADABLE", "as the test wants it " * 50))
                continue
            receipt = Receipt(uri, task.ordinal, build_spec.attempt, version, "", 0, 0, (), 0.0, "")
            store.put_if_absent(receipt_key(uri, version, build_spec.attempt), _as_written(receipt))
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

    def trigger(self) -> tuple[TriggerReport, list[Write]]:
        """One trigger, and what it wrote."""
        self.zookeeper.writes.clear()
        store = SessionStore(self.zookeeper.client(), "pinot", "counted_OFFLINE")
        clients = TableClients(store, self._pinot, self._source, self._staging, EmptyFiles(10))
        with Driver(self._spec, clients, "a run") as driver:
            report = driver.trigger()
        return report, list(self.zookeeper.writes)


def _fill(source: MemoryObjectStore, files: int) -> None:
    for n in range(files):
        source.write(f"part-{n:06}.csv", b"")


def written(spec: TableSpec, files: int) -> list[Write]:
    """What two triggers write, in the first of which every tenth file fails."""
    table = Counted(spec, files)
    failed, first = table.trigger()
    assert (failed.result, len(failed.failed)) == (TriggerResult.FAILED, files // 10)
    through, second = table.trigger()
    assert (through.result, len(through.built)) == (TriggerResult.NOOP, files // 10)
    assert through.session is not None
    assert through.session.retry_count == 1
    return first + second


def assert_as_little(some: list[Write], more: list[Write]) -> None:
    """As many writes of about the same size, a few KB in all."""
    assert len(some) == len(more)
    assert max(write.bytes for write in (*some, *more)) < 4096
    sizes = sorted(sum(write.bytes for write in writes) for writes in (some, more))
    assert sizes[1] < min(1.05 * sizes[0], 40_960), sizes
