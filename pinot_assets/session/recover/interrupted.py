"""Clear up after a driver that died: resolve its switch, delete strays in Pinot (rules R2, R18).
Also drop a ledger that outlived its table, once the table is re-created (edge case E12).

Source: docs/design/session.md#what-became-of-a-switch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from pinot_assets.errors import SessionError
from pinot_assets.session.close import ask_if_lost, ask_if_open, finalize, load_switch, note_foreign
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.detect.observe import is_older_than
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.stores.stored_snapshots import segments_of, snapshot_refs
from pinot_assets.session.values.state import Mode, Outcome, Session, ended, is_ours
from pinot_assets.snapshot.manifest import Snapshot


def delete_strays(context: TriggerContext, session: Session | None, current: Snapshot | None) -> None:
    """Delete and report strays: visible segments of ours in neither the ledger nor the open switch (R2)."""
    show_again(context, current)
    visible = context.pinot.visible_segments(context.table)
    if context.mode is Mode.SWAP and session is None:
        note_foreign(context, {s for s in visible if not is_ours(context.table, s)})
    if beside := beside_first(context, current, visible):
        context.note(rows_twice(beside))
    if strays := strays_of(context, session, current, visible):
        refuse_undone(context, strays, current)
        context.switcher().delete(strays)
        context.note(f"deleted {len(strays):,} stray segments that are in no snapshot, first {min(strays)}")


def show_again(context: TriggerContext, current: Snapshot | None) -> None:
    """Show published segments again that a delayed start of ours hid (R1)."""
    if current is not None and (hidden := context.switcher().undo_delayed_starts(current.segments)):
        context.note(
            f"{len(hidden):,} published segments were hidden by a delayed start of pinot-assets; "
            "they are visible again"
        )


def strays_of(
    context: TriggerContext, session: Session | None, current: Snapshot | None, visible: frozenset[str]
) -> set[str]:
    """Return visible segments of ours that are neither in the ledger nor in the open switch."""
    known = set(current.segments) if current else set()
    if session is not None and session.switch_object is not None:
        known |= set(load_switch(context, session).names_to)
    return unknown_of(context.table, visible, known)


def beside_first(
    context: TriggerContext, current: Snapshot | None, visible: frozenset[str]
) -> tuple[str, ...]:
    """Return foreign visible segments that stay beside a first sync or append session, sorted by name."""
    if current is not None or context.mode is Mode.SWAP:
        return ()
    return tuple(sorted(name for name in visible if not is_ours(context.table, name)))


def rows_twice(beside: Sequence[str]) -> str:
    """Return the warning about the segments that `beside_first` returned."""
    return (
        f"pinot-assets has published nothing here yet, and {len(beside):,} visible segments come "
        f"from another program, first {beside[0]}: they stay, so queries see rows twice that are "
        'in them and in the files; consistentPushSwapEnabled: "true" for the first run '
        "replaces them"
    )


def unknown_of(table: str, visible: Iterable[str], known: Set[str]) -> set[str]:
    """Return visible segments of ours that are not in `known` (R2)."""
    return {name for name in visible if is_ours(table, name)} - known


def refuse_undone(context: TriggerContext, strays: set[str], current: Snapshot | None) -> None:
    """Refuse to delete segments that a revert by hand brought back: Pinot has no other copy of their rows.

    :raises SessionError: segments of the ledger are gone and those of a former snapshot are visible; or the
        pointer is stale, so that these segments are published and no strays.
    """
    gone = set(current.segments) - context.pinot.all_segments(context.table) if current else set()
    if gone and any(
        not strays.isdisjoint(names)
        for _, names in segments_of(context.staging, snapshot_refs(context.staging))
    ):
        raise SessionError(
            f"{context.table} is stopped: another program undid a switch of it",
            why=f"{len(gone):,} published segments are missing, first {min(gone)}, and former ones "
            f"are visible again, first {min(strays)}",
            hint=f"`pinot-assets rollback {context.table}` records it; then `resume` publishes again "
            "what the source has",
        )
    context.refuse_published(frozenset(strays))


def resolve_interrupted(context: TriggerContext, session: Session) -> Session | None:
    """Find out what became of a session that was left in SWITCH, and record it if it was published.

    :returns: None if it was published after all and is now recorded, else the session, still open.
    """
    if (left := adopt_open_entry(context, session)) is None:
        finalize(context, session)
        context.note(f"session {session.id} was switched before its driver died; it is recorded now")
    elif ask_if_lost(context, left):
        # The lost entry hides nothing any more: the pushed segments are visible, or will be in a moment.
        context.switcher().delete(load_switch(context, left).names_to)
    return left


def adopt_open_entry(context: TriggerContext, session: Session) -> Session | None:
    """Return the session after storing the open entry of its switch; None if the switch has happened."""
    if session.switch_object is None:
        return session
    switch = load_switch(context, session)
    if context.switcher().ask_if_published(switch, session.lineage_entry_id, session.end_issued):
        return None
    opened = with_open_entry(context, session, switch)
    if opened != session:
        context.lease.write(session=opened)
    return opened


def with_open_entry(context: TriggerContext, session: Session, switch: Switch) -> Session:
    """Return the session with the id of its switch's open entry, if its driver died before it stored that id;
    else return it unchanged. Stores nothing."""
    if ask_if_open(context, session) or (twin := context.switcher().open_twin(switch)) is None:
        return session
    return replace(session, lineage_entry_id=twin.id)


# --- a re-created table -------------------------------------------------------------------------------


def of_former_table(context: TriggerContext) -> Snapshot | None:
    """Return the ledger if it belongs to a deleted table of the same name, else None.

    Pinot 0.11 leaves our nodes in ZooKeeper when it deletes a table. A table that is created again under the
    same name would never be filled: the ledger says that everything is published.
    """
    pointer, table = context.lease.pointer, context.table
    made_ms = context.clients.store.table_made_ms() if pointer.current_snapshot is not None else None
    if made_ms is None:
        return None
    names = context.pinot.all_segments(table)
    if any(is_ours(table, name) for name in names):
        return None  # first: an unreadable ledger must fail only where it is needed
    published = context.current_snapshot()
    return published if published is not None and is_older_than(published, made_ms) else None


def forget_former_table(context: TriggerContext) -> None:
    """Drop ledger and hold of a table that was re-created.

    The numbers of sessions continue, so no name of the former table is used again (rule R17).
    """
    if (published := of_former_table(context)) is None:
        return
    pointer, session = context.lease.pointer, context.active_session()
    pointer = replace(pointer, current_snapshot=None, hold=None)
    if session is not None and session.mode is Mode.ROLLBACK:
        # A rollback has no snapshot to leave any more. Any other session continues: it lists again.
        closed = ended(session, Outcome.CLEARED, context.clients.now_ms())
        context.lease.write(pointer=replace(pointer, active_session=""), session=closed)
    else:
        context.lease.write(pointer=pointer)
    context.note(
        f"{context.table} was deleted and created again after {published.session} was published: "
        "all files count as new"
    )
