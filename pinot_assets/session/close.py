"""How a session ends: published and recorded (W6, docs/design/session.md#w6), or given up; and what becomes
of its open lineage entry until then (rules R2, R4, R19)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pinot_assets.core.stored_format import plain
from pinot_assets.core.text import plural
from pinot_assets.errors import SwitchConflict
from pinot_assets.ingest.contract.task_outputs import CUT_VALUES
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.hold import after_publishing
from pinot_assets.session.values.plan import Plan, published_files
from pinot_assets.session.values.state import Mode, Outcome, Pointer, Session, State, close
from pinot_assets.session.values.trouble import STALLS
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef


def finalize(context: TriggerContext, session: Session) -> Snapshot:
    """W6: see the new set everywhere, write the snapshot, close the session in one transaction."""
    confirm(context, session)
    plan, parent = context.staging.plan(session.plan), context.lease.pointer.current_snapshot
    snapshot = snapshot_of(context, session, plan, session.lineage_entry_id, parent)
    close_published(context, session, Outcome.PUBLISHED, snapshot)
    return snapshot


def confirm(context: TriggerContext, session: Session) -> None:
    """See the new set in the lineage and at every broker, less what others took away since."""
    switch = load_switch(context, session)
    completed = context.switcher().fetch().in_state(LineageState.COMPLETED)
    replaced = frozenset[str]().union(*(e.segments_from for e in completed))
    there = context.pinot.all_segments(context.table) - replaced
    names = [name for name in switch.names_to if name in there]
    if len(names) < len(switch.names_to):
        lost = len(switch.names_to) - len(names)
        context.note(
            f"{plural(lost, 'segment')} of {session.id} deleted or replaced after its switch, "
            "not by this project"
        )
    if context.switcher().undo_delayed_starts(names):
        context.note(f"a start of {session.id} landed after its switch and hid it; shown again")
    context.switcher().confirm_visible(names, switch.segments_from)
    if session.mode is Mode.SWAP:
        note_foreign(context, context.pinot.visible_segments(context.table).difference(switch.names_to))


def note_foreign(context: TriggerContext, foreign: Collection[str]) -> None:
    """Say what a swap leaves in sight because it came after its W1 (edge case E21)."""
    if foreign:
        named = ", ".join(sorted(foreign)[:5]) + (f" and {len(foreign) - 5} more" if len(foreign) > 5 else "")
        context.note(f"visible beside the snapshot until the next swap, not pushed by this project: {named}")


def load_switch(context: TriggerContext, session: Session) -> Switch:
    """The newest switch of a session that has one."""
    assert session.switch_object is not None
    return context.staging.switch(session.switch_object)


def snapshot_of(
    context: TriggerContext, session: Session, plan: Plan, entry_id: str, parent: SnapshotRef | None
) -> Snapshot:
    """The ledger with what the plan published.

    :param entry_id: the lineage entry whose revert leads back to `parent`, "" where none does.
    """
    receipts = context.staging.accepted_receipts(plan)
    files = published_files(plan, receipts, context.current_snapshot())
    switch = load_switch(context, session) if session.switch_object is not None else None
    if switch is not None and switch.carried:
        old, (new,) = switch.carried, switch.segments_to  # the segment that stays, and what it is called now
        files = tuple(
            replace(f, outputs=tuple(new if o.segment == old else o for o in f.outputs)) for f in files
        )
    return Snapshot(
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
        audit=plain(session.audit, session.format) if session.audit else {},
        owner=context.clients.store.owner(),
        format=session.format,
    )


def close_published(
    context: TriggerContext, session: Session, outcome: Outcome, snapshot: Snapshot
) -> Session:
    """Write the snapshot, and in one transaction make it the current one and close the session.

    What a rollback holds back shrinks with it: a file that was repaired is held no longer, and a removal of
    one that has come back would be another one.
    """
    hold = context.put_hold(after_publishing(context.hold(), context.current_snapshot(), snapshot))
    ref = context.staging.put_snapshot(snapshot)
    error = "" if session.failures is None else session.last_error
    done = close(replace(session, last_error=error), outcome, context.clients.now_ms())
    pointer = replace(context.lease.pointer, active_session="", current_snapshot=ref, hold=hold)
    context.lease.write(pointer=pointer, session=done)
    return done


def abandon(
    context: TriggerContext, session: Session, outcome: Outcome, why: str, pointer: Pointer | None = None
) -> Session:
    """Close an unpublished session: revert, read back, write the outcome, delete what was staged.

    The order is rule R19's. The caller has resolved the session, so it is known not to be published.

    :param pointer: what is to stand there with the outcome, where more changes than the open session.
    :returns: the session as it was closed.
    """
    session = revert_entry_of(context, session)
    done = close(replace(session, last_error=session.last_error or why), outcome, context.clients.now_ms())
    context.lease.write(pointer=replace(pointer or context.lease.pointer, active_session=""), session=done)
    if session.state is State.SWITCH and session.switch_object is not None:
        context.switcher().delete(load_switch(context, session).names_to)
    _delete_staged(context, session)
    context.note(f"session {session.id} abandoned: {why}")
    return done


def _delete_staged(context: TriggerContext, session: Session) -> None:
    """Receipts first: without its receipt a tar is nothing."""
    store = context.staging.store
    tars = f"segments/{context.table}__{session.id}_"
    folders = [f"sessions/{session.id}/{name}" for name in ("files", "bad-rows", CUT_VALUES, "moving")]
    keys = [info.key for folder in folders for info in store.list(folder)]
    keys += [info.key for info in store.list("segments") if info.key.startswith(tars)]
    for key in keys:
        store.delete(key)


def ask_if_open(context: TriggerContext, session: Session) -> bool:
    """Whether the session's lineage entry waits for its end.

    :raises SwitchConflict: it does not any more: an end that gave no answer completed it, after this driver
        had looked whether it did. What is visible now must not be taken for lost.
    """
    entry = context.pinot.lineage(context.table).get(session.lineage_entry_id)
    # A rollback by reverting has no switch of its own: the entry is that of the snapshot it leaves.
    if entry is not None and entry.state is LineageState.COMPLETED and session.switch_object is not None:
        raise SwitchConflict(
            f"{context.table} was switched just now",
            why=f"the end of lineage entry {entry.id}, which had given no answer, completed it",
            hint="the next trigger records it",
        )
    return entry is not None and entry.state is LineageState.IN_PROGRESS


def ask_if_lost(context: TriggerContext, session: Session) -> bool:
    """Whether the entry of an unpublished switch was reverted or reaped, or may be reverted at any moment:
    its names are spent (R16)."""
    opened = session.switch_object is not None and session.lineage_entry_id != ""
    return opened and (session.revert_sent or not ask_if_open(context, session))


def ask_if_end_must_stop(context: TriggerContext, session: Session) -> bool:
    """Whether the end of an open entry was sent, gave no answer, and is not to be sent once more."""
    if not session.end_sent or ask_if_lost(context, session):
        return False
    switch = load_switch(context, session)
    staged = context.pinot.all_segments(context.table).issuperset(switch.names_to)
    # What has gone cannot be replaced (E20): the gate would refuse it for as long as the entry lives.
    staged &= context.pinot.visible_segments(context.table).issuperset(switch.segments_from)
    usable = staged and context.switcher().ask_if_usable(session.lineage_entry_id)
    return not (usable and session.gate_open and session.stalls < STALLS)


def renew_entry(context: TriggerContext, session: Session) -> Session:
    """The session under a young entry with the same names: its audit stands, an end under way does not.

    :raises SwitchConflict: the entry was ended or lost meanwhile, or a source has gone.
    """
    entry_id = context.switcher().renew(load_switch(context, session), session.lineage_entry_id)
    return context.write_session(replace(session, lineage_entry_id=entry_id))


def stop_ending(context: TriggerContext, session: Session) -> Session:
    """Take the entry away from an end under way that is not to be relied on any more.

    :returns: the session, under a young entry; or with its entry lost, where that cannot be.
    """
    try:
        return renew_entry(context, session)
    except SwitchConflict:
        if not ask_if_open(context, session):
            raise
        return _revert(context, session)


def revert_entry_of(context: TriggerContext, session: Session) -> Session:
    """Take the open entry of an unpublished switch back; nothing where none is open (rules R4, R19).

    :returns: the session; its entry, if it still names one, is closed.
    :raises SwitchConflict: the entry was ended meanwhile, or it cannot be told whether it was reverted.
    """
    if session.end_sent and not session.revert_sent and ask_if_open(context, session):
        session = stop_ending(context, session)  # an end that comes first would be followed by the revert
    return _revert(context, session) if ask_if_open(context, session) else session


def _revert(context: TriggerContext, session: Session) -> Session:
    """Written before it is sent: a revert that is given up for lost may arrive when the entry has been ended,
    and take back what that published."""
    if not session.revert_sent:
        session = context.write_session(replace(session, revert_issued=session.lineage_entry_id))
    context.switcher().revert_entry(session.lineage_entry_id)
    return session
