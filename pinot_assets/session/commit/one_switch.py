"""Publish all files at one instant: W1 to W3 and W5 of docs/design/session.md#the-switch-w1-to-w6.

A Pinot before 1.0 refuses a replacement by nothing. When a switch there only removes files, it also replaces
one published segment that stays: that segment is among the sources, and a copy with a new name is the output
(the placeholder segment). Queries see the same rows of it before and after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pinot_assets.core.text import counted, plural
from pinot_assets.errors import PinotError, SnapshotIncomplete, SwitchConflict, SwitchStateUnknown
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.pinot import versions
from pinot_assets.pinot.table_config import time_boundary_ms
from pinot_assets.session.begin_and_build import spent_names
from pinot_assets.session.checks.capacity import generation_before, require_capacity, require_lineage_capacity
from pinot_assets.session.checks.pack_segments import packs_in_part, refuse_expired_rows
from pinot_assets.session.close import ask_if_lost, finalize, load_switch, renew_entry, revert_entry_of
from pinot_assets.session.commit.gate import (
    require_open_gate,
    require_spec,
    require_staged,
    stage_without_switch,
)
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.plan import (
    Plan,
    as_built,
    dirty_packs,
    segments_from,
    segments_to,
    superseded,
)
from pinot_assets.session.values.progress import RunPhase
from pinot_assets.session.values.state import Mode, PushKind, Session, State, utc_text
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Receipt


def stage(context: TriggerContext, session: Session, plan: Plan, receipts: Mapping[int, Receipt]) -> Session:
    """W1 to W3: write the switch, open its lineage entry, push its segments hidden.

    :param plan: every live row has an accepted receipt.
    :returns: the session, in SWITCH. When no segment is added or removed: DONE with outcome NOOP, or
        IN_PROGRESS with a failed audit.
    """
    if (current := context.current_snapshot()) is not None:
        # before one of our entries counts as stale (R1)
        context.switcher().undo_delayed_starts(current.segments)
    visible = context.pinot.visible_segments(context.table)
    outputs = segments_to(plan, receipts)
    replaced = segments_from(plan, current, visible)
    refuse_hidden_sources(context, plan, current, visible)
    refuse_expired_rows(context, plan, current)
    if not outputs and not replaced:
        return stage_without_switch(context, session, plan, receipts)
    plan_ref = context.staging.put_plan(plan)
    switch = Switch(session.switch + 1, replaced, outputs, format=session.format)
    if current is not None and ask_if_placeholder_needed(context, switch):
        switch = add_placeholder(context, plan, current, switch, visible)
    try:
        return stage_switch(context, replace(session, plan=plan_ref, counts=plan.counts()), switch)
    except SwitchConflict:
        stored = context.active_session()
        gone = set(switch.segments_from) - context.pinot.visible_segments(context.table)
        if not gone or stored is None:
            raise
    context.note(
        f"{plural(len(gone), 'segment')} to be replaced disappeared after the plan, first "
        f"{min(gone)}: making a new switch"
    )
    return stage(context, stored, plan, receipts)


def stage_switch(context: TriggerContext, session: Session, switch: Switch) -> Session:
    """W1 to W3 for a switch whose lists of segments are known.

    :param switch: numbered one higher than the session's newest; if both have equal lists, that one is kept.
    :returns: the session, in SWITCH.
    :raises SwitchConflict: the lineage entry of its names was lost after this attempt had chosen them.
    """
    require_capacity(context, switch)
    _note_time_boundary(context, context.current_snapshot(), switch)
    require_lineage_capacity(context.table, context.switcher().fetch(), switch.segments_from, switch.names_to)
    _refuse_spent(context, session, switch)
    if ask_if_lost(context, session):
        session = replace(revert_entry_of(context, session), lineage_entry_id="")
    if not _same_lists(context, session, switch):
        if session.end_sent:
            session = renew_entry(context, session)  # an end under way must not publish the old switch
        session = replace(
            session,
            switch=switch.number,
            switch_object=context.staging.put_switch(session.id, switch),
            switch_ms=context.clients.now_ms(),
            audit=None,
        )
    cause = session.last_error if session.trouble_since_ms else ""  # until the audit shows that it is over
    session = replace(session, state=State.SWITCH, switch_attempt=session.attempt, last_error=cause)
    context.write_session(session)  # W1
    switch = load_switch(context, session)
    session = _without_other_entry(context, session, switch)
    entry_id = context.switcher().open_entry(switch, session.lineage_entry_id)
    session = context.write_session(replace(session, lineage_entry_id=entry_id))  # W2
    context.progress.begin(RunPhase.PUSH, len(switch.segments_to))
    pushed = context.switcher().push(switch, entry_id, context.progress.advance)  # W3
    if pushed.fallback is not None:
        context.note(
            "Pinot does not copy from the staging area, so whole tars are sent "
            f"(push.mode: TAR saves the attempt): {pushed.fallback}"
        )
    how = (
        f" ({pushed.mode.name} push, {plural(pushed.calls, 'upload')})"
        if pushed.pushed and pushed.mode
        else ""
    )
    context.note(
        f"pushed {len(pushed.pushed):,} of {plural(len(switch.segments_to), 'segment')}{how}, "
        f"hidden; {len(switch.segments_from):,} will be replaced"
    )
    return session


def refuse_hidden_sources(
    context: TriggerContext, plan: Plan, current: Snapshot | None, visible: frozenset[str]
) -> None:
    """Raise what `why_paused` returns.

    :raises SwitchConflict: the table is paused.
    """
    if (paused := why_paused(context, plan, current, visible)) is not None:
        context.lease.assert_held()  # without its lease, a run sees what the next one replaced (R2)
        raise paused


def why_paused(
    context: TriggerContext, plan: Plan, current: Snapshot | None, visible: frozenset[str]
) -> SwitchConflict | None:
    """Return the error if another writer's entry hides published segments (rule R5), else None. Only reads.

    Swap replaces whatever is visible, and append nothing but files that it builds again: else they are not
    paused.
    """
    if current is None or plan.mode is Mode.SWAP:
        return None
    foreseen = as_built(plan)
    if plan.mode is Mode.APPEND and not (superseded(foreseen, current) or dirty_packs(foreseen, current)):
        return None
    hidden = (set(current.segments) - visible) & context.pinot.all_segments(context.table)
    if not hidden:
        return None
    return SwitchConflict(
        f"{context.table} is paused: another program replaced segments of this table",
        why=f"{len(hidden):,} published segments are hidden: {', '.join(sorted(hidden)[:5])}",
        hint="does a merge or rollup task run on this table? Turn it off, then swap the whole table once",
    )


def _without_other_entry(context: TriggerContext, session: Session, switch: Switch) -> Session:
    """Revert an earlier switch's entry that shares no output with this one: a forced start keeps it (R4).
    The session stores the revert first: it may arrive late, when a later switch uses the same names."""
    entry = context.switcher().fetch().get(session.lineage_entry_id)
    same = entry is not None and entry.has_names(switch.segments_from, switch.names_to)
    if entry is None or same or not entry.segments_to.isdisjoint(switch.names_to):
        return session
    return revert_entry_of(context, session)


def _refuse_spent(context: TriggerContext, session: Session, switch: Switch) -> None:
    """Refuse a switch with a spent name. `begin_and_build.go_on` checks the names before the build, but an
    entry may be lost during it. What is staged stays, so that the next trigger finds it and renames it (R16).

    :raises SwitchConflict: Pinot would hide a segment with one of its names.
    """
    spent = spent_names(context.switcher().fetch())
    if ask_if_lost(context, session):
        spent |= frozenset(load_switch(context, session).names_to)
    if met := spent.intersection(switch.names_to):
        raise SwitchConflict(
            f"the lineage entry of {session.id} was lost while its files were built",
            why=f"{counted(len(met), 'name was', 'names were')} used already, first {min(met)}: Pinot "
            "hides what is pushed with such a name",
            hint="the next trigger renames what is built and starts the switch again; nothing is built again",
        )


def _same_lists(context: TriggerContext, session: Session, planned: Switch) -> bool:
    """Whether the session's newest switch has exactly these lists of segments."""
    if session.switch_object is None:
        return False
    switch = load_switch(context, session)
    return (switch.segments_from, switch.names_to) == (planned.segments_from, planned.names_to)


def publish(context: TriggerContext, session: Session) -> Snapshot:
    """W5 and W6: end the replacement, see it at every broker, record the snapshot.

    This function enforces the gate again, from the session's own audit receipt, whatever ran before.

    :raises SnapshotIncomplete: nothing is staged, or the audit has not passed for exactly this switch and
        the present table spec.
    :raises SwitchConflict: a segment to be replaced has gone; the next trigger makes a new switch.
    :raises SwitchStateUnknown: Pinot's answer is missing; the next trigger finds out and finishes.
    """
    require_staged(context, session)
    if session.mode is Mode.ROLLBACK:
        raise SnapshotIncomplete(
            f"what is staged of {context.table} is a rollback",
            why=f"session {session.id} was interrupted",
            hint="the next trigger finishes it; `clear` gives it up",
        )
    if session.gate_open and not session.end_sent:
        require_spec(context, session)
    return finalize(context, end_switch(context, session))


def end_switch(context: TriggerContext, session: Session) -> Session:
    """W5: enforce the gate, then end the replacement unless it has ended already.

    :raises SnapshotIncomplete: the audit has not passed for exactly this switch.
    """
    require_open_gate(context, session)
    switch = load_switch(context, session)
    if not context.switcher().ask_if_published(switch, session.lineage_entry_id, session.end_issued):
        if gone := set(switch.segments_from) - context.pinot.visible_segments(context.table):
            raise SwitchConflict(
                f"segments of {context.table} that were to be replaced are missing",
                why=f"{len(gone):,} of {len(switch.segments_from):,}, first {min(gone)}",
                hint="the next trigger makes a new switch from what is then visible",
            )
        _require_its_entry(context, session, switch)
        usable = context.switcher().ask_if_usable(session.lineage_entry_id)
        if not usable or generation_before(context, switch):
            session = renew_entry(context, session)
        session = context.write_session(replace(session, end_issued=session.lineage_entry_id))
        try:
            context.switcher().end(session.lineage_entry_id)
        except (SwitchConflict, SwitchStateUnknown):
            context.lease.write(session=replace(session, stalls=session.stalls + 1))  # R10
            raise
    return session


def _require_its_entry(context: TriggerContext, session: Session, switch: Switch) -> None:
    """Require that the session's entry is open, that no revert of it was sent, and that it is this switch's
    entry: a driver that died between W1 and W2 left the entry of the switch before.

    :raises SwitchConflict: one of these does not hold.
    """
    entry = context.switcher().require_open(session.lineage_entry_id)
    if session.revert_sent or not entry.has_names(switch.segments_from, switch.names_to):
        raise SwitchConflict(
            f"lineage entry {session.lineage_entry_id} of {context.table} is not the one to end",
            why="a revert of it was sent, and may still arrive"
            if session.revert_sent
            else f"it is not the entry of switch {switch.number}, which has none yet",
            hint="the next trigger opens a new entry; nothing is built again",
        )


def add_placeholder(
    context: TriggerContext, plan: Plan, current: Snapshot, switch: Switch, visible: frozenset[str]
) -> Switch:
    """Return the switch with a placeholder: a copy, under a new name, of the smallest segment that stays.

    :param visible: every visible segment of the table; only these can be sources.
    :raises SwitchConflict: no segment stays, and this Pinot cannot switch to an empty table.
    """
    foreseen = _with_smallest(context, plan, current, switch, visible)
    (output,) = foreseen.segments_to
    carried = current.segments[foreseen.carried]
    return replace(foreseen, segments_to=(context.staging.put_renamed(carried, output.segment),))


def with_placeholder(
    context: TriggerContext, plan: Plan, current: Snapshot | None, switch: Switch, visible: frozenset[str]
) -> Switch:
    """Return the switch as `stage` will make it: one that only removes segments may get a placeholder.

    A file of no bytes gives no segment, so a plan that has only such files to build brings nothing, either;
    a pack of which files stay is built again.

    :raises SwitchConflict: as `add_placeholder`.
    """
    brings = any(row.planned.size for row in plan.to_build) or packs_in_part(as_built(plan), current)
    only_removes = switch.segments_from and not brings and context.push is not PushKind.PLAIN
    if not only_removes or current is None or not ask_if_placeholder_needed(context, switch):
        return switch
    return _with_smallest(context, plan, current, switch, visible)


def _with_smallest(
    context: TriggerContext, plan: Plan, current: Snapshot, switch: Switch, visible: frozenset[str]
) -> Switch:
    free = visible - set(switch.segments_from)
    staying = [output for name, output in current.segments.items() if name in free]
    if not staying:
        raise SwitchConflict(
            f"{context.table} cannot be emptied by a switch",
            why="this Pinot is older than 1.0 and refuses a replacement by nothing",
            hint="delete the table's segments by hand, or keep one file",
        )
    smallest = min(staying, key=lambda o: (o.tar_bytes, o.segment))
    name = segment_name(context.table, plan.session, plan.attempt, plan.next_ordinal, 0)
    sources = tuple(sorted((*switch.segments_from, smallest.segment)))
    renamed = replace(smallest, segment=name)
    return replace(switch, segments_from=sources, segments_to=(renamed,), carried=smallest.segment)


def ask_if_placeholder_needed(context: TriggerContext, switch: Switch) -> bool:
    """Whether the switch only removes segments, and this Pinot refuses that."""
    return not switch.segments_to and not versions.takes_empty_outputs(context.read_pinot_version())


def _note_time_boundary(context: TriggerContext, current: Snapshot | None, switch: Switch) -> None:
    """Note where the time boundary will be, if the table is hybrid and the switch moves it.

    It is computed from this project's segments; segments that others pushed do not count here. A boundary
    that somebody set by hand does not move. If that cannot be known, nothing is said.
    """
    if context.pinot.get_realtime_config(context.table) is None:
        return
    before = current.segments if current is not None else {}
    after = {**before, **{o.segment: o for o in switch.segments_to}}
    for name in switch.segments_from:
        after.pop(name, None)
    old, new = (
        time_boundary_ms(context.read_table_config(), (o.end_ms for o in s.values())) for s in (before, after)
    )
    if old == new:
        return
    try:
        fixed = context.pinot.fixed_time_boundary_ms(context.table)
    except PinotError:
        return
    if fixed is not None:
        context.note(
            f"hybrid table: its time boundary was set by hand to {utc_text(fixed)} and does not move with "
            f"this switch; to let it follow the files, send DELETE /tables/{context.table}/timeBoundary"
        )
        return
    context.note(
        f"hybrid table: rows up to {_border_of(old)} came from files and the later ones from "
        f"the stream; after the switch the time boundary is {_border_of(new)}"
    )


def _border_of(boundary_ms: int | None) -> str:
    return "none (all from the stream)" if boundary_ms is None else utc_text(boundary_ms)
