"""The gate: whether what is staged may be published, enforced again at W5 whatever was run before; and the
audit whose receipt opens it (W4 of docs/design/session.md#the-switch-w1-to-w6).

Where no segment comes or goes, there is nothing to switch: what was read is audited all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from pinot_assets.audit.checks import Finding, files_built
from pinot_assets.errors import SnapshotIncomplete
from pinot_assets.session.checks.assertions import assertion_findings
from pinot_assets.session.checks.receipt_checks import cut_findings, loss_findings, receipt_findings
from pinot_assets.session.checks.server_checks import server_findings
from pinot_assets.session.close import close_published, load_switch, revert_entry_of, snapshot_of
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.report import rows_put_aside
from pinot_assets.session.values.state import AuditReceipt, Checked, Mode, Outcome, Session, State, given_up
from pinot_assets.snapshot.manifest import LEFT
from pinot_assets.snapshot.receipt import Failure, Receipt


def session_to_gate(context: TriggerContext) -> Session:
    """The open session; where none is, one of another push that was given up when its run had failed.

    :raises SnapshotIncomplete: there is neither.
    """
    session = context.active_session() or given_up(context.clients.store.newest_session())
    if session is None:
        raise _nothing_staged(context, "no session is open")
    return session


def require_staged(context: TriggerContext, session: Session) -> None:
    """Go on only when the session's newest plan is staged, in SWITCH.

    :raises SnapshotIncomplete: it is not; says why.
    """
    refuse_failed_files(context, session)
    if session.passed_without_switch:
        raise SnapshotIncomplete(
            f"nothing of {context.table} has to be switched",
            why=f"the audit of session {session.id} passes by now, and no segment comes or goes",
            hint="run the table again: it takes note of the files, and builds none",
        )
    require_switch(context, session)
    if session.switch_attempt != session.attempt:
        raise SnapshotIncomplete(
            f"what is staged of {context.table} is not what its newest plan says",
            why=session.last_error or f"attempt {session.attempt} of {session.id} has not been staged",
            hint="materialize `segments` again: it goes on from what is built",
        )


def refuse_failed_files(context: TriggerContext, session: Session) -> None:
    """Files that could not be built keep back all the others, except in a plain push.

    :raises SnapshotIncomplete: there are some.
    """
    if session.has_blocking_failures:
        raise SnapshotIncomplete(
            f"files of {context.table} could not be built",
            why=session.last_error,
            hint="repair or remove them, then run the table again: only they are built again",
        )


def require_switch(context: TriggerContext, session: Session) -> None:
    """Go on only when the session has a switch to make.

    :raises SnapshotIncomplete: it has none.
    """
    if session.state is not State.SWITCH or session.switch_object is None:
        state = f"session {session.id} is {session.state}"
        raise _nothing_staged(context, f"{state}; {session.last_error}" if session.last_error else state)


def _nothing_staged(context: TriggerContext, why: str) -> SnapshotIncomplete:
    return SnapshotIncomplete(
        f"nothing of {context.table} is staged for a switch",
        why=why,
        hint="materialize `segments` first: it builds and stages what the source holds",
    )


def require_spec(context: TriggerContext, session: Session) -> None:
    """The table spec is still the one by which it was built and audited.

    :raises SnapshotIncomplete: what is staged is not what the table wants by now; only a trigger gives it up.
    """
    if session.config_fingerprint != context.fingerprint:
        raise shut(context, session, f"its table spec was changed after {session.id} had been planned")
    if not session.gate_open_by(context.spec.audit.digest):
        raise shut(context, session, "its table spec asks for something else than the audit that passed did")


def require_open_gate(context: TriggerContext, session: Session) -> None:
    """Go on only when the stored audit passed for exactly the switch that stands.

    :raises SnapshotIncomplete: it did not, or there was none.
    """
    if not session.gate_open:
        passed = session.audit is not None and session.audit.passed
        why = session.last_error or f"switch {session.switch} of {session.id} has not been audited"
        raise shut(context, session, "the audit that passed was for another switch" if passed else why)


def shut(context: TriggerContext, session: Session, why: str) -> SnapshotIncomplete:
    """The error that says why nothing is published, and what would open the gate."""
    return SnapshotIncomplete(f"the gate of {context.table} is shut", why=why, hint=_way_on(session.audit))


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


def audit(context: TriggerContext, session: Session) -> tuple[Session, tuple[Finding, ...]]:
    """W4: look at what the servers loaded and store the receipt that opens the gate, or keeps it shut.

    Files that failed to build keep it shut before Pinot is asked for anything.

    :raises SnapshotIncomplete: nothing is built or staged.
    """
    if session.failures is not None and session.has_blocking_failures:
        failures = context.staging.failures(session.failures)
        return session, (files_built(session.counts["files"], failures),)
    require_staged(context, session)
    if session.end_sent and session.gate_open and session.audit is not None:
        # It may be switched by now, and its sources gone: what was found before the end was sent counts.
        return session, (_all_built(session), Finding("audited", True, 1, 1, session.audit.summary))
    switch, staging = load_switch(context, session), context.staging
    receipts = staging.accepted_receipts(staging.plan(session.plan))
    loaded = server_findings(context, switch)
    if session.mode is Mode.ROLLBACK:
        # Nothing that data look like, or the schema of today, may bar the way back.
        findings = (_all_built(session), *rows_put_aside(context.spec, receipts.values()), *loaded)
    else:
        findings = (*findings_of_files(context, session, switch, receipts.values()), *loaded)
        if not any(finding.blocks for finding in loaded):
            # Only what is loaded can be asked.
            findings += assertion_findings(context, switch, receipts.values())
    session = with_those_at_fault(context, session, receipts, findings)
    return store_audit(context, session, findings), findings


def findings_of_files(
    context: TriggerContext, session: Session, switch: Switch, receipts: Collection[Receipt]
) -> tuple[Finding, ...]:
    """What is found in the files that a session read, before servers are asked.

    :param receipts: those that its plan accepted.
    """
    aside = rows_put_aside(context.spec, receipts)
    cut, losses = cut_findings(context, session, receipts), loss_findings(context, session, receipts)
    return (_all_built(session), *aside, *receipt_findings(context, switch, receipts), *cut, *losses)


def _all_built(session: Session) -> Finding:
    return files_built(session.counts["files"], ())


def with_those_at_fault(
    context: TriggerContext, session: Session, receipts: Mapping[int, Receipt], findings: Sequence[Finding]
) -> Session:
    """The session with the files that findings blame, which are not built as they should be, or whose
    segments are not what was built (rule R14): their receipts do not count any more."""
    why = {name: f"{f.name}: {f.message}" for f in findings if f.blocks for name in (*f.at_fault, *f.files)}
    at_fault: list[Failure] = []
    for ordinal, receipt in receipts.items():
        names = (receipt.uri, *(output.segment for output in receipt.outputs))
        if (bad := next((name for name in names if name in why), None)) is not None:
            at_fault.append(Failure(receipt.uri, ordinal, session.attempt, "AUDIT", why[bad]))
    if not at_fault:
        return session
    return replace(
        session, failures=context.staging.put_failures(session.id, session.attempt, at_fault, session.format)
    )


def store_audit(context: TriggerContext, session: Session, findings: Sequence[Finding]) -> Session:
    """Write the receipt that opens the gate for the session's newest switch, or keeps it shut."""
    return context.write_session(with_audit(context, session, findings))


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


# --- nothing to switch -------------------------------------------------------------------------------


def finish_without_switch(context: TriggerContext, session: Session) -> Session:
    """NOOP: the ledger learns what was seen (rule R20)."""
    current = context.current_snapshot()
    plan = context.staging.plan(session.plan)
    snapshot = snapshot_of(
        context,
        session,
        plan,
        # A way back leads past a snapshot that switched nothing.
        entry_id=current.lineage_entry_id if current else "",
        parent=current.parent if current else None,
    )
    if current is not None:  # what a rollback left may still be asked for
        left = {key: current.audit[key] for key in LEFT if key in current.audit}
        snapshot = replace(snapshot, audit={**snapshot.audit, **left})
    return close_published(context, session, Outcome.NOOP, snapshot)


def stage_without_switch(
    context: TriggerContext, session: Session, plan: Plan, receipts: Mapping[int, Receipt]
) -> Session:
    """NOOP, unless the audit objects to a file: one whose rows all got lost gives no segment, either.

    :returns: the session, DONE; or IN_PROGRESS with the audit that it did not pass.
    """
    plan_ref = context.staging.put_plan(plan)
    if session.switch_object is not None:
        # Nothing of what an earlier switch of this session staged is wanted any more (I14).
        session = revert_entry_of(context, session)
        context.switcher().delete(load_switch(context, session).names_to)
    session = replace(session, switch_object=None, plan=plan_ref, counts=plan.counts())
    if not plan.done:
        return finish_without_switch(context, session)
    session = replace(session, state=State.IN_PROGRESS)
    session, findings = _audited(context, session, {row.ordinal: receipts[row.ordinal] for row in plan.done})
    if not any(finding.blocks for finding in findings):
        for finding in findings:  # no gate comes that would show them
            if not finding.passed:
                context.note(f"{finding.name}: {finding.message}")
        return finish_without_switch(context, session)
    return context.write_session(session)


def audit_without_switch(context: TriggerContext, session: Session) -> tuple[Session, tuple[Finding, ...]]:
    """The gate (W4) of a session that would have ended as NOOP, had it passed it: looked at again."""
    session, findings = _audited(
        context, session, context.staging.accepted_receipts(context.staging.plan(session.plan))
    )
    return context.write_session(session), findings


def refuse_without_switch(context: TriggerContext, session: Session) -> NoReturn:
    """Nothing can be shown as long as its audit is not passed; once it is, the next trigger ends it.

    :raises SnapshotIncomplete: always.
    """
    refuse_failed_files(context, session)
    raise shut(context, session, session.last_error)


def _audited(
    context: TriggerContext, session: Session, receipts: Mapping[int, Receipt]
) -> tuple[Session, tuple[Finding, ...]]:
    nothing = Switch(session.switch, (), ())
    findings = findings_of_files(context, session, nothing, receipts.values())
    findings += assertion_findings(context, nothing, receipts.values())
    return with_audit(context, with_those_at_fault(context, session, receipts, findings), findings), findings
