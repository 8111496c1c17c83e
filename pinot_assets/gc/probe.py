"""Reading what decides over the garbage of a table. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pinot_assets.errors import SnapshotCorrupt
from pinot_assets.gc.orphans import Orphan, TableFacts, orphans
from pinot_assets.pinot.shadow_table import left_shadow
from pinot_assets.session.driver import Driver
from pinot_assets.session.lineage.stale_pointer import published
from pinot_assets.session.recover.interrupted import unknown_of
from pinot_assets.session.rollback.retention import SnapshotRetention, needed, reach_of, why_none_goes
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.staging import Reach, staged
from pinot_assets.session.stores.stored_snapshots import SnapshotHeader, snapshot_headers
from pinot_assets.session.values.state import Pointer, Session, is_ours
from pinot_assets.table_spec import TableSpec

GRACE_HOURS = 24
"""How old an orphan has to be before it goes, where nobody says otherwise: no upload, no call to Pinot and no
executor that outlived its driver lasts so long."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """What of a table nothing needs any more.

    :ivar old: what may go, in the order in which it may.
    :ivar young: what may go once it is old enough.
    :ivar expired: the snapshots among `old`.
    :ivar notes: what could not be judged, and why.
    """

    old: tuple[Orphan, ...]
    young: tuple[Orphan, ...]
    expired: tuple[SnapshotHeader, ...]
    notes: tuple[str, ...]


def garbage(driver: Driver, grace_ms: int) -> Garbage:
    """What of a table nothing needs any more; needs no lease and changes nothing.

    :param grace_ms: how old it has to be before it may go, by this machine's clock.
    :raises PinotAssetsError: as `look`.
    """
    driver.require_known()
    clients = driver.clients
    return look(driver.spec, clients, clients.store.pointer(), grace_ms, clients.now_ms())


def look(spec: TableSpec, clients: TableClients, pointer: Pointer, grace_ms: int, now_ms: int) -> Garbage:
    """What nothing needs any more.

    :param pointer: as it stands; under the lease, the owner's.
    :param now_ms: by the clock of the staging area.
    :raises SnapshotCorrupt: the current snapshot cannot be read: nothing can be judged.
    :raises PinotNotFound: Pinot has no such table.
    """
    staging = clients.staging
    session = clients.store.active_session(pointer)
    segments = clients.pinot.all_segments(spec.name)
    lineage = clients.pinot.lineage(spec.name)  # after the segments: none is seen without its entry
    listed = [*staged(staging, "")]
    there, ref = snapshot_headers(listed), pointer.current_snapshot
    ledger = staging.reach(ref).segments if ref is not None else None
    if ledger is not None:
        beside = unknown_of(spec.name, lineage.visible(segments), ledger)
        ledger |= published(spec.name, clients.pinot, staging, pointer, beside)  # a backup may be restored
    expired: tuple[SnapshotHeader, ...] = ()
    kept: Reach | None = None
    if ref is None and (there or any(is_ours(spec.name, name) for name in segments)):
        why = "ZooKeeper knows of no snapshot, and a run may need what lies there"
    else:
        try:
            why = why_none_goes(clients, listed, ref)
            if not why:
                going = _expired(spec, clients, there, pointer, session, grace_ms, now_ms)
                kept = reach_of(staging.reach(header.ref) for header in there if header not in going)
                expired = going
        except SnapshotCorrupt as error:
            why = f"a kept snapshot cannot be read: {error.reason}"
    old, young = list[Orphan](), list[Orphan]()
    for orphan in orphans(
        TableFacts(
            table=spec.name,
            nodes=clients.store.session_nodes(),
            session=session,
            hold=pointer.hold.key if pointer.hold else "",
            ledger=ledger,
            kept=kept,
            expired=expired,
            segments=segments,
            lineage=lineage,
            shadow=left_shadow(clients.pinot, spec.name),
            staged={info.key: info.fingerprint for info in listed},
            now_ms=now_ms,
            here_ms=clients.now_ms(),
        )
    ):
        (old if orphan.age_ms is None or orphan.age_ms >= grace_ms else young).append(orphan)
    notes = (f"nothing that is staged goes: {why}",) if why else ()
    return Garbage(tuple(old), tuple(young), expired, notes)


def _expired(
    spec: TableSpec,
    clients: TableClients,
    there: Sequence[SnapshotHeader],
    pointer: Pointer,
    session: Session | None,
    grace_ms: int,
    now_ms: int,
) -> tuple[SnapshotHeader, ...]:
    old = SnapshotRetention.of(spec).expired(there, (), now_ms)
    if pointer.current_snapshot is None or not old:
        return ()
    asked = needed(spec, clients, there, pointer, session)
    return tuple(h for h in old if h.ref not in asked and now_ms - h.stored_ms >= grace_ms)
