"""Finds what a table no longer needs: reads all facts, and then decides from values alone.

An orphan must be ours, as its name proves. And nothing may be able to come back to it: no query, no lineage
entry of Pinot, not the open session, no kept snapshot. What the session machine deletes by itself
(`session/recover/interrupted.py`, `Lease.prune`, `session/rollback/retention.py`) is judged by the same
rules. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pinot_assets.core.text import plural
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import SnapshotCorrupt
from pinot_assets.gc.bad_rows import NO_BAD_ROWS, BadRowRetention, KeptBadRows, is_bad_rows, versions_in_use
from pinot_assets.gc.staged_names import PACK_OBJECT, PROBE, SESSION_OBJECT, SNAPSHOT_ROWS, staged_segment
from pinot_assets.health.leftovers import SEGMENTS, unreferenced
from pinot_assets.pinot.lineage import Lineage, LineageState
from pinot_assets.pinot.shadow_table import left_shadow
from pinot_assets.session.detect.listing import KEPT_S, PART_KEY
from pinot_assets.session.driver import Driver
from pinot_assets.session.lineage.stale_pointer import published
from pinot_assets.session.recover.interrupted import unknown_of
from pinot_assets.session.rollback.retention import SnapshotRetention, needed, reach_of, why_none_goes
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.session_store import KEPT_SESSIONS
from pinot_assets.session.stores.staged_files import THREADS
from pinot_assets.session.stores.staging import Reach, Staging, staged
from pinot_assets.session.stores.stored_snapshots import SnapshotHeader, snapshot_headers
from pinot_assets.session.values.state import Pointer, Session, is_ours
from pinot_assets.snapshot.batch_receipt import rows_key
from pinot_assets.snapshot.packs import members_sha256
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.source.file_table import ObjectInfo
from pinot_assets.table_spec import TableSpec


class OrphanKind(StrEnum):
    """What an orphan is, in the order in which they are deleted."""

    STRAY = "visible segment"
    SEGMENT = "hidden segment"
    SHADOW = "shadow table"
    NODE = "session node"
    SNAPSHOT = "snapshot"
    ROWS = "rows of a snapshot"
    TAR = "staged tar"
    PACK = "member list or rows of packs"
    SESSION = "session object"
    BAD_ROWS = "rows put aside"
    LISTING = "part of a listing"
    PROBE = "probe"
    TABLE = "nodes of a table"


@dataclass(frozen=True, slots=True)
class Orphan:
    """Something that nothing needs.

    :ivar name: name of a segment or a node, or key of an object.
    :ivar why: why nothing needs it.
    :ivar size: bytes; None where that is not known.
    :ivar age_ms: how long it has existed; None where the session machine itself deletes it at its next run,
        however young it is.
    :ivar is_due: whether the time for which the table keeps it is over, so that no grace time counts.
    """

    kind: OrphanKind
    name: str
    why: str
    size: int | None = None
    age_ms: int | None = None
    is_due: bool = False

    def may_go(self, grace_ms: int) -> bool:
        """Whether it is old enough to be deleted."""
        return self.is_due or self.age_ms is None or self.age_ms >= grace_ms


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What decides which objects of one table are orphans.

    :ivar nodes: session nodes in ZooKeeper, oldest first.
    :ivar session: the open session.
    :ivar hold: key of what a rollback holds back, "" for nothing.
    :ivar ledger: segments of the current snapshot; None where ZooKeeper knows of none.
    :ivar kept: what the kept snapshots need. None where that, or whose it is, is not known; then nothing of
        the staging area is an orphan.
    :ivar expired: snapshots to delete.
    :ivar segments: all names in Pinot's table.
    :ivar shadow: name of the shadow table, or of its schema alone, that an audit left in Pinot, "" for none.
    :ivar staged: every object of the staging area.
    :ivar bad_rows: how long rows that were put aside are kept.
    :ivar packs: member lists and rows objects that packs of kept snapshots need. None where that is not
        known, and while a session is open, which may need any of them.
    :ivar now_ms: time by the clock of the staging area.
    :ivar here_ms: time by this machine's clock, for stamps of Pinot's controller, whose clock cannot be read.
    """

    table: str
    nodes: Sequence[str]
    session: Session | None
    hold: str
    ledger: frozenset[str] | None
    kept: Reach | None
    expired: Sequence[SnapshotHeader]
    segments: frozenset[str]
    lineage: Lineage
    shadow: str
    staged: Mapping[str, Fingerprint]
    bad_rows: BadRowRetention
    packs: frozenset[str] | None
    now_ms: int
    here_ms: int


def orphans_of(facts: TableFacts) -> Iterator[Orphan]:
    """Yield all orphans, however young, in the order in which they may be deleted."""
    if facts.ledger is not None:
        if facts.session is None:  # the next trigger ends an open session, and then deletes strays
            for name in sorted(unknown_of(facts.table, facts.lineage.visible(facts.segments), facts.ledger)):
                why = "queries see it, and it is in no snapshot: the next trigger deletes it"
                yield Orphan(OrphanKind.STRAY, name, why)
        if facts.kept is not None:
            yield from _hidden(facts, facts.ledger | facts.kept.segments)
    if facts.shadow:
        yield Orphan(OrphanKind.SHADOW, facts.shadow, "an audit left it: the next trigger deletes it")
    active = facts.session.node if facts.session is not None else ""
    for node in facts.nodes[:-KEPT_SESSIONS]:  # as `Lease.prune`
        if node != active:
            yield Orphan(OrphanKind.NODE, node, f"beyond the {KEPT_SESSIONS} newest sessions, which are kept")
    if facts.kept is not None:
        yield from _snapshots(facts, facts.kept)
        yield from _tars(facts, facts.kept)
        yield from _pack_objects(facts)
        yield from _session_objects(facts, facts.kept)
        yield from _bad_rows(facts)
        yield from _listings(facts)
        for key in filter(PROBE.fullmatch, facts.staged):
            yield _object(facts, OrphanKind.PROBE, key, "a probe of the store left it when it died")


def _hidden(facts: TableFacts, needed: frozenset[str]) -> Iterator[Orphan]:
    """Yield hidden segments of reverted switches. If Pinot does not delete them, only gc does."""
    for entry in facts.lineage:
        if entry.state is not LineageState.REVERTED:
            needed |= entry.segments_from | entry.segments_to
    of_open_session = f"{facts.table}__{facts.session.id}_" if facts.session is not None else ""
    already = set[str]()
    for entry in facts.lineage.in_state(LineageState.REVERTED):
        for name in sorted((entry.segments_to & facts.segments) - needed - already):
            if is_ours(facts.table, name) and not (of_open_session and name.startswith(of_open_session)):
                already.add(name)
                age_ms = facts.here_ms - entry.timestamp_ms
                why = f"its switch was reverted (lineage entry {entry.id})"
                yield Orphan(OrphanKind.SEGMENT, name, why, age_ms=age_ms)


def _snapshots(facts: TableFacts, kept: Reach) -> Iterator[Orphan]:
    why = "older than what the table keeps, and no rollback needs it"
    for key in sorted({header.ref.key for header in facts.expired}):
        yield _object(facts, OrphanKind.SNAPSHOT, key, why)
    for key in sorted(filter(SNAPSHOT_ROWS.fullmatch, facts.staged.keys() - kept.objects)):
        yield _object(facts, OrphanKind.ROWS, key, "no kept snapshot names them")


def _tars(facts: TableFacts, kept: Reach) -> Iterator[Orphan]:
    sizes = {key: version.size for key, version in facts.staged.items() if key.startswith(SEGMENTS)}
    open_session = facts.session.id if facts.session is not None else ""
    for key in unreferenced(facts.table, sizes, kept.segments, open_session):
        if staged_segment(facts.table, key):
            yield _object(facts, OrphanKind.TAR, key, "no kept snapshot and no open session names it")


def _pack_objects(facts: TableFacts) -> Iterator[Orphan]:
    """Yield member lists and rows objects of no kept pack: of dropped packs, and of sessions given up."""
    if facts.packs is None:
        return
    for key in sorted(filter(PACK_OBJECT.fullmatch, facts.staged.keys() - facts.packs)):
        yield _object(facts, OrphanKind.PACK, key, "no pack of a kept snapshot needs it")


def _session_objects(facts: TableFacts, kept: Reach) -> Iterator[Orphan]:
    """Yield plans and receipts of sessions that ZooKeeper has forgotten and no kept snapshot comes from."""
    nodes = {*facts.nodes[-KEPT_SESSIONS:], *([facts.session.node] if facts.session is not None else [])}
    for key in sorted(facts.staged):
        match = SESSION_OBJECT.fullmatch(key)
        if match is None or match["node"] in nodes or match["id"] in kept.sessions or is_bad_rows(key):
            continue
        if not facts.hold.startswith(f"sessions/{match['id']}/"):
            yield _object(
                facts, OrphanKind.SESSION, key, f"no kept snapshot comes from session {match['id']}"
            )


def _bad_rows(facts: TableFacts) -> Iterator[Orphan]:
    """Yield rows put aside that are kept no longer, then those of files that are not published any more."""
    retention, why = facts.bad_rows, "the file that they come from is not published any more"
    aside = [
        _object(facts, OrphanKind.BAD_ROWS, key, why) for key in sorted(facts.staged) if is_bad_rows(key)
    ]
    over = [orphan for orphan in aside if retention.is_over(orphan.name, orphan.age_ms or 0)]
    for orphan in over:
        days = f"they are kept for {plural(retention.days, 'day')} (badRowDaysToKeep)"
        yield replace(orphan, why=days, is_due=True)
    due = {orphan.name for orphan in over}
    yield from (one for one in aside if one.name not in due and retention.is_of_no_file(one.name))


def _listings(facts: TableFacts) -> Iterator[Orphan]:
    """Yield parts of listings if the youngest is a day old. Until then the cursor of the sensor, which cannot
    be seen from here, may need all of them, and the next sweep first deletes what others left."""
    keys = sorted(filter(PART_KEY.fullmatch, facts.staged))
    newest_us = max((facts.staged[key].mtime_us for key in keys), default=0)
    if facts.now_ms - newest_us // 1000 >= KEPT_S * 1000:
        for key in keys:
            yield _object(
                facts, OrphanKind.LISTING, key, "no sweep of the files sensor has continued for a day"
            )


def _object(facts: TableFacts, kind: OrphanKind, key: str, why: str) -> Orphan:
    version = facts.staged[key]
    return Orphan(kind, key, why, version.size, facts.now_ms - version.mtime_us // 1000)


# --- what is looked at -----------------------------------------------------------------------------

GRACE_HOURS = 24
"""Minimum age of an orphan in hours, unless the caller gives another one: no upload, no call to Pinot and no
executor that outlived its driver lasts so long."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """The orphans of a table.

    :ivar old: orphans that may be deleted, in this order.
    :ivar young: orphans that may be deleted once they are old enough.
    :ivar expired: the snapshots among `old`.
    :ivar notes: what could not be judged, and why.
    :ivar bad_rows: the rows put aside that stay.
    """

    old: tuple[Orphan, ...]
    young: tuple[Orphan, ...]
    expired: tuple[SnapshotHeader, ...]
    notes: tuple[str, ...]
    bad_rows: KeptBadRows = NO_BAD_ROWS


def garbage(driver: Driver, grace_ms: int) -> Garbage:
    """Find the orphans of a table; needs no lease and changes nothing.

    :param grace_ms: minimum age before an orphan may be deleted, by this machine's clock.
    :raises PinotAssetsError: as `survey`.
    """
    driver.require_known()
    clients = driver.clients
    return survey(driver.spec, clients, clients.store.pointer(), grace_ms, clients.now_ms())


def survey(spec: TableSpec, clients: TableClients, pointer: Pointer, grace_ms: int, now_ms: int) -> Garbage:
    """Find the orphans of a table.

    :param pointer: the pointer as it is now; under the lease, the owner's.
    :param now_ms: time by the clock of the staging area.
    :raises SnapshotCorrupt: the current snapshot cannot be read, so nothing can be judged.
    :raises PinotNotFound: Pinot has no such table.
    """
    staging = clients.staging
    session = clients.store.active_session(pointer)
    segments = clients.pinot.all_segments(spec.name)
    lineage = clients.pinot.lineage(spec.name)  # after the segments, so that each is seen with its entry
    listed = [*staged(staging, "")]
    ref = pointer.current_snapshot
    ledger = staging.reach(ref).segments if ref is not None else None
    if ledger is not None:
        beside = unknown_of(spec.name, lineage.visible(segments), ledger)
        ledger |= published(spec.name, clients.pinot, staging, pointer, beside)  # for a restored backup
    has_none = not snapshot_headers(listed) and not any(is_ours(spec.name, name) for name in segments)
    if ref is not None or has_none:
        expired, kept, why = _snapshots_to_go(spec, clients, listed, pointer, session, grace_ms, now_ms)
    else:
        expired, kept, why = (), None, "ZooKeeper has no snapshot, and a run may need what is staged"
    days, has_bad_rows = spec.ingestion.bad_row_days_to_keep, any(is_bad_rows(info.key) for info in listed)
    in_use = versions_in_use(staging, pointer) if has_bad_rows else None
    old, young = list[Orphan](), list[Orphan]()
    for orphan in orphans_of(
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
            packs=_packs_needed(staging, kept) if session is None and kept is not None else None,
            bad_rows=BadRowRetention(days, session.id if session is not None else "", in_use),
            now_ms=now_ms,
            here_ms=clients.now_ms(),
        )
    ):
        (old if orphan.may_go(grace_ms) else young).append(orphan)
    notes = (f"nothing that is staged is deleted: {why}",) if why else ()
    kept_rows = KeptBadRows.of(days, listed, {orphan.name for orphan in old}, now_ms)
    return Garbage(tuple(old), tuple(young), expired, notes, kept_rows)


def _packs_needed(staging: Staging, kept: Reach) -> frozenset[str] | None:
    """Return the member lists that kept snapshots name and the rows objects that these name; None if one of
    the lists cannot be read."""
    lists = [key for key in kept.objects if members_sha256(key)]
    try:
        found = in_threads(staging.members, lists, THREADS, "member lists")
    except SnapshotCorrupt:
        return None
    return frozenset(lists).union(*(map(rows_key, members.rows_objects) for members in found))


def _snapshots_to_go(
    spec: TableSpec,
    clients: TableClients,
    listed: Sequence[ObjectInfo],
    pointer: Pointer,
    session: Session | None,
    grace_ms: int,
    now_ms: int,
) -> tuple[tuple[SnapshotHeader, ...], Reach | None, str]:
    """Return the snapshots to delete, what the others need, and why the staging area cannot be judged."""
    there, ref = snapshot_headers(listed), pointer.current_snapshot
    try:
        if why := why_none_goes(clients, listed, ref):
            return (), None, why
        old = SnapshotRetention.of(spec).expired(there, (), now_ms) if ref is not None else ()
        asked = needed(spec, clients, there, pointer, session) if old else frozenset()
        going = tuple(h for h in old if h.ref not in asked and now_ms - h.stored_ms >= grace_ms)
        return (
            going,
            reach_of(clients.staging.reach(header.ref) for header in there if header not in going),
            "",
        )
    except SnapshotCorrupt as error:
        return (), None, f"a kept snapshot cannot be read: {error.reason}"
