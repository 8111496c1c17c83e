"""The gate and the switch: W4 and W5 of docs/design/session.md#the-switch-w1-to-w6."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pinot_assets.audit import Finding, files_built
from pinot_assets.errors import SnapshotIncomplete, SwitchConflict, SwitchStateUnknown
from pinot_assets.session.checks.assertions import assertion_findings
from pinot_assets.session.checks.capacity import generation_before
from pinot_assets.session.checks.losses import loss_findings
from pinot_assets.session.checks.receipt_checks import cut_findings, receipt_findings
from pinot_assets.session.checks.server_checks import server_findings
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.recover.finalize import finalize, load_switch
from pinot_assets.session.recover.resolve_interrupted import renewed
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values import quarantined_rows
from pinot_assets.session.values.state import AuditReceipt, Checked, Mode, Session, State, given_up
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure, Receipt


def audit(context: TriggerContext) -> tuple[Session, tuple[Finding, ...]]:
    """W4: look at what the servers loaded and store the receipt that opens the gate, or keeps it shut.

    Files that failed to build keep it shut before Pinot is asked for anything.

    :raises SnapshotIncomplete: nothing is built or staged.
    """
    broken = last_session(context)
    if broken is not None and broken.failures is not None and broken.has_blocking_failures:
        failures = context.clients.staging.failures(broken.failures)
        return broken, (files_built(broken.counts["files"], failures),)
    session = staged_session(context)
    if session.end_sent and session.gate_open and session.audit is not None:
        # It may be switched by now, and its sources gone: what was found before the end was sent counts.
        return session, (_all_built(session), Finding("audited", True, 1, 1, session.audit.summary))
    switch, staging = load_switch(context, session), context.clients.staging
    receipts = staging.accepted_receipts(staging.plan(session.plan))
    loaded = server_findings(context, switch)
    if session.mode is Mode.ROLLBACK:
        # Nothing that data look like, or the schema of today, may bar the way back.
        findings = (_all_built(session), *quarantined_rows.finding(context.spec, receipts.values()), *loaded)
    else:
        findings = (*findings_of_files(context, session, switch, receipts.values()), *loaded)
        if not any(finding.blocks for finding in loaded):
            findings += assertion_findings(
                context, switch, receipts.values()
            )  # only what is loaded can be asked
    session = with_those_at_fault(context, session, receipts, findings)
    return store_audit(context, session, findings), findings


def findings_of_files(
    context: TriggerContext, session: Session, switch: Switch, receipts: Collection[Receipt]
) -> tuple[Finding, ...]:
    """What is found in the files that a session read, before servers are asked.

    :param receipts: those that its plan accepted.
    """
    aside = quarantined_rows.finding(context.spec, receipts)
    cut, losses = cut_findings(context, session, receipts), loss_findings(context, session, receipts)
    return (_all_built(session), *aside, *receipt_findings(context, switch, receipts), *cut, *losses)


def _all_built(session: Session) -> Finding:
    return files_built(session.counts["files"], ())


def with_those_at_fault(
    context: TriggerContext, session: Session, receipts: Mapping[int, Receipt], findings: Sequence[Finding]
) -> Session:
    """The session with the files that findings blame: their receipts do not count any more."""
    at_fault = _at_fault(session, receipts, findings)
    if not at_fault:
        return session
    return replace(
        session,
        failures=context.clients.staging.put_failures(session.id, session.attempt, at_fault, session.format),
    )


def _at_fault(
    session: Session, receipts: Mapping[int, Receipt], findings: Sequence[Finding]
) -> list[Failure]:
    """The files of this session that are not built as they should be, or whose segments are not what was
    built (rule R14)."""
    why = {name: f"{f.name}: {f.message}" for f in findings if f.blocks for name in (*f.at_fault, *f.files)}
    named = {o: (r, [r.uri, *(output.segment for output in r.outputs)]) for o, r in receipts.items()}
    return [
        Failure(receipt.uri, ordinal, session.attempt, "AUDIT", why[bad])
        for ordinal, (receipt, names) in named.items()
        if (bad := next(filter(why.__contains__, names), None)) is not None
    ]


def store_audit(context: TriggerContext, session: Session, findings: Sequence[Finding]) -> Session:
    """Write the receipt that opens the gate for the session's newest switch, or keeps it shut."""
    session = with_audit(context, session, findings)
    context.lease.write(session=session)
    return session


def with_audit(context: TriggerContext, session: Session, findings: Sequence[Finding]) -> Session:
    """The session with that receipt, not written yet; where it has no switch, the receipt is of none."""
    failed = [f for f in findings if f.blocks]
    of_files = session.last_error if session.failures is not None else ""
    receipt = AuditReceipt(
        switch=session.switch,
        switch_sha256=session.switch_object.sha256 if session.switch_object is not None else "",
        passed=not failed,
        at_ms=context.clients.now_ms(),
        summary="; ".join(f"{f.name}: {f.message}" for f in failed or findings)[:2000],
        waits=bool(failed) and not any(f.blames for f in failed),
        of_data=any(f.of_data for f in failed),
        checks=checked(findings),
        policy=context.spec.audit.digest,
    )
    return replace(
        session,
        audit=receipt,
        last_error=receipt.summary if failed else of_files,
        trouble_since_ms=(session.trouble_since_ms or receipt.at_ms) if receipt.may_pass else 0,
    )


def checked(findings: Sequence[Finding]) -> tuple[Checked, ...]:
    """Their numbers, as the receipt keeps them."""
    return tuple(Checked(f.name, f.passed, f.expected, f.found) for f in findings)


def publish(context: TriggerContext) -> Snapshot:
    """W5 and W6: end the replacement, see it everywhere, record the snapshot.

    The gate is enforced here again, from the session's own audit receipt, whatever was run before.

    :raises SnapshotIncomplete: nothing is staged, or the audit has not passed for exactly this switch and
        the table spec of now.
    :raises SwitchConflict: a segment that is to be replaced has gone; the next trigger makes a new switch.
    :raises SwitchStateUnknown: it cannot be told yet; the next trigger looks and finishes.
    """
    session = staged_session(context)
    if session.mode is Mode.ROLLBACK:
        raise SnapshotIncomplete(
            f"what is staged of {context.spec.name} is a rollback",
            why=f"session {session.id} was left half way",
            hint="the next trigger finishes it; `clear` gives it up",
        )
    if session.gate_open and not session.end_sent:
        _require_spec(context, session)
    return finalize(context, end_switch(context, session))


def _require_spec(context: TriggerContext, session: Session) -> None:
    """The table spec is still the one by which it was built and audited.

    :raises SnapshotIncomplete: what is staged is not what the table wants by now; only a trigger gives it up.
    """
    if session.config_fingerprint != context.fingerprint:
        why = f"its table spec was changed after {session.id} had been planned"
    elif not session.gate_open_by(context.spec.audit.digest):
        why = "its table spec asks for something else than the audit that passed did"
    else:
        return
    raise _shut(context, session, why)


def end_switch(context: TriggerContext, session: Session) -> Session:
    """W5: the gate, then the end of the replacement, unless it was ended before.

    :raises SnapshotIncomplete: the audit has not passed for exactly this switch.
    """
    require_open_gate(context, session)
    switch = load_switch(context, session)
    if not context.switcher.is_published(switch, session.lineage_entry_id, session.end_issued):
        _refuse_changed_sources(context, switch)
        _require_its_entry(context, session, switch)
        if not context.switcher.is_usable(session.lineage_entry_id) or generation_before(context, switch):
            session = renewed(context, session)
        session = replace(session, end_issued=session.lineage_entry_id)
        context.lease.write(session=session)
        try:
            context.switcher.end(session.lineage_entry_id)
        except (SwitchConflict, SwitchStateUnknown):
            context.lease.write(session=replace(session, stalls=session.stalls + 1))  # R10
            raise
    return session


def require_open_gate(context: TriggerContext, session: Session) -> None:
    """Go on only when the stored audit passed for exactly the switch that stands.

    :raises SnapshotIncomplete: it did not, or there was none.
    """
    if not session.gate_open:
        passed = session.audit is not None and session.audit.passed
        why = session.last_error or f"switch {session.switch} of {session.id} has not been audited"
        raise _shut(context, session, "the audit that passed was for another switch" if passed else why)


def _shut(context: TriggerContext, session: Session, why: str) -> SnapshotIncomplete:
    return SnapshotIncomplete(
        f"the gate of {context.spec.name} is shut", why=why, hint=_way_on(session.audit)
    )


def _way_on(audit: AuditReceipt | None) -> str:
    """What opens a gate that is shut."""
    if audit is None or audit.passed:
        return "run the whole job: segments → consistent_push → snapshot"
    if audit.of_data:
        return "repair the files that it is about, or change the assertion, and run the table again"
    if audit.waits:
        by_itself = "sensors and `watch` do it by themselves"
        return f"see to what it names and run the table again ({by_itself}): nothing is built again"
    return "run the table again: the files that it names are built again"


def last_session(context: TriggerContext) -> Session | None:
    """The open session; where none is, one of another push that was given up when its run had failed."""
    return context.active_session() or given_up(context.clients.store.newest_session())


def staged_session(context: TriggerContext) -> Session:
    """The session whose newest plan is staged, in SWITCH.

    :raises SnapshotIncomplete: there is none; says why.
    """
    session = last_session(context)
    if session is not None and session.has_blocking_failures:
        raise SnapshotIncomplete(
            f"files of {context.spec.name} could not be built",
            why=session.last_error,
            hint="repair or remove them, then run the table again: only they are built again",
        )
    if session is not None and session.refused_without_switch:
        require_open_gate(context, session)
    if session is not None and session.passed_without_switch:
        raise SnapshotIncomplete(
            f"nothing of {context.spec.name} has to be switched",
            why=f"the audit of session {session.id} passes by now, and no segment comes or goes",
            hint="run the table again: it takes note of the files, and builds none",
        )
    if session is None or session.state is not State.SWITCH or session.switch_object is None:
        state = "no session is open" if session is None else f"session {session.id} is {session.state}"
        raise SnapshotIncomplete(
            f"nothing of {context.spec.name} is staged for a switch",
            why=session.last_error and f"{state}; {session.last_error}" if session else state,
            hint="materialize `segments` first: it builds and stages what the source holds",
        )
    if session.switch_attempt != session.attempt:
        raise SnapshotIncomplete(
            f"what is staged of {context.spec.name} is not what its newest plan says",
            why=session.last_error or f"attempt {session.attempt} of {session.id} has not been staged",
            hint="materialize `segments` again: it goes on from what is built",
        )
    return session


def _require_its_entry(context: TriggerContext, session: Session, switch: Switch) -> None:
    """The session's entry is open, is to stay so until it is ended, and is this switch's: a driver that died
    between W1 and W2 left the one of the switch before.

    :raises SwitchConflict: it is not.
    """
    entry = context.switcher.require_open(session.lineage_entry_id)
    if session.revert_sent or not entry.has_names(switch.segments_from, switch.names_to):
        raise SwitchConflict(
            f"lineage entry {session.lineage_entry_id} of {context.spec.name} is not the one to end",
            why="a revert of it was sent, and may still arrive"
            if session.revert_sent
            else f"it is not the one of switch {switch.number}, for which none was opened yet",
            hint="the next trigger opens another one; nothing is rebuilt",
        )


def _refuse_changed_sources(context: TriggerContext, switch: Switch) -> None:
    gone = set(switch.segments_from) - context.clients.pinot.visible_segments(context.spec.name)
    if gone:
        raise SwitchConflict(
            f"segments of {context.spec.name} that were to be replaced have gone",
            why=f"{len(gone)} of {len(switch.segments_from)}, first {min(gone)}",
            hint="the next trigger makes a new switch from what is visible then",
        )
