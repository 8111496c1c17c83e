"""Giving up a session, and sweeping what a dead driver may have left in Pinot (rules R2, R18, R19)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from pinot_assets.errors import SessionError
from pinot_assets.ingest.contract.task_outputs import CUT_VALUES
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.recover.finalize import load_switch, note_foreign
from pinot_assets.session.recover.resolve_interrupted import without_entry
from pinot_assets.session.stores.stored_snapshots import segments_of, snapshot_refs
from pinot_assets.session.values.state import Mode, Outcome, Pointer, Session, State, close, is_ours
from pinot_assets.snapshot.manifest import Snapshot


def abandon(
    context: TriggerContext, session: Session, outcome: Outcome, why: str, pointer: Pointer | None = None
) -> Session:
    """Close an unpublished session: revert, read back, write the outcome, delete what was staged.

    The order is rule R19's. The caller has resolved the session, so it is known not to be published.

    :param pointer: what is to stand there with the outcome, where more changes than the open session.
    :returns: the session as it was closed.
    """
    session = without_entry(context, session)
    done = close(replace(session, last_error=session.last_error or why), outcome, context.clients.now_ms())
    context.lease.write(pointer=replace(pointer or context.lease.pointer, active_session=""), session=done)
    if session.state is State.SWITCH and session.switch_object is not None:
        context.switcher.delete(load_switch(context, session).names_to)
    _delete_staged(context, session)
    context.note(f"session {session.id} abandoned: {why}")
    return done


def sweep(context: TriggerContext, session: Session | None, current: Snapshot | None) -> None:
    """Delete, and report, visible segments of ours that neither the ledger nor the open switch knows (R2)."""
    show_again(context, current)
    visible = context.clients.pinot.visible_segments(context.spec.name)
    if context.mode is Mode.SWAP and session is None:
        note_foreign(context, {s for s in visible if not is_ours(context.spec.name, s)})
    if beside := beside_first(context, current, visible):
        context.note(rows_twice(beside))
    strays = strays_of(context, session, current, visible)
    if strays:
        refuse_undone(context, strays, current)
        context.switcher.delete(strays)
        context.note(f"deleted {len(strays)} stray segments that no snapshot knows, first {min(strays)}")


def show_again(context: TriggerContext, current: Snapshot | None) -> None:
    """Show what is published and was hidden by a start of ours that landed after the end (R1)."""
    if current is not None and (hidden := context.switcher.undo_delayed_starts(current.segments)):
        context.note(f"{len(hidden)} published segments were hidden by a delayed start of ours; shown again")


def strays_of(
    context: TriggerContext, session: Session | None, current: Snapshot | None, visible: frozenset[str]
) -> set[str]:
    """Those of the visible segments that are ours and neither in the ledger nor in the open switch."""
    known = set(current.segments) if current else set()
    if session is not None and session.switch_object is not None:
        known |= set(load_switch(context, session).names_to)
    return unknown_of(context.spec.name, visible, known)


def beside_first(
    context: TriggerContext, current: Snapshot | None, visible: frozenset[str]
) -> tuple[str, ...]:
    """Visible segments of somebody else that stay beside what sync or append publishes first, sorted."""
    if current is not None or context.mode is Mode.SWAP:
        return ()
    return tuple(sorted(name for name in visible if not is_ours(context.spec.name, name)))


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
    gone = set(current.segments) - context.clients.pinot.all_segments(context.spec.name) if current else set()
    staging = context.clients.staging
    if gone and any(
        not strays.isdisjoint(names) for _, names in segments_of(staging, snapshot_refs(staging))
    ):
        raise SessionError(
            f"{context.spec.name} is stopped: a switch of it was undone, and not from here",
            why=f"{len(gone)} published segments are gone, first {min(gone)}, "
            f"and former ones are visible again, first {min(strays)}",
            hint=f"`pinot-assets rollback {context.spec.name}` takes note of it; then `resume` brings back "
            "what the source holds",
        )
    context.refuse_published(frozenset(strays))


def _delete_staged(context: TriggerContext, session: Session) -> None:
    """Receipts first: without its receipt a tar is nothing."""
    store = context.clients.staging.store
    tars = f"segments/{context.spec.name}__{session.id}_"
    receipts = [info.key for info in store.list(f"sessions/{session.id}/files")]
    bad_rows = [info.key for info in store.list(f"sessions/{session.id}/bad-rows")]
    staged = [info.key for info in store.list("segments") if info.key.startswith(tars)]
    moving = [info.key for info in store.list(f"sessions/{session.id}/moving")]
    cut = [info.key for info in store.list(f"sessions/{session.id}/{CUT_VALUES}")]
    for key in (*receipts, *bad_rows, *cut, *moving, *staged):
        store.delete(key)
