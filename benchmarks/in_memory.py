"""A table whose Spark, Pinot and ZooKeeper are values: what is left of a run or a tick is Dagster's share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from unittest.mock import patch

from pinot_assets.audit.checks import Finding
from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.resources import ConsistentPushResource
from pinot_assets.session.detect.observe import Observation, list_source
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.progress import Progress
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import Mode, ObjectRef, Pointer, Session
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output, Receipt
from pinot_assets.source import SourceFile, open_store
from pinot_assets.table_spec import TableSpec

NAME = "scale"


class InMemoryTable:
    """Takes the place of the session machine, and publishes whatever is in the source."""

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec
        self.snapshot: Snapshot | None = None
        self._files: dict[str, SourceFile] = {}
        self.clients = SimpleNamespace(
            store=SimpleNamespace(sessions=list),
            staging=SimpleNamespace(store=SimpleNamespace(uri_of=str)),
            pinot=None,
        )

    def observe(self) -> Observation:
        """The last snapshot, and no session."""
        ref = SnapshotRef("snapshot", f"{self._seq:064}") if self.snapshot else None
        return Observation(Pointer(current_snapshot=ref), None, (), {}, None, self.snapshot, NO_HOLD)

    def trigger(self) -> TriggerReport:
        """Every file that differs from the snapshot is built, in no time."""
        self._files = dict(list_source(self.spec, open_store(self.spec.input_uri(), {}, UNLIMITED)).files)
        published = self._published()
        built = tuple(self._receipt(file) for file in self._files.values() if file.uri not in published)
        session = Session(f"cp{self._seq + 1}-000000", self._seq + 1, Mode.SYNC, "", 0, ObjectRef("", ""))
        return TriggerReport(TriggerResult.STAGED, session, len(self._files), self._files, built=built)

    def audit(self) -> tuple[None, tuple[Finding, ...]]:
        """All is well."""
        return None, (Finding("files_built", True, 1, 1, "all files are built"),)

    def publish(self) -> None:
        """The listing is the snapshot; what did not change keeps its segments."""
        published = self._published()
        files = tuple(
            published.get(f.uri) or PublishedFile.from_receipt(self._receipt(f), "cp1-000000")
            for f in self._files.values()
        )
        self.snapshot = Snapshot(self._seq + 1, f"{NAME}_OFFLINE", "cp1", "SYNC", "", None, "", "", 0, files)

    def report_to(self, progress: Progress) -> None:
        """Return at once: there is nothing to wait for."""

    def _published(self) -> dict[str, PublishedFile]:
        """Of the files listed, those that are published as they are listed."""
        ledger = self.snapshot.ledger if self.snapshot else {}
        return {
            uri: ledger[uri]
            for uri, file in self._files.items()
            if uri in ledger and ledger[uri].fingerprint == file.fingerprint
        }

    @property
    def _seq(self) -> int:
        return self.snapshot.seq if self.snapshot else 0

    def _receipt(self, file: SourceFile) -> Receipt:
        segment = f"{NAME}__cp{self._seq + 1}-0a1b2c_0_{abs(hash(file.uri)) % 10**6}_0"
        output = Output(segment, 1234567890, 1000, f"{segment}.tar.gz", 50_000, "0" * 64, f"{segment}.meta")
        return Receipt(file.uri, 0, 0, file.fingerprint, "0" * 64, 1000, 0, (output,), 1.0, "worker/1")


@contextmanager
def in_place_of_the_machine(table: InMemoryTable) -> Iterator[None]:
    """Runs and ticks of this process meet the table in memory."""

    def driver(*_: object) -> InMemoryTable:
        return table

    with ExitStack() as patches:
        for replaced in (
            patch.object(ConsistentPushResource, "driver", driver),
            patch("pinot_assets.sensors.files.open_session_store", lambda *_: nullcontext()),
            patch("pinot_assets.sensors.files.observe", lambda *_: table.observe()),
            patch.dict(os.environ, PINOT_CONTROLLER_URL="http://127.0.0.1:9", PINOT_ZOOKEEPER="127.0.0.1:9"),
        ):
            patches.enter_context(replaced)
        yield
