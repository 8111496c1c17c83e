"""W6: see the new set everywhere, write the snapshot, close the session (docs/design/session.md#w6)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pinot_assets.core.stored_format import plain
from pinot_assets.core.text import plural
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.recover.placeholder_segment import renamed_files
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values import plan as planning
from pinot_assets.session.values.hold import after_publishing
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.state import Mode, Outcome, Session, close
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef


def finalize(context: TriggerContext, session: Session) -> Snapshot:
    """W6: see the new set everywhere, write the snapshot, close the session in one transaction."""
    confirm(context, session)
    plan = context.clients.staging.plan(session.plan)
    snapshot = snapshot_of(
        context, session, plan, session.lineage_entry_id, context.lease.pointer.current_snapshot
    )
    close_published(context, session, Outcome.PUBLISHED, snapshot)
    return snapshot


def confirm(context: TriggerContext, session: Session) -> None:
    """See the new set in the lineage and at every broker, less what others took away since."""
    switch = load_switch(context, session)
    completed = context.switcher.fetch().in_state(LineageState.COMPLETED)
    replaced = frozenset[str]().union(*(e.segments_from for e in completed))
    there = context.clients.pinot.all_segments(context.spec.name) - replaced
    names = [name for name in switch.names_to if name in there]
    if len(names) < len(switch.names_to):
        lost = len(switch.names_to) - len(names)
        context.note(
            f"{plural(lost, 'segment')} of {session.id} deleted or replaced after its switch, "
            "not by this project"
        )
    if context.switcher.undo_delayed_starts(names):
        context.note(f"a start of {session.id} landed after its switch and hid it; shown again")
    context.switcher.confirm_visible(names, switch.segments_from)
    if session.mode is Mode.SWAP:
        note_foreign(
            context, context.clients.pinot.visible_segments(context.spec.name).difference(switch.names_to)
        )


def note_foreign(context: TriggerContext, foreign: Collection[str]) -> None:
    """Say what a swap leaves in sight because it came after its W1 (edge case E21)."""
    if foreign:
        named = ", ".join(sorted(foreign)[:5]) + (f" and {len(foreign) - 5} more" if len(foreign) > 5 else "")
        context.note(f"visible beside the snapshot until the next swap, not pushed by this project: {named}")


def load_switch(context: TriggerContext, session: Session) -> Switch:
    """The newest switch of a session that has one."""
    assert session.switch_object is not None
    return context.clients.staging.switch(session.switch_object)


def snapshot_of(
    context: TriggerContext, session: Session, plan: Plan, entry_id: str, parent: SnapshotRef | None
) -> Snapshot:
    """The ledger with what the plan published.

    :param entry_id: the lineage entry whose revert leads back to `parent`, "" where none does.
    """
    receipts = context.clients.staging.accepted_receipts(plan)
    files = planning.published_files(plan, receipts, context.current_snapshot())
    switch = load_switch(context, session) if session.switch_object is not None else None
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
        files=files if switch is None else renamed_files(files, switch),
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
    ref = context.clients.staging.put_snapshot(snapshot)
    error = "" if session.failures is None else session.last_error
    done = close(replace(session, last_error=error), outcome, context.clients.now_ms())
    pointer = replace(context.lease.pointer, active_session="", current_snapshot=ref, hold=hold)
    context.lease.write(pointer=pointer, session=done)
    return done
