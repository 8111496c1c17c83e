"""Back to a kept snapshot: revert the newest switch of ours, or publish the snapshot's tars again.

A rollback is a session of its own (rule R21): intent, target and hold are stored before the first effect, so
a driver that dies in between is finished by the next trigger. `way_back` says which way is open, `republish`
walks the second one. A revert that Pinot has become unable to do goes on as a re-publish.
"""

from __future__ import annotations

from dataclasses import replace

from pinot_assets.core.stored_format import plain, structured
from pinot_assets.core.text import plural
from pinot_assets.errors import (
    PinotAssetsError,
    RollbackRefused,
    SessionError,
    SwitchConflict,
    SwitchStateUnknown,
)
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.context.context import Run
from pinot_assets.session.context.naming import next_seq
from pinot_assets.session.recover.abandon import abandon, sweep
from pinot_assets.session.recover.catch_up import (
    adopted,
    catch_up,
    catch_up_as_chosen,
    ledger_to_leave,
)
from pinot_assets.session.recover.rebuild import ledger
from pinot_assets.session.rollback.republish import republish, unpublished
from pinot_assets.session.rollback.rollback_options import Way, WayBack, look
from pinot_assets.session.stores.clients import Edges
from pinot_assets.session.stores.stored_snapshots import Kept, find_target, read_kept
from pinot_assets.session.values.hold import hold_of, still_held
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.state import Mode, Outcome, Session, State, close, new_session_id
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.table_spec import TableSpec


def way_back(spec: TableSpec, edges: Edges, wanted: str = "") -> WayBack:
    """What a rollback would do; takes no lease and changes nothing.

    :param wanted: number or session of a kept snapshot; "" is the one before the current one. While a
        rollback is half way, its own target.
    :raises RollbackRefused: there is nothing to go back to, or a session is in its switch (rule R21).
    """
    pointer = edges.store.pointer()
    ref = (ledger_to_leave if wanted else adopted)(spec.name, edges, pointer)
    if ref is None:
        raise RollbackRefused(f"{spec.name} has never been published", hint="there is nothing to roll back")
    current = Kept(ref, edges.staging.snapshot(ref))
    session = edges.store.active_session(pointer) if ref == pointer.current_snapshot else None
    if session is not None and session.mode is Mode.ROLLBACK:
        return _half_way(spec, edges, session, current, wanted)
    target = find_target(edges.staging, current, wanted)
    if session is not None and session.state is State.SWITCH:
        shut = session.audit is not None and not session.audit.passed
        gate = ", behind a shut gate" if shut else ""
        raise RollbackRefused(
            f"session {session.id} of {spec.name} is in its switch{gate}",
            why=session.last_error or "it is staged in Pinot and not ended yet",
            # What did not pass may well not pass again: then a run ends nothing.
            hint=f"`pinot-assets session clear {spec.name}` drops it, what is published stays; then roll back"
            if shut
            else "run the table once more so that it ends, then roll back",
        )
    found = look(spec, edges).way(current, target)
    if found.way is None and target.ref == current.ref:
        raise RollbackRefused(
            f"{spec.name} is at snapshot {current.snapshot.seq} already",
            hint=f"`pinot-assets snapshots {spec.name}` lists those before it",
        )
    return replace(found, drops=session)


def _half_way(spec: TableSpec, edges: Edges, session: Session, current: Kept, wanted: str) -> WayBack:
    target = _target(edges, session)
    if wanted and find_target(edges.staging, current, wanted).ref != target.ref:
        raise RollbackRefused(
            f"{spec.name} is on its way back to {target.snapshot.session}",
            why=f"rollback {session.id} was left half way",
            hint="finish that one (`rollback` without --to) or give it up (`session clear`) first",
        )
    found = look(spec, edges).way(current, target)
    return replace(found, way=Way.REVERT if _is_revert(session) else Way.REPUBLISH)


def rollback(run: Run, wanted: str = "", shown: WayBack | None = None) -> Snapshot:
    """Bring the table back to a kept snapshot.

    :param wanted: as for `way_back`.
    :param shown: what was shown to the person who asked for it; nothing else is done.
    :returns: the snapshot that is visible now.
    :raises RollbackRefused: there is no safe way back; the text says why and what else can be done.
    """
    run.goal = shown.target.snapshot.session if shown else wanted
    (catch_up_as_chosen if wanted or shown else catch_up)(run)
    ledger(run)
    way = way_back(run.spec, run.edges, shown.target.snapshot.session if shown else wanted)
    if shown is not None:
        _refuse_other_than_shown(run, way, shown)
    session = run.active_session()
    if session is not None and session.mode is Mode.ROLLBACK:
        return finish_rollback(run, session)
    _refuse_without_way(run, way)
    if session is not None:
        abandon(run, session, Outcome.CLEARED, "the table is rolled back")
    return finish_rollback(run, _store_intent(run, way))


def _refuse_other_than_shown(run: Run, way: WayBack, shown: WayBack) -> None:
    if _told(way) != _told(shown):
        dropped = f"; session {way.drops.id} is open" if way.drops else ""
        raise RollbackRefused(
            f"{run.spec.name} is not rolled back: it changed since that was shown",
            why=f"it is at {way.current.snapshot.session} now, to be left by {way.way or 'no way'}: "
            f"{plural(len(way.goes), 'segment')} would go, {len(way.comes)} come{dropped}",
            hint="look again",
        )


def _told(way: WayBack) -> tuple[object, ...]:
    """What of a way back was shown, and has to stand as it was."""
    dropped = way.drops.id if way.drops is not None else ""
    comes = [output.segment for output in way.comes]
    return way.way, way.current.ref, way.target.ref, sorted(way.goes), sorted(comes), dropped


def _refuse_without_way(run: Run, way: WayBack) -> None:
    if way.way is None:
        raise RollbackRefused(
            f"{run.spec.name} cannot be brought back to {way.target.snapshot.session}",
            why=way.why_not,
            hint="put the former files back into the source and run the table",
        )


def finish_rollback(run: Run, session: Session) -> Snapshot:
    """Get to the target, see it at every broker, record it; from wherever an earlier driver came to.

    :raises RollbackRefused: neither way is open any more; the table stays as it is, and nothing is held.
    """
    current, target = _current(run), _target(run.edges, session)
    if _is_revert(session):
        if _revert(run, session, current, target):
            return _record_revert(run, session, current, target)
        run.note(f"{current.snapshot.session} cannot be reverted any more: former tars are published again")
        session = replace(session, state=State.IN_PROGRESS, lineage_entry_id="")
        run.lease.write(session=session)
    try:
        done, files = republish(run, session, target.snapshot)
    except RollbackRefused as refused:
        left = run.active_session()
        assert left is not None
        _give_up(run, left, current, str(refused))
        raise
    # Where nothing had to be switched, the entry of the current snapshot is still the newest.
    entry_id = done.lineage_entry_id or current.snapshot.lineage_entry_id
    restored = replace(target.snapshot, lineage_entry_id=entry_id, files=files)
    return _record(run, done, current, restored, Way.REPUBLISH)


def clear_rollback(run: Run, session: Session) -> Session | None:
    """Drop a rollback that is half way, with what it alone holds back; finish one that has happened.

    :returns: the session that was dropped, None if it was finished.
    :raises RollbackRefused: its revert was sent and gave no answer: it may still happen.
    """
    current, target = _current(run), _target(run.edges, session)
    is_revert = _is_revert(session)
    left: Session | None = session
    if not is_revert:
        left = unpublished(run, session)
    elif _is_reverted(run, session, current, target):
        left = None
    if left is None:
        finish_rollback(run, session)
        return None
    if is_revert and left.reverting:  # of the other way, what is reverted is what was staged for it
        raise RollbackRefused(
            f"the rollback of {run.spec.name} to {target.snapshot.session} cannot be given up any more",
            why="its revert was sent to Pinot, gave no answer, and may still happen",
            hint="run the table, which finishes it; "
            f"then `rollback --to {current.snapshot.session}` leads back",
        )
    _give_up(run, left, current, "cleared by hand")
    return left


def resume(run: Run) -> bool:
    """Let go of what a rollback held back; the next trigger brings it in again.

    :returns: whether anything was held.
    """
    held = run.lease.pointer.hold is not None
    if held:
        run.lease.write(pointer=replace(run.lease.pointer, hold=None))
    return held


# --- intent ----------------------------------------------------------------------------------------


def _store_intent(run: Run, way: WayBack) -> Session:
    """What is to happen, where to and what is to stay out: all before the first effect (rule R21)."""
    source, target = _from_source(run.edges, way.current), way.target.snapshot
    seq, staging, now = next_seq(run), run.edges.staging, run.edges.now_ms()
    identity, number = new_session_id(seq), run.lease.pointer.format
    held = hold_of(source.snapshot, way.current.snapshot, target, run.hold())
    session = Session(
        id=identity,
        seq=seq,
        mode=Mode.ROLLBACK,
        config_fingerprint=run.fingerprint,
        created_ms=now,
        plan=staging.put_plan(
            Plan(identity, 0, Mode.ROLLBACK, (), (), {}, target.listing_digest, format=number)
        ),
        state=State.SWITCH if way.way is Way.REVERT else State.IN_PROGRESS,
        lineage_entry_id=way.entry_id,
        target=way.target.ref,
        switch_ms=now,
        counts={"files": len(target.files)},
        format=number,
    )
    pointer = replace(
        run.lease.pointer,
        active_session=session.node,
        next_seq=seq + 1,
        history=(*run.lease.pointer.history, session.node)[-2:],
        hold=staging.put_hold(identity, replace(held, format=number)),
    )
    run.lease.write(pointer=pointer, session=session)
    run.lease.prune()
    return session


def _from_source(edges: Edges, current: Kept) -> Kept:
    """The newest snapshot that was made from the source, as far as it can be read: a rollback's is not."""
    ref = current.snapshot.audit.get("source") if current.snapshot.mode == Mode.ROLLBACK else None
    if not ref:
        return current
    source = structured(SnapshotRef, ref, "the name of a snapshot")
    return next(read_kept(edges.staging, [source]), current)


def _is_revert(session: Session) -> bool:
    """Whether a rollback goes by reverting; a re-publish is IN_PROGRESS until its switch is written."""
    return session.state is State.SWITCH and session.switch_object is None


def _current(run: Run) -> Kept:
    ref = run.lease.pointer.current_snapshot
    assert ref is not None
    return Kept(ref, run.edges.staging.snapshot(ref))


def _target(edges: Edges, session: Session) -> Kept:
    assert session.target is not None
    return Kept(session.target, edges.staging.snapshot(session.target))


# --- revert ----------------------------------------------------------------------------------------


def _revert(run: Run, session: Session, current: Kept, target: Kept) -> bool:
    """Undo the switch, unless an earlier driver did.

    :returns: whether it is undone; not so when Pinot will not do it (any more).
    :raises SessionError: it cannot be told why not; the next trigger tries again.
    """
    if _is_reverted(run, session, current, target):
        return True
    if look(run.spec, run.edges).way(current, target).no_revert:
        return False
    run.before_pinot_write()
    if not session.reverting:
        session = replace(session, revert_issued=session.lineage_entry_id)
        run.lease.write(session=session)  # first: `clear` must not give up what may still happen
    try:
        run.edges.pinot.revert_replace_segments(run.spec.name, session.lineage_entry_id)
    except (SwitchConflict, SwitchStateUnknown) as error:
        # The reply may have got lost: the lineage decides.
        if not _is_reverted(run, session, current, target):
            if isinstance(error, SwitchConflict):
                run.lease.write(session=replace(session, revert_issued=""))  # refused: it will not happen
            raise SessionError(
                f"{run.spec.name} could not be rolled back",
                why=str(error),
                hint="the next trigger tries again",
            ) from error
    return True


def _is_reverted(run: Run, session: Session, current: Kept, target: Kept) -> bool:
    """Whether the switch is undone; where Pinot has forgotten it, what is visible tells."""
    entry = run.edges.pinot.lineage(run.spec.name).get(session.lineage_entry_id)
    if entry is not None:
        return entry.state is LineageState.REVERTED
    visible = run.edges.pinot.visible_segments(run.spec.name)
    there, back = set(current.snapshot.segments), set(target.snapshot.segments)
    restored = back - there
    return visible.isdisjoint(there - back) and not (restored and visible.isdisjoint(restored))


def _record_revert(run: Run, session: Session, current: Kept, target: Kept) -> Snapshot:
    there = run.edges.pinot.all_segments(run.spec.name)
    wanted = set(target.snapshot.segments)
    if lost := wanted - there:
        run.note(
            f"gone from Pinot: {plural(len(lost), 'segment')} of {target.snapshot.session}, first {min(lost)}"
        )
    taken = set(current.snapshot.segments) - wanted
    if run.switcher.undo_delayed_starts(wanted & there):
        run.note(f"a delayed start hid segments of {target.snapshot.session}; shown again")
    run.switcher.confirm_visible(tuple(wanted & there), tuple(taken))
    return _record(run, session, current, target.snapshot, Way.REVERT)


# --- end -------------------------------------------------------------------------------------------


def _record(run: Run, session: Session, current: Kept, restored: Snapshot, way: Way) -> Snapshot:
    """Write the snapshot, and in one transaction make it the current one and close the rollback."""
    staging, now = run.edges.staging, run.edges.now_ms()
    snapshot = replace(
        restored,
        seq=session.seq,
        session=session.id,
        mode=Mode.ROLLBACK,
        published_ms=now,
        owner=run.edges.store.owner(),
        format=session.format,
        audit={
            "rolledBack": current.snapshot.session,
            "way": way,
            "left": plain(current.ref),
            "source": plain(_from_source(run.edges, current).ref),
        },
    )
    hold = replace(still_held(run.hold(), snapshot), format=session.format)
    empty = hold.is_empty and run.mode is not Mode.SWAP
    pointer = replace(
        run.lease.pointer,
        active_session="",
        current_snapshot=staging.put_snapshot(snapshot),
        hold=None if empty else staging.put_hold(session.id, hold),
    )
    run.lease.write(pointer=pointer, session=close(session, Outcome.PUBLISHED, now))
    run.note(f"{current.snapshot.session} rolled back by {way}")
    _tidy_up(run, snapshot)
    return snapshot


def _tidy_up(run: Run, snapshot: Snapshot) -> None:
    """The rollback has happened: an error now would read as if it had not, and be answered by another one,
    which takes back one snapshot more. Every trigger sweeps first."""
    try:
        sweep(run, None, snapshot)
    except PinotAssetsError as error:
        if run.effects.unknown:
            run.lease.left_unknown()  # it may still arrive: the next owner waits (rule R2)
        run.note(f"what a dead run may have left in Pinot stays for now: {error.reason}")


def _give_up(run: Run, session: Session, current: Kept, why: str) -> None:
    """Close a rollback that did not happen, and let go of what it alone holds back.

    A swap table is held as a whole, mostly by a hold of nothing: it was before if it shows what a former
    rollback brought back. Whether a `resume` came since then nobody knows: it can be repeated.
    """
    before = replace(still_held(run.hold(), current.snapshot), format=session.format)
    is_held = current.snapshot.mode == Mode.ROLLBACK if run.mode is Mode.SWAP else not before.is_empty
    ref = run.edges.staging.put_hold(session.id, before) if is_held else None
    pointer = replace(run.lease.pointer, hold=ref)
    abandon(run, session, Outcome.CLEARED, why, pointer)
