"""End a session: publish and record it (W6, docs/design/session.md#w6), or give it up. Renew or revert its
open lineage entry until then (rules R2, R4, R19)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pinot_assets.core.stored_format import plain
from pinot_assets.core.text import plural
from pinot_assets.core.untrusted import typed
from pinot_assets.errors import SwitchConflict
from pinot_assets.ingest.contract.task_outputs import CUT_VALUES
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.hold import after_publishing
from pinot_assets.session.values.packs import packs_built, places_of, published_packs
from pinot_assets.session.values.plan import Plan, published_files
from pinot_assets.session.values.state import Mode, Outcome, Pointer, Session, State, ended
from pinot_assets.session.values.trouble import STALLS
from pinot_assets.snapshot.batch_receipt import BATCHES
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.recipes import in_use, with_recipe


def finalize(context: TriggerContext, session: Session) -> Snapshot:
    """W6: see the new segments at every broker, write the snapshot, close the session in one transaction."""
    confirm(context, session)
    plan, parent = context.staging.plan(session.plan), context.lease.pointer.current_snapshot
    snapshot = snapshot_of(context, session, plan, session.lineage_entry_id, parent)
    close_published(context, session, Outcome.PUBLISHED, snapshot)
    return snapshot


def confirm(context: TriggerContext, session: Session) -> None:
    """Wait until every broker shows the new segments, except those that others deleted or replaced since."""
    switch = load_switch(context, session)
    completed = context.switcher().fetch().in_state(LineageState.COMPLETED)
    replaced = frozenset[str]().union(*(e.segments_from for e in completed))
    there = context.pinot.all_segments(context.table) - replaced
    names = [name for name in switch.names_to if name in there]
    if len(names) < len(switch.names_to):
        lost = len(switch.names_to) - len(names)
        context.note(
            f"{plural(lost, 'segment')} of {session.id} deleted or replaced after its switch, not "
            "by pinot-assets"
        )
    if context.switcher().undo_delayed_starts(names):
        context.note(f"a delayed start of {session.id} hid its switch; it is visible again")
    context.switcher().confirm_visible(names, switch.segments_from)
    if session.mode is Mode.SWAP:
        note_foreign(context, context.pinot.visible_segments(context.table).difference(switch.names_to))


def note_foreign(context: TriggerContext, foreign: Collection[str]) -> None:
    """Note foreign segments that stay visible after a swap: they were pushed after its W1 (edge case E21)."""
    if foreign:
        named = ", ".join(sorted(foreign)[:5]) + (f" and {len(foreign) - 5} more" if len(foreign) > 5 else "")
        context.note(
            f"visible beside the snapshot until the next swap, and not pushed by pinot-assets: {named}"
        )


def load_switch(context: TriggerContext, session: Session) -> Switch:
    """Return the session's newest switch; the session must have one."""
    assert session.switch_object is not None
    return context.staging.switch(session.switch_object)


def snapshot_of(
    context: TriggerContext, session: Session, plan: Plan, entry_id: str, parent: SnapshotRef | None
) -> Snapshot:
    """Return the new snapshot: the ledger with the files that the plan published.

    :param entry_id: the lineage entry whose revert leads back to `parent`, "" if there is none.
    """
    receipts = context.staging.accepted_receipts(plan)
    current = context.current_snapshot()
    known = current.recipes if current is not None else ()
    recipes, revision = with_recipe(known, plan.recipe if plan.done or plan.packs_done else None)
    members = {row.ordinal: context.staging.members(row.uri) for row in plan.packs_done}
    built = packs_built(plan, receipts, members, revision)
    places = places_of(built, members, plan.recipe)
    files = published_files(plan, receipts, current, revision, places)
    packs = published_packs(built, files, current)
    snapshot = Snapshot(
        seq=session.seq,
        table=context.spec.name_with_type,
        session=session.id,
        mode=session.mode,
        lineage_entry_id=entry_id,
        parent=parent,
        listing_digest=plan.listing_digest,
        config_fingerprint=session.config_fingerprint,
        published_ms=context.clients.now_ms(),
        files=files,
        audit=typed(plain(session.audit, session.format), dict) if session.audit else {},
        owner=context.clients.store.owner(),
        format=session.format,
        asked_by=session.asked_by,
        recipes=in_use(recipes, {file.revision for file in files} | {pack.revision for pack in packs}),
        packs=packs,
    )
    switch = load_switch(context, session) if session.switch_object is not None else None
    if switch is None or not switch.carried:
        return snapshot
    (new,) = switch.segments_to
    return snapshot.with_segments({switch.carried: new})


def close_published(
    context: TriggerContext, session: Session, outcome: Outcome, snapshot: Snapshot
) -> Session:
    """Write the snapshot, and in one transaction make it the current one and close the session.

    The hold shrinks with it: a repaired file is not held any more. Nor is the removal of a file that has come
    back: if somebody removes it again, that is a new removal.
    """
    hold = context.put_hold(after_publishing(context.hold(), context.current_snapshot(), snapshot))
    ref = context.staging.put_snapshot(snapshot)
    error = "" if session.failures is None else session.last_error
    done = ended(replace(session, last_error=error), outcome, context.clients.now_ms())
    pointer = replace(context.lease.pointer, active_session="", current_snapshot=ref, hold=hold)
    context.lease.write(pointer=pointer, session=done)
    return done


def abandon(
    context: TriggerContext, session: Session, outcome: Outcome, why: str, pointer: Pointer | None = None
) -> Session:
    """Give up an unpublished session: revert, read back, write the outcome, delete what was staged.

    The order is rule R19's. The caller has resolved the session, so it is known not to be published.

    :param pointer: the pointer to write with the outcome, if more than its open session changes.
    :returns: the closed session.
    """
    session = revert_entry_of(context, session)
    done = ended(replace(session, last_error=session.last_error or why), outcome, context.clients.now_ms())
    context.lease.write(pointer=replace(pointer or context.lease.pointer, active_session=""), session=done)
    if session.state is State.SWITCH and session.switch_object is not None:
        context.switcher().delete(load_switch(context, session).names_to)
    _delete_staged(context, session)
    context.note(f"session {session.id} abandoned: {why}")
    return done


def _delete_staged(context: TriggerContext, session: Session) -> None:
    """Delete the session's staged files, receipts first: without its receipt no tar is ever used."""
    store = context.staging.store
    tars = f"segments/{context.table}__{session.id}_"
    folders = [
        f"sessions/{session.id}/{name}" for name in ("files", BATCHES, "bad-rows", CUT_VALUES, "moving")
    ]
    keys = [info.key for folder in folders for info in store.list(folder)]
    keys += [info.key for info in store.list("segments") if info.key.startswith(tars)]
    for key in keys:
        store.delete(key)


def ask_if_open(context: TriggerContext, session: Session) -> bool:
    """Whether the session's lineage entry is IN_PROGRESS.

    :raises SwitchConflict: an end without an answer completed the entry after this driver had looked. Its
        segments are visible now and must not be treated as lost.
    """
    entry = context.pinot.lineage(context.table).get(session.lineage_entry_id)
    # A rollback by revert has no switch: its entry belongs to the snapshot that it leaves.
    if entry is not None and entry.state is LineageState.COMPLETED and session.switch_object is not None:
        raise SwitchConflict(
            f"{context.table} has just been switched",
            why=f"the end of lineage entry {entry.id} had got no answer, and has now completed it",
            hint="the next trigger records it",
        )
    return entry is not None and entry.state is LineageState.IN_PROGRESS


def ask_if_lost(context: TriggerContext, session: Session) -> bool:
    """Whether the entry of an unpublished switch is gone or reverted, or a revert of it was sent. Then its
    names are spent (R16)."""
    opened = session.switch_object is not None and session.lineage_entry_id != ""
    return opened and (session.revert_sent or not ask_if_open(context, session))


def ask_if_end_must_stop(context: TriggerContext, session: Session) -> bool:
    """Whether an end of the open entry was sent without an answer and must not be sent again."""
    if not session.end_sent or ask_if_lost(context, session):
        return False
    switch = load_switch(context, session)
    staged = context.pinot.all_segments(context.table).issuperset(switch.names_to)
    # Segments that are gone cannot be replaced (E20): the gate would refuse as long as the entry is open.
    staged &= context.pinot.visible_segments(context.table).issuperset(switch.segments_from)
    usable = staged and context.switcher().ask_if_usable(session.lineage_entry_id)
    return not (usable and session.gate_open and session.stalls < STALLS)


def renew_entry(context: TriggerContext, session: Session) -> Session:
    """Return the session with a young entry of the same names. Its audit stays valid; an end under way fails.

    :raises SwitchConflict: the entry was ended or lost meanwhile, or a source has gone.
    """
    entry_id = context.switcher().renew(load_switch(context, session), session.lineage_entry_id)
    return context.write_session(replace(session, lineage_entry_id=entry_id))


def stop_ending(context: TriggerContext, session: Session) -> Session:
    """Make an end under way fail by renewing its entry.

    :returns: the session with a young entry; or with a reverted entry, if the renewal is not possible.
    """
    try:
        return renew_entry(context, session)
    except SwitchConflict:
        if not ask_if_open(context, session):
            raise
        return _revert(context, session)


def revert_entry_of(context: TriggerContext, session: Session) -> Session:
    """Revert the open entry of an unpublished switch; do nothing if none is open (rules R4, R19).

    :returns: the session; the entry that it names, if any, is closed.
    :raises SwitchConflict: the entry was ended meanwhile, or Pinot does not show whether it was reverted.
    """
    if session.end_sent and not session.revert_sent and ask_if_open(context, session):
        session = stop_ending(context, session)  # or the end lands first and the revert undoes it
    return _revert(context, session) if ask_if_open(context, session) else session


def _revert(context: TriggerContext, session: Session) -> Session:
    """Store the revert, then send it. A revert without an answer may arrive late; an entry that was ended
    meanwhile would lose what it published, so later drivers must know of the revert."""
    if not session.revert_sent:
        session = context.write_session(replace(session, revert_issued=session.lineage_entry_id))
    context.switcher().revert_entry(session.lineage_entry_id)
    return session
