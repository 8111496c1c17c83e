"""Reading what decides over the garbage of a table. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from pinot_assets.errors import SnapshotCorrupt
from pinot_assets.gc.orphans import Facts, Orphan, orphans
from pinot_assets.pinot.shadow_table import left_shadow
from pinot_assets.session.edges import Edges
from pinot_assets.session.kept import Header, headers
from pinot_assets.session.model import Pointer, is_ours
from pinot_assets.session.owner import why_not_ours
from pinot_assets.session.retention import Retention, needed, reach_of
from pinot_assets.session.sequence import staged
from pinot_assets.session.staging import Reach
from pinot_assets.spec import TableSpec

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
    expired: tuple[Header, ...]
    notes: tuple[str, ...]


def look(spec: TableSpec, edges: Edges, pointer: Pointer, grace_ms: int, now_ms: int) -> Garbage:
    """What nothing needs any more.

    :param pointer: as it stands; under the lease, the owner's.
    :param now_ms: by the clock of the staging area.
    :raises SnapshotCorrupt: the current snapshot cannot be read: nothing can be judged.
    :raises PinotNotFound: Pinot has no such table.
    """
    staging, notes = edges.staging, list[str]()
    session = edges.store.active_session(pointer)
    segments = edges.pinot.all_segments(spec.name)
    lineage = edges.pinot.lineage(spec.name)  # after the segments: none is seen without its entry
    listed = [*staged(staging, "")]
    there = headers(listed)
    ref = pointer.current_snapshot
    wanted = needed(spec, edges, ref, session)
    expired = tuple(
        header
        for header in (Retention.of(spec).expired(there, wanted, now_ms) if ref is not None else ())
        if now_ms - header.stored_ms >= grace_ms
    )
    kept: Reach | None = None
    strange = ""
    if ref is None and (there or any(is_ours(spec.name, name) for name in segments)):
        notes.append("ZooKeeper knows of no snapshot: what is staged stays, a run may need it")
    else:
        try:
            strange = why_not_ours(staging, edges.store.owner(), listed, ref)
            kept = None if strange else reach_of(staging, (h for h in there if h not in expired))
        except SnapshotCorrupt as error:
            notes.append(f"a kept snapshot cannot be read, so nothing that is staged goes: {error.reason}")
    if strange:
        notes.append(f"nothing that is staged goes: {strange}")
    if kept is None:
        expired = ()
    old, young = list[Orphan](), list[Orphan]()
    for orphan in orphans(
        Facts(
            table=spec.name,
            nodes=edges.store.session_nodes(),
            session=session,
            hold=pointer.hold.key if pointer.hold else "",
            ledger=staging.reach(ref).segments if ref is not None else None,
            kept=kept,
            expired=expired,
            segments=segments,
            lineage=lineage,
            shadow=left_shadow(edges.pinot, spec.name),
            staged={} if strange else {info.key: info.fingerprint for info in listed},
            now_ms=now_ms,
            here_ms=edges.now_ms(),
        )
    ):
        (old if orphan.age_ms is None or orphan.age_ms >= grace_ms else young).append(orphan)
    return Garbage(tuple(old), tuple(young), expired, tuple(notes))
