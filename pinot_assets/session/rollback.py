"""The way back: revert the newest switch of ours while Pinot still has what it replaced.

A rollback is a session of its own (rule R21): intent, target and hold are stored before the revert, so a
driver that dies in between is finished by the next trigger.
"""

from __future__ import annotations

from dataclasses import replace

from pinot_assets.errors import RollbackRefused, SessionError, SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot.lineage import LineageEntry, LineageState, why_not_revert
from pinot_assets.pinot.port import Pinot
from pinot_assets.session.abandon import abandon
from pinot_assets.session.model import Mode, Outcome, Session, State, close, new_session_id
from pinot_assets.session.plan import NO_HOLD, Hold, Plan
from pinot_assets.session.run import Run
from pinot_assets.snapshot.manifest import Snapshot

WINDOW_MS = 20 * 3_600_000
"""Pinot deletes replaced segments of a REFRESH table a day after the switch; stay well clear (rule R22)."""


def deadline_ms(pinot: Pinot, table: str, snapshot: Snapshot) -> int | None:
    """Until when a rollback leads from a snapshot to the one before.

    :returns: epoch milliseconds, None when there is no way back.
    """
    entry = pinot.lineage(table).get(snapshot.lineage_entry_id) if snapshot.parent is not None else None
    if entry is None or entry.state is not LineageState.COMPLETED:
        return None
    return entry.timestamp_ms + WINDOW_MS


def rollback(run: Run) -> Snapshot:
    """Bring the table back to the snapshot before the current one.

    :returns: the snapshot that is visible now.
    :raises RollbackRefused: there is no safe way back; the text says why and what else can be done.
    """
    open_session = run.active_session()
    if open_session is not None and open_session.mode is Mode.ROLLBACK:
        return finish_rollback(run, open_session)
    if open_session is not None and open_session.state is State.SWITCH:
        raise RollbackRefused(
            f"session {open_session.id} of {run.spec.name} is in its switch",
            why=open_session.last_error or "it is staged in Pinot and not ended yet",
            hint="run the table once more so that it ends, then roll back",
        )
    current, target = _way_back(run)
    if open_session is not None:
        # Its plan was made beside the snapshot that goes.
        abandon(run, open_session, Outcome.CLEARED, "the table is rolled back")
    session = _store_intent(run, current, target)
    return finish_rollback(run, session)


def finish_rollback(run: Run, session: Session) -> Snapshot:
    """Revert, read back, record; from wherever an earlier driver came to.

    :raises RollbackRefused: Pinot forgot the switch before it was reverted; the table stays as it is.
    """
    current, target = _ends(run, session)
    taken = set(current.segments) - set(target.segments)
    _revert(run, session.lineage_entry_id)
    if not _is_reverted(run, session.lineage_entry_id, taken):
        _drop(run, session, current, target)
        raise RollbackRefused(
            f"{run.spec.name} cannot be rolled back any more",
            why="Pinot forgot the switch before it was reverted, and has deleted what it replaced",
            hint="queries see what they saw before; put the former files back into the source and run it",
        )
    there = run.edges.pinot.all_segments(run.spec.name)
    if lost := set(target.segments) - there:
        run.note(f"{len(lost)} segments of {target.session} are gone from Pinot, first {min(lost)}")
    run.switcher.confirm_visible(tuple(set(target.segments) & there), tuple(taken))
    restored = replace(
        target,
        seq=session.seq,
        session=session.id,
        mode=Mode.ROLLBACK,
        published_ms=run.edges.now_ms(),
        audit={"rolledBack": current.session},
    )
    ref = run.edges.staging.put_snapshot(restored)
    pointer = replace(run.lease.pointer, active_session="", current_snapshot=ref)
    run.lease.write(pointer=pointer, session=close(session, Outcome.PUBLISHED, run.edges.now_ms()))
    run.note(f"{current.session} rolled back to {target.session}")
    return restored


def clear_rollback(run: Run, session: Session) -> Session | None:
    """Drop a rollback that Pinot refuses to carry out, with what it alone holds back; finish one that it did.

    :returns: the session that was dropped, None if it was finished.
    """
    current, target = _ends(run, session)
    taken = set(current.segments) - set(target.segments)
    if _is_reverted(run, session.lineage_entry_id, taken):
        finish_rollback(run, session)
        return None
    _drop(run, session, current, target)
    return session


def _ends(run: Run, session: Session) -> tuple[Snapshot, Snapshot]:
    """The snapshot that a ROLLBACK session takes back, and the one that it restores."""
    current = run.current_snapshot()
    assert current is not None
    assert session.target is not None
    return current, run.edges.staging.snapshot(session.target)


def _is_reverted(run: Run, entry_id: str, taken: set[str]) -> bool:
    """Whether the switch is undone; where Pinot has forgotten it, what is visible tells."""
    entry = run.edges.pinot.lineage(run.spec.name).get(entry_id)
    if entry is not None:
        return entry.state is LineageState.REVERTED
    return taken.isdisjoint(run.edges.pinot.visible_segments(run.spec.name))


def _drop(run: Run, session: Session, current: Snapshot, target: Snapshot) -> None:
    """Close a rollback that did not happen, and let go of what it alone holds back."""
    staging, hold = run.edges.staging, run.hold()
    taken = hold_of(current, target)
    before = Hold(
        files={uri: token for uri, token in hold.files.items() if taken.files.get(uri) != token},
        removals=tuple(uri for uri in hold.removals if uri not in taken.removals),
    )
    pointer = replace(
        run.lease.pointer,
        active_session="",
        hold=staging.put_hold(session.id, before) if before != NO_HOLD else None,
    )
    run.lease.write(pointer=pointer, session=close(session, Outcome.CLEARED, run.edges.now_ms()))


def resume(run: Run) -> bool:
    """Let go of what a rollback held back; the next trigger brings it in again.

    :returns: whether anything was held.
    """
    held = run.lease.pointer.hold is not None
    if held:
        run.lease.write(pointer=replace(run.lease.pointer, hold=None))
    return held


def _way_back(run: Run) -> tuple[Snapshot, Snapshot]:
    """The current snapshot and the one before it, if Pinot can still go there (rule R22)."""
    current = run.current_snapshot()
    if current is None:
        raise RollbackRefused(
            f"{run.spec.name} has never been published", hint="there is nothing to roll back"
        )
    if current.parent is None:
        again = f"pinot-assets resume {run.spec.name} lets in again what was taken back"
        raise RollbackRefused(
            f"{run.spec.name} is at its first snapshot",
            why="there is none before it",
            hint=again if current.mode is Mode.ROLLBACK else None,
        )
    entry = run.edges.pinot.lineage(run.spec.name).get(current.lineage_entry_id)
    if entry is None or entry.state is not LineageState.COMPLETED:
        raise RollbackRefused(
            f"{run.spec.name} cannot be rolled back by reverting",
            why="Pinot has already forgotten the switch (it keeps replaced segments for a day, and forgets "
            "a switch that replaced nothing at its next clean-up)",
            hint="put the former files back into the source and run the table",
        )
    _refuse_unsafe(run, entry)
    return current, run.edges.staging.snapshot(current.parent)


def _refuse_unsafe(run: Run, entry: LineageEntry) -> None:
    age_ms = run.edges.now_ms() - entry.timestamp_ms
    if age_ms > WINDOW_MS:
        raise RollbackRefused(
            f"the switch of {run.spec.name} is {age_ms / 3_600_000:.0f} hours old",
            why="Pinot deletes what it replaced 24 hours after a switch, and a revert now could meet that",
            hint="put the former files back into the source and run the table",
        )
    pinot, table = run.edges.pinot, run.spec.name
    reasons = why_not_revert(pinot.lineage(table), pinot.all_segments(table), entry.id)
    if reasons:
        raise RollbackRefused(
            f"Pinot would not revert the switch of {table}",
            why="; ".join(reasons),
            hint="put the former files back into the source and run the table",
        )


def _store_intent(run: Run, current: Snapshot, target: Snapshot) -> Session:
    seq = run.lease.pointer.next_seq
    identity = new_session_id(seq)
    staging = run.edges.staging
    now = run.edges.now_ms()
    assert current.parent is not None
    session = Session(
        id=identity,
        seq=seq,
        mode=Mode.ROLLBACK,
        config_fingerprint=run.fingerprint,
        created_ms=now,
        plan=staging.put_plan(Plan(identity, 0, Mode.ROLLBACK, (), (), {}, current.listing_digest)),
        state=State.SWITCH,
        lineage_entry_id=current.lineage_entry_id,
        target=current.parent,
        switch_ms=now,
    )
    node = session.node
    pointer = replace(
        run.lease.pointer,
        active_session=node,
        next_seq=seq + 1,
        history=(*run.lease.pointer.history, node)[-2:],
        hold=staging.put_hold(identity, hold_of(current, target, run.hold())),
    )
    run.lease.write(pointer=pointer, session=session)
    run.lease.prune()
    return session


def hold_of(current: Snapshot, target: Snapshot, before: Hold = NO_HOLD) -> Hold:
    """What must not come back by itself: the versions and removals that are taken back (rule R23)."""
    there, back = current.ledger, target.ledger
    files = {
        uri: f.fingerprint.token
        for uri, f in there.items()
        if uri not in back or back[uri].fingerprint != f.fingerprint
    }
    removals = tuple(sorted((set(back) - set(there)) | set(before.removals)))
    return Hold(files={**before.files, **files}, removals=removals)


def _revert(run: Run, entry_id: str) -> None:
    run.before_pinot_write()
    try:
        run.edges.pinot.revert_replace_segments(run.spec.name, entry_id)
    except (SwitchConflict, SwitchStateUnknown) as error:
        # Reverted by an earlier driver, or the reply got lost: the lineage decides.
        entry = run.edges.pinot.lineage(run.spec.name).get(entry_id)
        if entry is not None and entry.state is LineageState.COMPLETED:
            raise SessionError(
                f"{run.spec.name} could not be rolled back",
                why=str(error),
                hint="the next trigger tries again; `clear` gives the rollback up",
            ) from error
