"""What Dagster is told once a snapshot is published, whoever published it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG

from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.keys import keys_of
from pinot_assets.assets.metadata import Metadata, of_snapshot
from pinot_assets.assets.partition_events import Event, PartitionEvents
from pinot_assets.assets.versions import digest
from pinot_assets.errors import PinotAssetsError
from pinot_assets.pinot.api import PinotClient
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.driver import Driver
from pinot_assets.session.rollback.rollback_plan import revert_until_ms
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import before
from pinot_assets.session.values.state import Checked, published_audit
from pinot_assets.settings.environment import Settings
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.table_spec import TableSpec


@dataclass(frozen=True)
class Publication:
    """A published snapshot, ready to be shown."""

    spec: TableSpec
    snapshot: Snapshot
    data_version: str
    metadata: Metadata

    @property
    def bad_rows(self) -> int:
        """Rows that were put aside of the files that its session built."""
        return sum(f.bad_rows for f in self.snapshot.files if f.session == self.snapshot.session)

    @property
    def checks(self) -> tuple[Checked, ...]:
        """Those of the audit that it passed; none of a release that did not keep them."""
        audit = published_audit(self.snapshot.audit)
        return audit.checks if audit is not None else ()

    def partitions(self, history: TableHistory) -> Iterator[Event]:
        """Of every partition that shows something else."""
        yield from self._picture(history).publications(history)

    def forget_gone(self, history: TableHistory) -> None:
        """Take what is neither published nor in the source off the list. Not beside another run."""
        self._picture(history).forget_gone(history)

    def _picture(self, history: TableHistory) -> PartitionEvents:
        return PartitionEvents.of_ledger(self.spec, self.snapshot, history.partitions())

    def table(self) -> dg.AssetMaterialization:
        """Of the Pinot table."""
        return self._event(keys_of(self.spec).table)

    def switch(self) -> dg.AssetMaterialization:
        """Of the switch, where it was not made by the asset's own step."""
        return self._event(keys_of(self.spec).snapshot)

    def _event(self, key: dg.AssetKey) -> dg.AssetMaterialization:
        return dg.AssetMaterialization(
            key, metadata=self.metadata, tags={DATA_VERSION_TAG: self.data_version}
        )


def publication(
    spec: TableSpec,
    seen: Observation,
    store: SessionStore,
    staging: Staging,
    pinot: PinotClient,
    settings: Settings,
) -> Publication | None:
    """What is published now, None when nothing is.

    :param settings: for the link to Pinot's console.
    """
    ref, snapshot = seen.pointer.current_snapshot, seen.snapshot
    if ref is None or snapshot is None:
        return None
    session = next((s for s in store.sessions() if s.id == snapshot.session), None)
    manifest = staging.store.uri_of(ref.key)
    try:
        metadata = of_snapshot(snapshot, session, manifest, _revert_until_ms(spec, pinot, staging, snapshot))
    except PinotAssetsError:
        # It is published, whether or not Pinot answers at this moment.
        metadata = {**of_snapshot(snapshot, session, manifest, None), "rollback_until": "not known"}
    console = f"{settings.pinot.controller_url}/#/tenants/table/{spec.name_with_type}"
    return Publication(
        spec,
        snapshot,
        data_version_of(snapshot),
        {**metadata, "pinot_console": dg.MetadataValue.url(console)},
    )


def _revert_until_ms(spec: TableSpec, pinot: PinotClient, staging: Staging, snapshot: Snapshot) -> int | None:
    former = before(staging, snapshot)
    if former is None:
        return None
    return revert_until_ms(spec, pinot, snapshot, former.snapshot, time.time_ns() // 1_000_000)


def publication_by(driver: Driver, settings: Settings) -> Publication | None:
    """The same, by the clients of a driver."""
    clients = driver.clients
    return publication(driver.spec, driver.observe(), clients.store, clients.staging, clients.pinot, settings)


def data_version_of(snapshot: Snapshot) -> str:
    """Data version of what queries see: the segments, whatever else a snapshot remembers."""
    return digest(snapshot.segments)
