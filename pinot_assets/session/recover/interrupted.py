"""What a driver that died may have left: a switch half way, and strays in Pinot (rules R2, R18);
and a ledger that outlived its table: dropped when the table was made anew (edge case E12).

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
from pinot_assets.session.values.state import Mode, Outcome, Session, close, is_ours
from pinot_assets.snapshot.manifest import Snapshot


def sweep(context: TriggerContext, session: Session | None, current: Snapshot | None) -> None:
    """Delete, and report, visible segments of ours that neither the ledger nor the open switch knows (R2)."""
    show_again(context, current)
    visible = context.pinot.visible_segments(context.table)
    if context.mode is Mode.SWAP and session is None:
        note_foreign(context, {s for s in visible if not is_ours(context.table, s)})
    if beside := beside_first(context, current, visible):
        context.note(rows_twice(beside))
    if strays := strays_of(context, session, current, visible):
        refuse_undone(context, strays, current)
        context.switcher().delete(strays)
        context.note(f"deleted {len(strays)} stray segments that no snapshot knows, first {min(strays)}")


def show_again(context: TriggerContext, current: Snapshot | None) -> None:
    """Show what is published and was hidden by a start of ours that landed after the end (R1)."""
    if current is not None and (hidden := context.switcher().undo_delayed_starts(current.segments)):
        context.note(f"{len(hidden)} published segments were hidden by a delayed start of ours; shown again")


def strays_of(
    context: TriggerContext, session: Session | None, current: Snapshot | None, visible: frozenset[str]
) -> set[str]:
    """Those of the visible segments that are ours and neither in the ledger nor in the open switch."""
    known = set(current.segments) if current else set()
    if session is not None and session.switch_object is not None:
        known |= set(load_switch(context, session).names_to)
    return unknown_of(context.table, visible, known)


def beside_first(
    context: TriggerContext, current: Snapshot | None, visible: frozenset[str]
) -> tuple[str, ...]:
    """Visible segments of somebody else that stay beside what sync or append publishes first, sorted."""
    if current is not None or context.mode is Mode.SWAP:
        return ()
    return tuple(sorted(name for name in visible if not is_ours(context.table, name)))


def rows_twice(beside: Sequence[str]) -> str:
    """What `beside_first` found, as a warning."""
    return (
        f"nothing was published from here so far, and {len(beside)} visible segments are somebody else's, "
        f"first {beside[0]}: they stay, and rows that are in the files and in them are there twice; "
        'consistentPushSwapEnabled: "true" for the first run replaces them'
    )


def unknown_of(table: str, visible: Iterable[str], known: Set[str]) -> set[str]:
    """Visible segments of ours that nothing knows (R2)."""
    return {name for name in visible if is_ours(table, name)} - known


def refuse_undone(context: TriggerContext, strays: set[str], current: Snapshot | None) -> None:
    """What a revert by hand brought back is no stray, but all that is left of its rows in Pinot.

    :raises SessionError: segments of the ledger are gone, and those of a former snapshot are back; or the
        pointer is behind what was published, and they are no strays at all.
    """
    gone = set(current.segments) - context.pinot.all_segments(context.table) if current else set()
    if gone and any(
        not strays.isdisjoint(names)
        for _, names in segments_of(context.staging, snapshot_refs(context.staging))
    ):
        raise SessionError(
            f"{context.table} is stopped: a switch of it was undone, and not from here",
            why=f"{len(gone)} published segments are gone, first {min(gone)}, "
            f"and former ones are visible again, first {min(strays)}",
            hint=f"`pinot-assets rollback {context.table}` takes note of it; then `resume` brings back "
            "what the source holds",
        )
    context.refuse_published(frozenset(strays))


def resolve_interrupted(context: TriggerContext, session: Session) -> Session | None:
    """Find out what became of a session that was left in SWITCH.

    :returns: None when it was published after all (and is recorded now), else the session, still open.
    """
    if (left := adopt_open_entry(context, session)) is None:
        finalize(context, session)
        context.note(f"session {session.id} had been switched before its driver died; recorded now")
    elif ask_if_lost(context, left):
        # Nothing hides them any more: what was pushed is visible now, or may be in a moment.
        context.switcher().delete(load_switch(context, left).names_to)
    return left


def adopt_open_entry(context: TriggerContext, session: Session) -> Session | None:
    """The session with the entry that is open for it, which is stored; None when its switch has happened."""
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
    """The session with the entry that is open for its switch, where its driver died between the start and
    the write of the entry's id; else as it is. Only looked at."""
    if ask_if_open(context, session) or (twin := context.switcher().open_twin(switch)) is None:
        return session
    return replace(session, lineage_entry_id=twin.id)


# --- a table made anew -------------------------------------------------------------------------------


def of_former_table(context: TriggerContext) -> Snapshot | None:
    """The ledger, where it is that of a table of the same name that is no more.

    Pinot 0.11 leaves our nodes in ZooKeeper when it deletes a table. One that is made again under the same
    name would never be filled: the ledger says that everything is published.
    """
    pointer, table = context.lease.pointer, context.table
    made_ms = context.clients.store.table_made_ms() if pointer.current_snapshot is not None else None
    if made_ms is None:
        return None
    names = context.pinot.all_segments(table)
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
        f"{context.table} was made anew after {published.session} had been published: all files count as new"
    )
