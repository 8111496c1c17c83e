"""Which snapshots of a table are kept, and taking away the others (docs/guides/gc.md).

Without a setting, all are kept. With one, a snapshot is deleted if neither the number nor the days of the
spec keep it and no rollback may still need it. Its header goes first, so that it does not count as kept,
then its rows, then the tars that no kept snapshot names. A driver that dies in between leaves a table that
works, and objects that `gc` finds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError, SnapshotCorrupt
from pinot_assets.pinot import versions
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.staged_files import remove, tar_keys
from pinot_assets.session.stores.staging import Reach, Staging, staged
from pinot_assets.session.stores.stored_snapshots import (
    MARKS,
    SnapshotHeader,
    left_behind,
    revertible,
    snapshot_headers,
    why_not_ours,
)
from pinot_assets.session.values.state import Mode, Pointer, Session
from pinot_assets.snapshot.manifest import SnapshotRef
from pinot_assets.source.file_table import ObjectInfo
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.tables.drift import held_table_config

SHARE = 10
"""After a switch, snapshots are deleted only if at least one in so many kept ones must go: all that stay are
read for it."""


@dataclass(frozen=True, slots=True)
class SnapshotRetention:
    """What a table spec asks for.

    :ivar number: of newest snapshots; None where the number does not count.
    :ivar days: how young; None where the age does not count.
    """

    number: int | None
    days: int | None

    @classmethod
    def of(cls, spec: TableSpec) -> SnapshotRetention:
        """A table's."""
        return cls(spec.ingestion.snapshots_to_keep, spec.ingestion.snapshot_days_to_keep)

    def expired(
        self, kept: Sequence[SnapshotHeader], needed: Collection[SnapshotRef], now_ms: int
    ) -> tuple[SnapshotHeader, ...]:
        """Return the snapshots that may be deleted, newest first.

        :param kept: all snapshots in the staging area.
        :param needed: see `needed`.
        """
        if self.number is None and self.days is None:
            return ()
        # A driver that died in its last step may have left a second one of the same number.
        newest = set(sorted({header.seq for header in kept}, reverse=True)[: self.number or 0])
        since = None if self.days is None else now_ms - self.days * versions.DAY_MS
        return tuple(
            header
            for header in kept
            if header.ref not in needed
            and header.seq not in newest
            and (since is None or header.stored_ms < since)
        )


def needed(
    spec: TableSpec,
    clients: TableClients,
    there: Sequence[SnapshotHeader],
    pointer: Pointer,
    session: Session | None,
) -> frozenset[SnapshotRef]:
    """Return the snapshots that must stay, whatever the table spec says: the current one, the one before it,
    all that reverts may still reach, the one that the last rollback left, that of the rollback with the
    present hold, and the target of an open rollback.

    :param there: all snapshots in the staging area, newest first.
    :param session: the open session.
    :raises SnapshotCorrupt: one of them cannot be read.
    """
    ref, refs = pointer.current_snapshot, set(_of_hold(clients.staging, there, pointer))
    if ref is not None:
        current = clients.staging.outline(ref)
        refs |= {ref, *left_behind(current), *_revertible(spec, clients, there)}
        if current.parent is not None:
            refs.add(current.parent)
    if session is not None and session.target is not None:
        refs.add(session.target)
    return frozenset(refs)


def _of_hold(staging: Staging, there: Sequence[SnapshotHeader], pointer: Pointer) -> Iterator[SnapshotRef]:
    """Yield the snapshot of the rollback with the present hold: only by it can `rebuild` find the hold again.

    A later rollback that was given up may have stored the hold again, but it left no snapshot.
    """
    if pointer.hold is None:
        return
    last = int(pointer.hold.key.removeprefix("sessions/cp").partition("-")[0])
    for header in there:
        if header.seq <= last and staging.outline(header.ref).mode == Mode.ROLLBACK:
            yield header.ref
            return


def _revertible(
    spec: TableSpec, clients: TableClients, there: Sequence[SnapshotHeader]
) -> Iterator[SnapshotRef]:
    version, config = clients.pinot.version(), held_table_config(spec, clients.pinot)
    window_ms = max(versions.RENEWAL_MS, versions.way_back_ms(version, config))
    return revertible(clients.staging, there, clients.now_ms(), window_ms)


def foreseen(context: TriggerContext) -> tuple[SnapshotHeader, ...]:
    """Return what `expire` would delete after a switch made now, newest first; delete nothing."""
    keep, clients, pointer = SnapshotRetention.of(context.spec), context.clients, context.lease.pointer
    if keep == SnapshotRetention(None, None):
        return ()
    there, now_ms = snapshot_headers(staged(clients.staging, "snapshots")), clients.now_ms()
    new = SnapshotHeader(SnapshotRef("", ""), 1 + max((header.seq for header in there), default=0), now_ms)
    try:
        asked = {new.ref, *_revertible(context.spec, clients, there)}
        asked.update(_of_hold(clients.staging, there, pointer))
    except SnapshotCorrupt:
        return ()  # as `expire`: they stay for now
    if pointer.current_snapshot is not None:  # which is the one before then
        asked.add(pointer.current_snapshot)
    gone = keep.expired([new, *there], asked, now_ms)
    return () if len(gone) * SHARE < len(there) + 1 or _why_none_goes(context) else gone


def expire(context: TriggerContext) -> None:
    """After a switch: take away the snapshots that nothing asks for.

    The switch has happened, so this never fails: a note names what could not be deleted, `gc` does it later.
    """
    try:
        failed = _expire(context)
    except PinotAssetsError as error:
        context.note(f"old snapshots are kept for now: {error.reason}")
        return
    if failed:
        key, why = failed[0]
        context.note(
            f"{plural(len(failed), 'object')} of old snapshots could not be deleted, first {key}: {why}"
        )


def _expire(context: TriggerContext) -> list[tuple[str, str]]:
    """Delete expired snapshots; return the keys that could not be deleted, each with the reason."""
    keep, staging = SnapshotRetention.of(context.spec), context.staging
    if keep == SnapshotRetention(None, None):
        return []
    there = snapshot_headers(staged(staging, "snapshots"))
    # By the clock that stamped them: the newest has just been written.
    now_ms = max((header.stored_ms for header in there), default=0)
    if not keep.expired(there, (), now_ms):
        return []
    asked = needed(context.spec, context.clients, there, context.lease.pointer, context.active_session())
    gone = keep.expired(there, asked, now_ms)
    if not gone or len(gone) * SHARE < len(there):
        return []
    if why := _why_none_goes(context):
        context.note(f"old snapshots are kept: {why}")
        return []
    reaches = {header: staging.reach(header.ref) for header in there}
    alone = reach_of(reaches[header] for header in gone)
    left = reach_of(reach for header, reach in reaches.items() if header not in gone)
    keys = [
        *sorted(alone.objects - left.objects - {header.ref.key for header in gone}),
        *(key for name in sorted(alone.segments - left.segments) for key in tar_keys(name)),
    ]
    removed = take_away(staging.store, gone, keys, reaches.__getitem__, context.lease.assert_held)
    failed = [(key, why) for key, why in removed if why]
    context.note(f"{len(gone):,} old snapshots were deleted")
    return failed


def _why_none_goes(context: TriggerContext) -> str:
    listed = [*staged(context.staging, MARKS), *staged(context.staging, "snapshots")]
    try:
        return why_none_goes(context.clients, listed, context.lease.pointer.current_snapshot)
    except SnapshotCorrupt as error:
        return error.reason


def why_none_goes(clients: TableClients, listed: Sequence[ObjectInfo], ref: SnapshotRef | None) -> str:
    """Return why no staged object may be deleted, "" if it may.

    :param listed: at least the folders of marks and of snapshots.
    :param ref: the current snapshot.
    :raises SnapshotCorrupt: one cannot be read, so its cluster is unknown.
    """
    staging = clients.staging
    if ref is not None and all(header.ref != ref for header in snapshot_headers(listed)):
        uri = f"{staging.store.uri}/snapshots"
        return f"a listing of {uri} lacks the current snapshot, {ref.key}, so it may lack others, too"
    return why_not_ours(staging, clients.store.owner(), listed, ref)


def take_away(
    store: ObjectStore,
    gone: Iterable[SnapshotHeader],
    others: Sequence[str],
    reach: Callable[[SnapshotHeader], Reach],
    before_batch: Callable[[], None],
) -> Iterator[tuple[str, str]]:
    """Delete the headers of these snapshots, then these objects. If a header cannot be deleted, the snapshot
    and all that it needs are kept.

    :param others: keys.
    :param reach: what a snapshot needs; where it cannot be read, any of the objects may be.
    :returns: as `remove`.
    """
    # The oldest first: where that ends half way, the current snapshot still leads back to all that are left.
    oldest_first = sorted(gone, key=lambda header: header.seq)
    stuck = set[str]()
    for key, why in remove(store, [header.ref.key for header in oldest_first], before_batch):
        if why:
            stuck.add(key)
        yield key, why
    spared = _needed_by((reach(header) for header in oldest_first if header.ref.key in stuck), others)
    yield from ((key, "a snapshot that could not be deleted needs it") for key in others if key in spared)
    yield from remove(store, [key for key in others if key not in spared], before_batch)


def _needed_by(some: Iterable[Reach], keys: Sequence[str]) -> set[str]:
    """Which of these objects they need."""
    try:
        reach = reach_of(some)
    except SnapshotCorrupt:
        return set(keys)
    named = reach.objects.union(*(tar_keys(name) for name in reach.segments))
    folders = tuple(f"sessions/{session}/" for session in reach.sessions)
    return {key for key in keys if key in named or key.startswith(folders)}


def reach_of(reaches: Iterable[Reach]) -> Reach:
    """What these snapshots need together.

    :raises SnapshotCorrupt: one cannot be read, so its needs are unknown.
    """
    return reduce(or_, reaches, Reach())
