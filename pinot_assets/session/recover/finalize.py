"""W6: see the new set everywhere, write the snapshot, close the session (docs/design/session.md#w6)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pinot_assets.core.stored_format import plain
from pinot_assets.core.text import plural
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.context.context import Run
from pinot_assets.session.recover.placeholder_segment import renamed_files
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values import plan as planning
from pinot_assets.session.values.hold import after_publishing
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.state import Mode, Outcome, Session, close
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef


def record(run: Run, session: Session) -> Snapshot:
    """W6: see the new set everywhere, write the snapshot, close the session in one transaction."""
    confirm(run, session)
    plan = run.edges.staging.plan(session.plan)
    snapshot = snapshot_of(run, session, plan, session.lineage_entry_id, run.lease.pointer.current_snapshot)
    close_published(run, session, Outcome.PUBLISHED, snapshot)
    return snapshot


def confirm(run: Run, session: Session) -> None:
    """See the new set in the lineage and at every broker, less what others took away since."""
    switch = read_switch(run, session)
    completed = run.switcher.lineage.in_state(LineageState.COMPLETED)
    replaced = frozenset[str]().union(*(e.segments_from for e in completed))
    there = run.edges.pinot.all_segments(run.spec.name) - replaced
    names = [name for name in switch.names_to if name in there]
    if len(names) < len(switch.names_to):
        lost = len(switch.names_to) - len(names)
        run.note(
            f"{plural(lost, 'segment')} of {session.id} deleted or replaced after its switch, "
            "not by this project"
        )
    if run.switcher.undo_delayed_starts(names):
        run.note(f"a start of {session.id} landed after its switch and hid it; shown again")
    run.switcher.confirm_visible(names, switch.segments_from)
    if session.mode is Mode.SWAP:
        note_foreign(run, run.edges.pinot.visible_segments(run.spec.name).difference(switch.names_to))


def note_foreign(run: Run, foreign: Collection[str]) -> None:
    """Say what a swap leaves in sight because it came after its W1 (edge case E21)."""
    if foreign:
        named = ", ".join(sorted(foreign)[:5]) + (f" and {len(foreign) - 5} more" if len(foreign) > 5 else "")
        run.note(f"visible beside the snapshot until the next swap, not pushed by this project: {named}")


def read_switch(run: Run, session: Session) -> Switch:
    """The newest switch of a session that has one."""
    assert session.switch_object is not None
    return run.edges.staging.switch(session.switch_object)


def snapshot_of(
    run: Run, session: Session, plan: Plan, entry_id: str, parent: SnapshotRef | None
) -> Snapshot:
    """The ledger with what the plan published.

    :param entry_id: the lineage entry whose revert leads back to `parent`, "" where none does.
    """
    receipts = run.edges.staging.accepted_receipts(plan)
    files = planning.published_files(plan, receipts, run.current_snapshot())
    switch = read_switch(run, session) if session.switch_object is not None else None
    return Snapshot(
        seq=session.seq,
        table=run.spec.name_with_type,
        session=session.id,
        mode=session.mode,
        lineage_entry_id=entry_id,
        parent=parent,
        listing_digest=plan.listing_digest,
        config_fingerprint=session.config_fingerprint,
        published_ms=run.edges.now_ms(),
        files=files if switch is None else renamed_files(files, switch),
        audit=plain(session.audit, session.format) if session.audit else {},
        owner=run.edges.store.owner(),
        format=session.format,
    )


def close_published(run: Run, session: Session, outcome: Outcome, snapshot: Snapshot) -> Session:
    """Write the snapshot, and in one transaction make it the current one and close the session.

    What a rollback holds back shrinks with it: a file that was repaired is held no longer, and a removal of
    one that has come back would be another one.
    """
    hold = run.put_hold(after_publishing(run.hold(), run.current_snapshot(), snapshot))
    ref = run.edges.staging.put_snapshot(snapshot)
    error = "" if session.failures is None else session.last_error
    done = close(replace(session, last_error=error), outcome, run.edges.now_ms())
    pointer = replace(run.lease.pointer, active_session="", current_snapshot=ref, hold=hold)
    run.lease.write(pointer=pointer, session=done)
    return done
