"""From built files to a visible snapshot: W1 to W6 of spec/session.md section 4.

Also settles a switch that an earlier driver left half way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace

from pinot_assets.audit import Finding, files_built
from pinot_assets.errors import SnapshotIncomplete, SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot import versions
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session import plan as planning
from pinot_assets.session.carry import carry_one, renamed_files
from pinot_assets.session.hybrid import note_time_boundary
from pinot_assets.session.lineage_room import require_lineage_room
from pinot_assets.session.model import AuditReceipt, Mode, Outcome, Session, State, close, given_up
from pinot_assets.session.plan import Plan
from pinot_assets.session.receipt import Failure, Receipt
from pinot_assets.session.room import generation_before, require_room
from pinot_assets.session.run import Run
from pinot_assets.session.staging import Switch
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef


def stage(run: Run, session: Session, plan: Plan, receipts: Mapping[int, Receipt]) -> Session:
    """W1 to W3: write the switch, open its lineage entry, push hidden.

    :param plan: every live row accepted its receipt.
    :returns: the session, in SWITCH; or DONE with outcome NOOP when no segment comes or goes.
    """
    current = run.current_snapshot()
    if current is not None:
        run.switcher.undo_delayed_starts(current.segments)  # before an entry of ours is taken for stale (R1)
    visible = run.edges.pinot.visible_segments(run.spec.name)
    outputs = planning.segments_to(plan, receipts)
    replaced = planning.segments_from(plan, current, visible)
    refuse_hidden_sources(run, plan, current, visible)
    plan_ref = run.edges.staging.put_plan(plan)
    if not outputs and not replaced:
        session = _withdraw(run, session)
        return finish_without_switch(run, replace(session, plan=plan_ref, counts=plan.counts()))
    switch = Switch(session.switch + 1, replaced, outputs)
    if not outputs and current is not None and not versions.takes_empty_outputs(run.pinot_version):
        switch = carry_one(run, plan, current, switch, visible)
    try:
        return stage_switch(run, replace(session, plan=plan_ref, counts=plan.counts()), switch)
    except SwitchConflict:
        stored = run.active_session()
        gone = set(switch.segments_from) - run.edges.pinot.visible_segments(run.spec.name)
        if not gone or stored is None:
            raise
    run.note(f"{len(gone)} segments that were to be replaced have gone, first {min(gone)}: a new switch")
    return stage(run, stored, plan, receipts)


def stage_switch(run: Run, session: Session, switch: Switch) -> Session:
    """W1 to W3 of a switch whose lists are known.

    :param switch: numbered one higher than the session's newest; if that one says the same, it stands.
    :returns: the session, in SWITCH.
    """
    require_room(run, switch)
    note_time_boundary(run, run.current_snapshot(), switch)
    require_lineage_room(run.spec.name, run.switcher.lineage, switch.segments_from, switch.names_to)
    if is_lost(run, session):
        session = replace(session, lineage_entry_id="")
    if not _same_lists(run, session, switch):
        if session.ending:
            session = renewed(run, session)  # its end must not complete what is no longer wanted
        session = replace(
            session,
            switch=switch.number,
            switch_object=run.edges.staging.put_switch(session.id, switch),
            switch_ms=run.edges.now_ms(),
            audit=None,
        )
    session = replace(session, state=State.SWITCH, switch_attempt=session.attempt, last_error="")
    run.lease.write(session=session)  # W1
    switch = read_switch(run, session)
    entry_id = run.switcher.open_entry(switch, session.lineage_entry_id)
    session = replace(session, lineage_entry_id=entry_id)
    run.lease.write(session=session)  # W2
    pushed = run.switcher.push(switch, entry_id)  # W3
    if pushed.fallback is not None:
        run.note(
            "Pinot does not copy from the staging area, so whole tars are sent "
            f"(push.mode: TAR saves the attempt): {pushed.fallback}"
        )
    how = f" ({pushed.mode.name} push)" if pushed.segments and pushed.mode else ""
    run.note(
        f"pushed {pushed.segments} of {len(switch.segments_to)} segments{how}, hidden; "
        f"{len(switch.segments_from)} will be replaced"
    )
    return session


def audit(run: Run) -> tuple[Session, tuple[Finding, ...]]:
    """W4: look at what the servers loaded and store the receipt that opens the gate, or keeps it shut.

    Files that failed to build keep it shut before Pinot is asked for anything.

    :raises SnapshotIncomplete: nothing is built or staged.
    """
    broken = last_session(run)
    if broken is not None and broken.failures is not None and broken.held_up:
        failures = run.edges.staging.failures(broken.failures)
        return broken, (files_built(broken.counts["files"], failures),)
    session = staged_session(run)
    built = files_built(session.counts["files"], ())
    if session.ending and session.gate_open and session.audit is not None:
        # It may be switched by now, and its sources gone: what was found before the end was sent counts.
        return session, (built, Finding("audited", True, 1, 1, session.audit.summary))
    findings = (built, *run.switcher.audit(read_switch(run, session)))
    if at_fault := _at_fault(run, session, findings):
        ref = run.edges.staging.put_failures(session.id, session.attempt, at_fault)
        session = replace(session, failures=ref)
    return store_audit(run, session, findings), findings


def _at_fault(run: Run, session: Session, findings: Sequence[Finding]) -> list[Failure]:
    """The files of this session whose segments are not what was built (rule R14)."""
    why = {name: f"{f.name}: {f.message}" for f in findings if f.blocks for name in f.at_fault}
    if not why:
        return []
    receipts = run.edges.staging.accepted_receipts(run.edges.staging.plan(session.plan))
    return [
        Failure(receipt.uri, ordinal, session.attempt, "AUDIT", why[bad])
        for ordinal, receipt in receipts.items()
        if (bad := next((o.segment for o in receipt.outputs if o.segment in why), None)) is not None
    ]


def store_audit(run: Run, session: Session, findings: Sequence[Finding]) -> Session:
    """Write the receipt that opens the gate for the session's newest switch, or keeps it shut."""
    failed = [f for f in findings if f.blocks]
    assert session.switch_object is not None
    receipt = AuditReceipt(
        switch=session.switch,
        switch_sha256=session.switch_object.sha256,
        passed=not failed,
        at_ms=run.edges.now_ms(),
        summary="; ".join(f"{f.name}: {f.message}" for f in failed or findings)[:2000],
        waits=bool(failed) and not any(f.at_fault for f in failed),
    )
    session = replace(session, audit=receipt, last_error=receipt.summary if failed else session.last_error)
    run.lease.write(session=session)
    return session


def publish(run: Run) -> Snapshot:
    """W5 and W6: end the replacement, see it everywhere, record the snapshot.

    The gate is enforced here again, from the session's own audit receipt, whatever was run before.

    :raises SnapshotIncomplete: nothing is staged, or the audit has not passed for exactly this switch.
    :raises SwitchConflict: a segment that is to be replaced has gone; the next trigger makes a new switch.
    :raises SwitchStateUnknown: it cannot be told yet; the next trigger looks and finishes.
    """
    session = staged_session(run)
    if session.mode is Mode.ROLLBACK:
        raise SnapshotIncomplete(
            f"what is staged of {run.spec.name} is a rollback",
            why=f"session {session.id} was left half way",
            hint="the next trigger finishes it; `clear` gives it up",
        )
    return record(run, end_switch(run, session))


def end_switch(run: Run, session: Session) -> Session:
    """W5: the gate, then the end of the replacement, unless it was ended before.

    :raises SnapshotIncomplete: the audit has not passed for exactly this switch.
    """
    require_open_gate(run, session)
    switch = read_switch(run, session)
    if not run.switcher.is_published(switch, session.lineage_entry_id, session.end_issued):
        _refuse_changed_sources(run, switch)
        run.switcher.require_open(session.lineage_entry_id)
        if not run.switcher.is_usable(session.lineage_entry_id) or generation_before(run, switch):
            session = renewed(run, session)
        session = replace(session, end_issued=session.lineage_entry_id)
        run.lease.write(session=session)
        try:
            run.switcher.end(session.lineage_entry_id)
        except (SwitchConflict, SwitchStateUnknown):
            run.lease.write(session=replace(session, stalls=session.stalls + 1))  # R10
            raise
    return session


def renewed(run: Run, session: Session) -> Session:
    """The session under a young entry with the same names: its audit stands, an end under way does not.

    :raises SwitchConflict: the entry was ended or lost meanwhile, or a source has gone.
    """
    entry_id = run.switcher.renew(read_switch(run, session), session.lineage_entry_id)
    session = replace(session, lineage_entry_id=entry_id)
    run.lease.write(session=session)
    return session


def stop_ending(run: Run, session: Session) -> Session:
    """Take the entry away from an end under way that is not to be relied on any more.

    :returns: the session, under a young entry; or with its entry lost, where that cannot be.
    """
    try:
        return renewed(run, session)
    except SwitchConflict:
        if not is_open(run, session):
            raise  # it was ended after all; the next trigger records it
        run.switcher.revert_entry(session.lineage_entry_id)
        return session


def require_open_gate(run: Run, session: Session) -> None:
    """Go on only when the stored audit passed for exactly the switch that stands.

    :raises SnapshotIncomplete: it did not, or there was none.
    """
    if not session.gate_open:
        passed = session.audit is not None and session.audit.passed
        raise SnapshotIncomplete(
            f"{run.spec.name} is not switched: the gate is shut",
            why="the audit that passed was for another switch"
            if passed
            else session.last_error or f"switch {session.switch} of {session.id} has not been audited",
            hint="run the whole job: segments → consistent_push → snapshot",
        )


def settle(run: Run, session: Session) -> Session | None:
    """Find out what became of a session that was left in SWITCH.

    :returns: None when it was published after all (and is recorded now), else the session, still open.
    """
    if session.switch_object is None:
        return session
    switch = read_switch(run, session)
    if run.switcher.is_published(switch, session.lineage_entry_id, session.end_issued):
        record(run, session)
        run.note(f"session {session.id} had been switched before its driver died; recorded now")
        return None
    if not is_open(run, session) and (twin := run.switcher.open_twin(switch)):
        # Died between start and the write of the entry's id.
        session = replace(session, lineage_entry_id=twin.id)
        run.lease.write(session=session)
    if is_lost(run, session):
        # Nothing hides them any more: what was pushed is visible now, or may be in a moment.
        run.switcher.delete(switch.names_to)
    return session


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
            f"{lost} segments of {session.id} were deleted or replaced after its switch, not by this project"
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


def last_session(run: Run) -> Session | None:
    """The open session; where none is, one of another push that was given up when its run had failed."""
    return run.active_session() or given_up(run.edges.store.sessions())


def is_open(run: Run, session: Session) -> bool:
    """Whether the session's lineage entry waits for its end."""
    entry = run.edges.pinot.lineage(run.spec.name).get(session.lineage_entry_id)
    return entry is not None and entry.state is LineageState.IN_PROGRESS


def is_lost(run: Run, session: Session) -> bool:
    """Whether the entry of an unpublished switch was reverted, or reaped: its names are spent (R16)."""
    opened = session.switch_object is not None and session.lineage_entry_id != ""
    return opened and not is_open(run, session)


def _withdraw(run: Run, session: Session) -> Session:
    """Take back what an earlier switch of this session staged: nothing of it is wanted any more (I14)."""
    if session.switch_object is None:
        return session
    if is_open(run, session):
        run.switcher.revert_entry(session.lineage_entry_id)
    run.switcher.delete(read_switch(run, session).names_to)
    return replace(session, switch_object=None)


def finish_without_switch(run: Run, session: Session) -> Session:
    """NOOP: no segment comes or goes, but the ledger learns what was seen (rule R20)."""
    current = run.current_snapshot()
    plan = run.edges.staging.plan(session.plan)
    snapshot = snapshot_of(
        run,
        session,
        plan,
        # A way back leads past a snapshot that switched nothing.
        entry_id=current.lineage_entry_id if current else "",
        parent=current.parent if current else None,
    )
    return close_published(run, session, Outcome.NOOP, snapshot)


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
        audit=asdict(session.audit) if session.audit else {},
    )


def close_published(run: Run, session: Session, outcome: Outcome, snapshot: Snapshot) -> Session:
    """Write the snapshot, and in one transaction make it the current one and close the session."""
    ref = run.edges.staging.put_snapshot(snapshot)
    error = "" if session.failures is None else session.last_error
    done = close(replace(session, last_error=error), outcome, run.edges.now_ms())
    pointer = replace(run.lease.pointer, active_session="", current_snapshot=ref)
    run.lease.write(pointer=pointer, session=done)
    return done


def staged_session(run: Run) -> Session:
    """The session whose newest plan is staged, in SWITCH.

    :raises SnapshotIncomplete: there is none; says why.
    """
    session = last_session(run)
    if session is not None and session.held_up:
        raise SnapshotIncomplete(
            f"files of {run.spec.name} could not be built",
            why=session.last_error,
            hint="repair or remove them, then run the table again: only they are built again",
        )
    if session is None or session.state is not State.SWITCH or session.switch_object is None:
        state = "no session is open" if session is None else f"session {session.id} is {session.state}"
        raise SnapshotIncomplete(
            f"nothing of {run.spec.name} is staged for a switch",
            why=session.last_error and f"{state}; {session.last_error}" if session else state,
            hint="materialize `segments` first: it builds and stages what the source holds",
        )
    if session.switch_attempt != session.attempt:
        raise SnapshotIncomplete(
            f"what is staged of {run.spec.name} is not what its newest plan says",
            why=session.last_error or f"attempt {session.attempt} of {session.id} has not been staged",
            hint="materialize `segments` again: it goes on from what is built",
        )
    return session


def _same_lists(run: Run, session: Session, wanted: Switch) -> bool:
    """Whether the switch that stands already says exactly this."""
    if session.switch_object is None:
        return False
    switch = read_switch(run, session)
    return (switch.segments_from, switch.names_to) == (wanted.segments_from, wanted.names_to)


def refuse_hidden_sources(run: Run, plan: Plan, current: Snapshot | None, visible: frozenset[str]) -> None:
    """Segments of ours that somebody else's entry hides: not ours to replace any more (rule R5).

    Append replaces nothing, and swap whatever is visible.
    """
    if current is None or plan.mode is not Mode.SYNC:
        return
    hidden = (set(current.segments) - visible) & run.edges.pinot.all_segments(run.spec.name)
    if hidden:
        raise SwitchConflict(
            f"{run.spec.name} is paused: somebody else replaced segments of this table",
            why=f"{len(hidden)} published segments are hidden: {', '.join(sorted(hidden)[:5])}",
            hint="a merge or rollup task on this table? Turn it off, then swap the whole table once",
        )


def _refuse_changed_sources(run: Run, switch: Switch) -> None:
    gone = set(switch.segments_from) - run.edges.pinot.visible_segments(run.spec.name)
    if gone:
        raise SwitchConflict(
            f"{run.spec.name} is not switched: segments to be replaced have gone",
            why=f"{len(gone)} of {len(switch.segments_from)}, first {min(gone)}",
            hint="the next trigger makes a new switch from what is visible then",
        )
