"""A table's state without taking its lease: for the files sensor, `status` and the dashboards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pinot_assets.session.model import Owner, Pointer, Session
from pinot_assets.session.plan import NO_HOLD, Hold
from pinot_assets.session.receipt import Failure
from pinot_assets.session.staging import Staging
from pinot_assets.session.store import SessionStore
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.source import Inventory, ObjectStore, take_inventory
from pinot_assets.spec import TableSpec


@dataclass(frozen=True, slots=True)
class Observation:
    """What stands in ZooKeeper and the staging area now.

    :ivar session: the open session, None when there is none.
    :ivar failures: files that failed in its last attempt.
    :ivar failed_versions: the version tokens of those files that the attempt was planned for, by URI.
    :ivar holder: who holds the lease.
    """

    pointer: Pointer
    session: Session | None
    failures: tuple[Failure, ...]
    failed_versions: Mapping[str, str]
    holder: Owner | None
    snapshot: Snapshot | None
    hold: Hold


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the listing shows beside the ledger, by fingerprint alone: content decides later (E3)."""

    listed: int
    digest: str
    new: tuple[str, ...]
    rewritten: tuple[str, ...]
    deleted: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether anything differs from the ledger."""
        return bool(self.new or self.rewritten or self.deleted)

    def __str__(self) -> str:
        return f"{len(self.new)} new, {len(self.rewritten)} rewritten, {len(self.deleted)} deleted"


def observe(store: SessionStore, staging: Staging) -> Observation:
    """Read pointer, open session, ledger and hold. Writes nothing.

    :raises SessionError: a node cannot be read.
    :raises SnapshotCorrupt: the ledger cannot be read.
    """
    pointer = store.pointer()
    session = store.active_session(pointer)
    failures = staging.failures(session.failures) if session and session.failures else ()
    return Observation(
        pointer=pointer,
        session=session,
        failures=failures,
        failed_versions=_planned(session, failures, staging),
        holder=store.holder(),
        snapshot=staging.snapshot(pointer.current_snapshot) if pointer.current_snapshot else None,
        hold=staging.hold(pointer.hold) if pointer.hold else NO_HOLD,
    )


def _planned(session: Session | None, failures: tuple[Failure, ...], staging: Staging) -> dict[str, str]:
    if session is None or not failures:
        return {}
    failed = {f.ordinal for f in failures}
    return {row.uri: row.planned.token for row in staging.plan(session.plan).rows if row.ordinal in failed}


def list_source(spec: TableSpec, source: ObjectStore) -> Inventory:
    """The files of the input directory that match the patterns.

    :raises ListingFailed: the listing did not complete.
    """
    return take_inventory(source, include=spec.ingestion.include, exclude=spec.ingestion.exclude)


def sight(inventory: Inventory, observation: Observation) -> Sighting:
    """Compare a listing with the ledger, less what a rollback holds."""
    ledger = observation.snapshot.ledger if observation.snapshot else {}
    hold = observation.hold
    free = {
        uri: file for uri, file in inventory.files.items() if hold.files.get(uri) != file.fingerprint.token
    }
    return Sighting(
        listed=len(inventory.files),
        digest=inventory.digest,
        new=tuple(sorted(set(free) - set(ledger))),
        rewritten=tuple(
            sorted(u for u, f in free.items() if u in ledger and ledger[u].fingerprint != f.fingerprint)
        ),
        deleted=tuple(sorted(set(ledger) - set(inventory.files) - set(hold.removals))),
    )
