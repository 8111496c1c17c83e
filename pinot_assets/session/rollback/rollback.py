"""Bring a table back to a kept snapshot: revert our newest switch, or re-publish the snapshot's tars.

A rollback is a separate session (rule R21). It stores intent, target and hold before its first effect, so the
next trigger can finish it if the driver dies. `rollback_plan` decides which way is open, `republish` does
the second one. If Pinot cannot do a revert any more, the rollback continues as a re-publish.

A re-publish is a switch like any other, of staged tars under new names (rule R22), without Spark. Segments
that both snapshots have stay untouched. A new name is made of the attempt and of the segment's place in the
target, so that every driver, whenever it comes, finds the same one.
"""

from __future__ import annotations

from dataclasses import replace

from pinot_assets.core.stored_format import plain
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import (
    BuildError,
    PinotAssetsError,
    RollbackRefused,
    SessionError,
    SnapshotCorrupt,
    SourceError,
    SwitchConflict,
    SwitchStateUnknown,
)
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.pinot import versions
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.begin_and_build import open_session
from pinot_assets.session.close import (
    abandon,
    ask_if_lost,
    confirm,
    load_switch,
    revert_entry_of,
    stop_ending,
)
from pinot_assets.session.commit.gate import audit
from pinot_assets.session.commit.one_switch import end_switch, stage_switch
from pinot_assets.session.context.context import TriggerContext, next_seq
from pinot_assets.session.recover.interrupted import adopt_open_entry, delete_strays
from pinot_assets.session.recover.lost_pointer import catch_up, catch_up_or_ask, rebuild_if_lost
from pinot_assets.session.rollback.rollback_plan import (
    RollbackPlan,
    RollbackWay,
    coming,
    ends_of,
    from_source,
    going,
    is_revert,
    rollback_facts,
    rollback_plan,
    target_of,
)
from pinot_assets.session.stores.staged_files import THREADS
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.stores.stored_snapshots import StoredSnapshot
from pinot_assets.session.values.hold import hold_of, still_held, took_back_merges, took_back_rebuilds
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.state import Mode, Outcome, Session, State, ended, new_session_id
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Output
from pinot_assets.snapshot.recipes import in_use, merged_recipes


def rollback(context: TriggerContext, to: str = "", shown: RollbackPlan | None = None) -> Snapshot:
    """Bring the table back to a kept snapshot.

    :param to: as for `rollback_plan`.
    :param shown: the plan that the person saw; if the rollback would now do anything else, it refuses.
    :returns: the snapshot that is visible now.
    :raises RollbackRefused: there is no safe way back; the text says why and what else can be done.
    """
    context.goal = to = shown.target.snapshot.session if shown else to
    (catch_up_or_ask if to else catch_up)(context)
    rebuild_if_lost(context)
    way = rollback_plan(context.spec, context.clients, to)
    if shown is not None and way.promise != shown.promise:
        dropped = f"; session {way.drops.id} is open" if way.drops else ""
        raise RollbackRefused(
            f"{context.table} is not rolled back: it has changed since the plan of the rollback was shown",
            why=f"it is now at {way.current.snapshot.session}, and would be rolled back by "
            f"{way.way or 'no way'}: {plural(len(way.goes), 'segment')} would be removed, "
            f"{len(way.comes):,} added{dropped}",
            hint="look again",
        )
    session = context.active_session()
    if session is not None and session.mode is Mode.ROLLBACK:
        return finish_rollback(context, session)
    if way.way is None:
        raise RollbackRefused(
            f"{context.table} cannot be rolled back to {way.target.snapshot.session}",
            why=way.why_not,
            hint="put the former files back into the source and run the table",
        )
    if session is not None:
        abandon(context, session, Outcome.CLEARED, "the table is rolled back")
    return finish_rollback(context, _store_intent(context, way))


def finish_rollback(context: TriggerContext, session: Session) -> Snapshot:
    """Continue a rollback from where it stopped: reach the target, see it at every broker, record it.

    :raises RollbackRefused: neither way is open any more; the table stays as it is and the hold is undone.
    """
    current, target = ends_of(context.clients, session, context.lease.pointer)
    if is_revert(session):
        if _revert(context, session, current, target):
            return _record_revert(context, session, current, target)
        context.note(
            f"{current.snapshot.session} cannot be reverted any more: the former tars are published again"
        )
        session = context.write_session(replace(session, state=State.IN_PROGRESS, lineage_entry_id=""))
    try:
        done, restored = republish(context, session, target.snapshot)
    except RollbackRefused as refused:
        left = context.active_session()
        assert left is not None
        _give_up(context, left, current, str(refused))
        raise
    # Where nothing had to be switched, the entry of the current snapshot is still the newest.
    entry_id = done.lineage_entry_id or current.snapshot.lineage_entry_id
    restored = replace(restored, lineage_entry_id=entry_id)
    return _record(context, done, current, restored, RollbackWay.REPUBLISH)


def clear_rollback(context: TriggerContext, session: Session) -> Session | None:
    """Drop an unfinished rollback and the part of the hold that it added; finish one that has happened.

    :returns: the session that was dropped, None if it was finished.
    :raises RollbackRefused: its revert was sent without an answer, so it may still happen.
    """
    current, target = ends_of(context.clients, session, context.lease.pointer)
    left: Session | None = session
    if not is_revert(session):
        left = adopt_open_entry(context, session)
    elif _ask_if_reverted(context, session, current, target):
        left = None
    if left is None:
        finish_rollback(context, session)
        return None
    # In a re-publish, `revert_sent` is about its staged switch, so it can be dropped.
    if is_revert(session) and left.revert_sent:
        raise RollbackRefused(
            f"the rollback of {context.table} to {target.snapshot.session} cannot be given up any more",
            why="its revert was sent to Pinot and got no answer, and may still happen",
            hint=f"run the table, which finishes it; then `rollback --to {current.snapshot.session}` "
            "undoes it",
        )
    _give_up(context, left, current, "cleared by hand")
    return left


# --- intent ----------------------------------------------------------------------------------------


def _store_intent(context: TriggerContext, way: RollbackPlan) -> Session:
    """Open the rollback's session: store way, target and hold before the first effect (rule R21)."""
    source, target = from_source(context.clients, way.current), way.target.snapshot
    seq, staging, now = next_seq(context), context.staging, context.clients.now_ms()
    identity, number = new_session_id(seq), context.lease.pointer.format
    held = hold_of(source.snapshot, way.current.snapshot, target, context.hold())
    session = Session(
        id=identity,
        seq=seq,
        mode=Mode.ROLLBACK,
        config_fingerprint=context.fingerprint,
        created_ms=now,
        plan=staging.put_plan(
            Plan(identity, 0, Mode.ROLLBACK, (), (), {}, target.listing_digest, format=number)
        ),
        state=State.SWITCH if way.way is RollbackWay.REVERT else State.IN_PROGRESS,
        lineage_entry_id=way.entry_id,
        target=way.target.ref,
        switch_ms=now,
        counts={"files": len(target.files)},
        format=number,
        asked_by=context.asked_by,
    )
    open_session(context, session, staging.put_hold(identity, replace(held, format=number)))
    return session


# --- revert ----------------------------------------------------------------------------------------


def _revert(
    context: TriggerContext, session: Session, current: StoredSnapshot, target: StoredSnapshot
) -> bool:
    """Undo the switch, unless an earlier driver did.

    :returns: whether it is undone; False if Pinot cannot revert it (any more).
    :raises SessionError: the revert failed or gave no answer; the next trigger tries again.
    """
    if _ask_if_reverted(context, session, current, target):
        return True
    if rollback_facts(context.spec, context.clients).plan(current, target).no_revert:
        return False
    context.before_pinot_write()
    if not session.revert_sent:  # first: `clear` must not give up what may still happen
        session = context.write_session(replace(session, revert_issued=session.lineage_entry_id))
    try:
        context.pinot.revert_replace_segments(context.table, session.lineage_entry_id)
    except (SwitchConflict, SwitchStateUnknown) as error:
        # The reply may have got lost: the lineage decides.
        if not _ask_if_reverted(context, session, current, target):
            if isinstance(error, SwitchConflict):
                context.lease.write(session=replace(session, revert_issued=""))  # refused: it will not happen
            raise SessionError(
                f"{context.table} could not be rolled back",
                why=str(error),
                hint="the next trigger tries again",
            ) from error
    return True


def _ask_if_reverted(
    context: TriggerContext, session: Session, current: StoredSnapshot, target: StoredSnapshot
) -> bool:
    """Whether the switch is undone; if Pinot has forgotten its entry, the visible segments decide."""
    if (entry := context.pinot.lineage(context.table).get(session.lineage_entry_id)) is not None:
        return entry.state is LineageState.REVERTED
    visible = context.pinot.visible_segments(context.table)
    there, back = set(current.snapshot.segments), set(target.snapshot.segments)
    restored = back - there
    return visible.isdisjoint(there - back) and not (restored and visible.isdisjoint(restored))


def _record_revert(
    context: TriggerContext, session: Session, current: StoredSnapshot, target: StoredSnapshot
) -> Snapshot:
    there = context.pinot.all_segments(context.table)
    of_target = set(target.snapshot.segments)
    if lost := of_target - there:
        context.note(
            f"missing in Pinot: {plural(len(lost), 'segment')} of {target.snapshot.session}, "
            f"first {min(lost)}"
        )
    taken = set(current.snapshot.segments) - of_target
    if context.switcher().undo_delayed_starts(of_target & there):
        context.note(f"a delayed start hid segments of {target.snapshot.session}; they are visible again")
    context.switcher().confirm_visible(tuple(of_target & there), tuple(taken))
    return _record(context, session, current, target.snapshot, RollbackWay.REVERT)


def _record(
    context: TriggerContext, session: Session, current: StoredSnapshot, restored: Snapshot, way: RollbackWay
) -> Snapshot:
    """Write the snapshot, and in one transaction make it the current one and close the rollback."""
    staging, now = context.staging, context.clients.now_ms()
    snapshot = replace(
        restored,
        recipes=in_use(
            merged_recipes(restored.recipes, current.snapshot.recipes),
            {file.revision for file in restored.files} | {pack.revision for pack in restored.packs},
        ),
        seq=session.seq,
        session=session.id,
        mode=Mode.ROLLBACK,
        published_ms=now,
        owner=context.clients.store.owner(),
        asked_by=session.asked_by,
        format=session.format,
        audit={
            "rolledBack": current.snapshot.session,
            "way": way,
            "left": plain(current.ref),
            "source": plain(from_source(context.clients, current).ref),
        },
    )
    hold = replace(still_held(context.hold(), snapshot), format=session.format)
    empty = hold.is_empty and context.mode is not Mode.SWAP
    pointer = replace(
        context.lease.pointer,
        active_session="",
        current_snapshot=staging.put_snapshot(snapshot),
        hold=None if empty else staging.put_hold(session.id, hold),
    )
    context.lease.write(pointer=pointer, session=ended(session, Outcome.PUBLISHED, now))
    context.note(f"{current.snapshot.session} rolled back by {way}")
    _tidy_up(context, snapshot)
    return snapshot


def _tidy_up(context: TriggerContext, snapshot: Snapshot) -> None:
    """Sweep strays, but never fail: the rollback has happened. After an error, a person might roll back again
    and so go back one snapshot more. Every trigger deletes strays first, too."""
    try:
        delete_strays(context, None, snapshot)
    except PinotAssetsError as error:
        if context.effects.unknown:
            context.lease.left_unknown()  # it may still arrive: the next owner waits (rule R2)
        context.note(f"what a dead run may have left in Pinot is kept for now: {error.reason}")


def _give_up(context: TriggerContext, session: Session, current: StoredSnapshot, why: str) -> None:
    """Close a rollback that did not happen, and end the part of the hold that it added.

    A swap table is held as a whole, mostly by an empty hold. It was held before if it shows the snapshot of a
    former rollback. Perhaps a `resume` ended that hold since; a person can repeat `resume`.
    """
    before = still_held(context.hold(), current.snapshot)
    target = target_of(context.clients, session).snapshot
    before = replace(
        before,
        rebuilds=before.rebuilds and not took_back_rebuilds(current.snapshot, target),
        merges=before.merges and not took_back_merges(current.snapshot, target),
        format=session.format,
    )
    is_held = current.snapshot.mode == Mode.ROLLBACK if context.mode is Mode.SWAP else not before.is_empty
    ref = context.staging.put_hold(session.id, before) if is_held else None
    abandon(context, session, Outcome.CLEARED, why, replace(context.lease.pointer, hold=ref))


def republish(context: TriggerContext, session: Session, target: Snapshot) -> tuple[Session, Snapshot]:
    """Continue a re-publish from where it stopped: rename, start, push hidden, audit, end, see it everywhere.

    :returns: the session, published and not yet closed, and the target with its new segments.
    :raises RollbackRefused: the tars or the audit do not allow it; the caller must give the session up.
    """
    if (left := adopt_open_entry(context, session)) is not None:
        left = _switched(context, _with_names_left(context, left), target)
    done = left or session
    if done.switch_object is None:
        return done, target
    confirm(context, done)
    pushed = {o.segment: o for o in load_switch(context, done).segments_to}
    names = _names(context, done, target)
    return done, target.with_segments({old: pushed[new] for old, new in names.items() if new in pushed})


def _with_names_left(context: TriggerContext, session: Session) -> Session:
    """If the entry was lost, return the session ready for a new attempt: its names are spent (rule R16)."""
    if session.end_sent:
        sources = set(load_switch(context, session).segments_from)
        if not context.pinot.visible_segments(context.table).issuperset(sources):
            session = stop_ending(context, session)  # sources that are gone cannot be replaced
    if not ask_if_lost(context, session):
        return session
    session = revert_entry_of(context, session)
    context.switcher().delete(load_switch(context, session).names_to)
    left = replace(session, state=State.IN_PROGRESS, attempt=session.attempt + 1, switch_object=None)
    return context.write_session(replace(left, lineage_entry_id="", end_issued="", audit=None))


def _switched(context: TriggerContext, session: Session, target: Snapshot) -> Session:
    """Do W1 to W5; return the session unchanged if no segment is added or removed."""
    if not session.end_sent:
        switch = _switch(context, session, target)
        if not switch.segments_from and not switch.segments_to:
            return session
        session = stage_switch(context, session, switch)
    session, findings = audit(context, session)
    if failed := [f for f in findings if f.blocks]:
        raise RollbackRefused(
            f"{context.table} is not rolled back to {target.session}: its segments did not pass the audit",
            why="; ".join(f"{f.name}: {f.message}" for f in failed),
            hint="queries see what they saw before; correct what the audit names and roll back again",
        )
    return end_switch(context, session)


def _switch(context: TriggerContext, session: Session, target: Snapshot) -> Switch:
    visible = context.pinot.visible_segments(context.table)
    sources = going(context.table, context.mode, visible, target)
    pushed = coming(visible, target)
    if sources and not pushed and not versions.takes_empty_outputs(context.read_pinot_version()):
        # A Pinot before 1.0 refuses a replacement by nothing: one segment that stays goes along (see
        # `add_placeholder`).
        kept = [o for name, o in target.segments.items() if name in visible]
        if not kept:
            raise RollbackRefused(
                f"{context.table} cannot be emptied by a switch",
                why="this Pinot is older than 1.0 and refuses a replacement by nothing",
            )
        smallest = min(kept, key=lambda o: (o.tar_bytes, o.segment))
        sources, pushed = tuple(sorted((*sources, smallest.segment))), (smallest,)
    names = _names(context, session, target)

    def renamed(output: Output) -> Output:
        try:
            return context.staging.put_renamed(output, names[output.segment])
        except (SourceError, BuildError, SnapshotCorrupt) as error:
            raise RollbackRefused(
                f"the tar of {output.segment} cannot be published again",
                why=str(error),
                hint="restore it, or put the former files back into the source and run the table",
            ) from error

    outputs = in_threads(renamed, pushed, THREADS, "rename")
    return Switch(session.switch + 1, sources, tuple(outputs), format=session.format)


def _names(context: TriggerContext, session: Session, target: Snapshot) -> dict[str, str]:
    """Return the new name of every segment of the target, including those that need none."""
    return {
        old: segment_name(context.table, session.id, session.attempt, ordinal, 0)
        for ordinal, old in enumerate(target.segments)
    }
