"""Moving a pointer that is behind what was published up to it, and dropping one of a table that is no more.

Both under the lease; `session/lineage/stale_pointer.py` tells what is behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pinot_assets.session.context.context import TriggerContext, beyond_all, is_fresh
from pinot_assets.session.detect.observe import is_older_than
from pinot_assets.session.lineage.stale_pointer import Behind, look, number_of, stop
from pinot_assets.session.recover.rebuild import close_lost_entries, hold_of_last_rollback
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.session_store import KEPT_SESSIONS
from pinot_assets.session.stores.stored_snapshots import StoredSnapshot, outlines, snapshot_refs
from pinot_assets.session.values.hold import still_held
from pinot_assets.session.values.state import Mode, ObjectRef, Outcome, Pointer, Session, close, is_ours
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef


def catch_up(context: TriggerContext) -> None:
    """Before a step decides anything by the pointer: make sure that it is not that of a restored backup.

    The newer snapshot that queries see becomes the ledger. Where Pinot was taken back as well, the pointer
    stays, and numbers go on beyond all that were given.

    :raises SessionError: what queries see is neither the pointer's nor a newer snapshot's; says what can be
        done.
    """
    if behind := _caught_up_but_for_choice(context):
        raise stop(context.spec.name, context.lease.pointer, behind.unknown, behind.newer)


def catch_up_as_chosen(context: TriggerContext) -> None:
    """The same before a rollback to a snapshot that a person named: that is one of the choices."""
    _caught_up_but_for_choice(context)


def adopted(table: str, clients: TableClients, pointer: Pointer) -> SnapshotRef | None:
    """The snapshot that a step would take for the current one; only looked at.

    :raises SessionError: as `catch_up`.
    """
    if is_fresh(pointer):
        return pointer.current_snapshot
    behind = look(table, clients, pointer, clients.store.active_session(pointer))
    if behind.seen is None and behind.unknown:
        raise stop(table, pointer, behind.unknown, behind.newer)
    return behind.seen or pointer.current_snapshot


def ledger_to_leave(table: str, clients: TableClients, pointer: Pointer) -> SnapshotRef | None:
    """The same for a rollback to a snapshot that a person named, which nothing newer stops."""
    if is_fresh(pointer):
        return pointer.current_snapshot
    behind = look(table, clients, pointer, clients.store.active_session(pointer))
    return behind.seen or pointer.current_snapshot


def _caught_up_but_for_choice(context: TriggerContext) -> Behind | None:
    """What is left to be chosen, None where nothing is."""
    pointer = context.lease.pointer
    if is_fresh(pointer):
        return None  # `rebuild.ledger` sees to it
    session = context.active_session()
    behind = look(context.spec.name, context.clients, pointer, session)
    if behind.seen is not None:
        _adopt(context, session, StoredSnapshot(behind.seen, context.clients.staging.snapshot(behind.seen)))
        return None
    _go_beyond(context, session, behind)
    return behind if behind.unknown else None


def _adopt(context: TriggerContext, session: Session | None, newest: StoredSnapshot) -> None:
    before, staging = context.lease.pointer, context.clients.staging
    kept = [*outlines(staging, snapshot_refs(staging))]
    pointer = replace(
        before,
        format=max(before.format, newest.snapshot.format),
        active_session="",
        next_seq=beyond_all(context),
        history=tuple(context.clients.store.session_nodes()[-KEPT_SESSIONS:]),
        current_snapshot=newest.ref,
        hold=_hold(context, kept, newest.snapshot),
    )
    closed = _closed(context, session, kept) if session is not None else None
    context.lease.write(pointer=pointer, session=closed)
    close_lost_entries(context)
    was = f"snapshot {number_of(before.current_snapshot)}" if before.current_snapshot else "no snapshot"
    context.note(
        f"the pointer in ZooKeeper was older than what queries see (it named {was}): they see exactly "
        f"snapshot {newest.snapshot.session}, which is the ledger now; the next session is "
        f"cp{pointer.next_seq}"
    )


def _hold(context: TriggerContext, kept: Iterable[StoredSnapshot], now: Snapshot) -> ObjectRef | None:
    """What is held back now: by a rollback that came after the pointer, else what the pointer knows of."""
    before, kept = context.lease.pointer, [*kept]
    since = number_of(before.current_snapshot)
    if any(k.snapshot.mode == Mode.ROLLBACK and k.snapshot.seq > since for k in kept):
        return hold_of_last_rollback(context, kept, now)
    if before.hold is None or context.mode is Mode.SWAP:
        return None  # a swap table that was published since is not held any more
    hold = still_held(context.hold(), now)
    return None if hold.is_empty else context.clients.staging.put_hold(now.session, hold)


def _closed(context: TriggerContext, session: Session, kept: Iterable[StoredSnapshot]) -> Session:
    """The session that the pointer takes for open, as it ended."""
    own = next((k.snapshot for k in kept if k.snapshot.session == session.id), None)
    if own is not None:
        published = replace(session, lineage_entry_id=own.lineage_entry_id, last_error="")
        return close(published, Outcome.PUBLISHED, own.published_ms)
    lost = replace(session, last_error="a later session has published; this one came from a restored backup")
    return close(lost, Outcome.CLEARED, context.clients.now_ms())


def _go_beyond(context: TriggerContext, session: Session | None, behind: Behind) -> None:
    """Numbers go on beyond all that were given, and a session that is over is not open."""
    pointer = context.lease.pointer
    nodes = context.clients.store.session_nodes()
    given = [header.seq for header in behind.newer] + [int(node[2:]) for node in nodes]
    active = session.node if session is not None else ""
    if max(given, default=0) < pointer.next_seq and pointer.active_session == active:
        return
    ahead = replace(pointer, next_seq=beyond_all(context), active_session=active)
    context.lease.write(pointer=ahead)
    if behind.newer and not behind.unknown and behind.newer[0].seq >= pointer.next_seq:
        newest = behind.newer[0].seq
        context.note(
            f"the staging area holds snapshot {newest}, which queries do not see: ZooKeeper and Pinot were "
            f"taken back, it seems. Sessions go on from snapshot {number_of(pointer.current_snapshot)} with "
            f"number {ahead.next_seq}; `pinot-assets rollback {context.spec.name} --to {newest}` would "
            "publish that snapshot again without building its files"
        )


# --- a ledger that outlived its table (edge case E12) -----------------------------------------------


def of_former_table(context: TriggerContext) -> Snapshot | None:
    """The ledger, where it is that of a table of the same name that is no more.

    Pinot 0.11 leaves our nodes in ZooKeeper when it deletes a table. One that is made again under the same
    name would never be filled: the ledger says that everything is published.
    """
    pointer, table = context.lease.pointer, context.spec.name
    made_ms = context.clients.store.table_made_ms() if pointer.current_snapshot is not None else None
    if made_ms is None:
        return None
    names = context.clients.pinot.all_segments(table)
    if any(is_ours(table, name) for name in names):
        return None  # before the ledger is read: one that cannot be is told later, when it is needed
    published = context.current_snapshot()
    return published if published is not None and is_older_than(published, made_ms) else None


def forget_former_table(context: TriggerContext) -> None:
    """Drop ledger and hold of a table that was made anew.

    The numbers of sessions go on, so nothing of the former table is met again (rule R17).
    """
    if (published := of_former_table(context)) is None:
        return
    pointer, session = context.lease.pointer, context.active_session()
    pointer = replace(pointer, current_snapshot=None, hold=None)
    if session is not None and session.mode is Mode.ROLLBACK:
        # There is nothing left to go back from. Any other session goes on: it lists again.
        closed = close(session, Outcome.CLEARED, context.clients.now_ms())
        context.lease.write(pointer=replace(pointer, active_session=""), session=closed)
    else:
        context.lease.write(pointer=pointer)
    context.note(
        f"{context.spec.name} was made anew after {published.session} had been published: "
        "all files count as new"
    )
