"""The gate decides whether a staged switch may be published; W5 enforces it again. The audit stores the
receipt that opens the gate (W4 of docs/design/session.md#the-switch-w1-to-w6).

When no segment is added or removed, there is nothing to switch. The files that were read are audited anyway.
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
    """Return the open session, else an atomic or plain one that was given up because files failed.

    :raises SnapshotIncomplete: there is neither.
    """
    session = context.active_session() or given_up(context.clients.store.newest_session())
    if session is None:
        raise _nothing_staged(context, "no session is open")
    return session


def require_staged(context: TriggerContext, session: Session) -> None:
    """Require that the session is in SWITCH and that its switch publishes the newest plan.

    :raises SnapshotIncomplete: it does not; the error gives the reason.
    """
    refuse_failed_files(context, session)
    if session.passed_without_switch:
        raise SnapshotIncomplete(
            f"nothing of {context.table} has to be switched",
            why=f"the audit of session {session.id} now passes, and no segment is added or replaced",
            hint="run the table again: it records the files, and builds none",
        )
    require_switch(context, session)
    if session.switch_attempt != session.attempt:
        raise SnapshotIncomplete(
            f"what is staged of {context.table} is not what its newest plan requires",
            why=session.last_error or f"attempt {session.attempt} of {session.id} has not been staged",
            hint="materialize `segments` again: it continues from what is built",
        )


def refuse_failed_files(context: TriggerContext, session: Session) -> None:
    """Refuse a session with failed files. Only a plain push publishes the other files all the same.

    :raises SnapshotIncomplete: files failed, and the push is not plain.
    """
    if session.has_blocking_failures:
        raise SnapshotIncomplete(
            f"files of {context.table} could not be built",
            why=session.last_error,
            hint="correct or remove them, then run the table again: only they are built again",
        )


def require_switch(context: TriggerContext, session: Session) -> None:
    """Require that the session has a switch.

    :raises SnapshotIncomplete: it has none.
    """
    if session.state is not State.SWITCH or session.switch_object is None:
        state = f"session {session.id} is {session.state}"
        raise _nothing_staged(context, f"{state}; {session.last_error}" if session.last_error else state)


def _nothing_staged(context: TriggerContext, why: str) -> SnapshotIncomplete:
    return SnapshotIncomplete(
        f"nothing of {context.table} is staged for a switch",
        why=why,
        hint="materialize `segments` first: it builds and stages the files of the source",
    )


def require_spec(context: TriggerContext, session: Session) -> None:
    """Require that the table spec is still the one with which the session was planned and audited.

    :raises SnapshotIncomplete: the spec has changed since. Only a trigger gives such a session up.
    """
    if session.config_fingerprint != context.fingerprint:
        raise shut(context, session, f"its table spec was changed after {session.id} was planned")
    if not session.gate_open_by(context.spec.audit.digest):
        raise shut(context, session, "its table spec requires something else than the audit that passed")


def require_open_gate(context: TriggerContext, session: Session) -> None:
    """Require that the stored audit passed for exactly the session's newest switch.

    :raises SnapshotIncomplete: it failed, it was for another switch, or there was none.
    """
    if not session.gate_open:
        passed = session.audit is not None and session.audit.passed
        why = session.last_error or f"switch {session.switch} of {session.id} has not been audited"
        raise shut(context, session, "the audit that passed was for another switch" if passed else why)


def shut(context: TriggerContext, session: Session, why: str) -> SnapshotIncomplete:
    """Return the error that says why nothing is published and what opens the gate."""
    return SnapshotIncomplete(f"the gate of {context.table} is shut", why=why, hint=_way_on(session.audit))


def _way_on(audit: AuditReceipt | None) -> str:
    """Return the hint: what opens a gate that is shut."""
    if audit is None or audit.passed:
        return "run the whole job: segments → consistent_push → snapshot"
    if audit.of_data:
        return "correct the files that it names, or change the assertion, and run the table again"
    if audit.waits:
        by_itself = "sensors and `watch` do so, too"
        return f"correct what it names and run the table again ({by_itself}): nothing is built again"
    return "run the table again: the files that it names are built again"


def audit(context: TriggerContext, session: Session) -> tuple[Session, tuple[Finding, ...]]:
    """W4: check what the servers loaded, and store the receipt that opens the gate or keeps it shut.

    Failed files keep the gate shut; then this function asks Pinot for nothing and stores no receipt.

    :raises SnapshotIncomplete: nothing is built or staged.
    """
    if session.failures is not None and session.has_blocking_failures:
        failures = context.staging.failures(session.failures)
        return session, (files_built(session.counts["files"], failures),)
    require_staged(context, session)
    if session.end_sent and session.gate_open and session.audit is not None:
        # Pinot may have switched already and its sources may be gone. So the audit before the end counts.
        return session, (_all_built(session), Finding("audited", True, 1, 1, session.audit.summary))
    switch, staging = load_switch(context, session), context.staging
    receipts = staging.accepted_receipts(staging.plan(session.plan))
    loaded = server_findings(context, switch)
    if session.mode is Mode.ROLLBACK:
        # Neither the data nor today's schema may block a rollback, so no check of the files is made.
        findings = (_all_built(session), *rows_put_aside(context.spec, receipts.values()), *loaded)
    else:
        findings = (*findings_of_files(context, session, switch, receipts.values()), *loaded)
        if not any(finding.blocks for finding in loaded):
            # An assertion queries segments, so they must be loaded.
            findings += assertion_findings(context, switch, receipts.values())
    session = with_those_at_fault(context, session, receipts, findings)
    return store_audit(context, session, findings), findings


def findings_of_files(
    context: TriggerContext, session: Session, switch: Switch, receipts: Collection[Receipt]
) -> tuple[Finding, ...]:
    """Return the findings about the files that a session read. They need no server.

    :param receipts: the receipts that the session's plan accepted.
    """
    files = [receipt for receipt in receipts if not receipt.is_pack]
    aside = rows_put_aside(context.spec, files)
    cut, losses = cut_findings(context, session, files), loss_findings(context, session, files)
    return (_all_built(session), *aside, *receipt_findings(context, session, switch, receipts), *cut, *losses)


def _all_built(session: Session) -> Finding:
    return files_built(session.counts["files"], ())


def with_those_at_fault(
    context: TriggerContext, session: Session, receipts: Mapping[int, Receipt], findings: Sequence[Finding]
) -> Session:
    """Return the session with the files that a blocking finding blames stored as failures. Their receipts do
    not count any more: the file was built wrongly, or Pinot's segment is not what was built (rule R14)."""
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
    """Store the audit receipt that opens the gate for the session's newest switch, or keeps it shut."""
    return context.write_session(with_audit(context, session, findings))


def with_audit(context: TriggerContext, session: Session, findings: Sequence[Finding]) -> Session:
    """Return the session with that receipt, not stored yet. Without a switch, the receipt names no hash."""
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
    """Return the numbers of the findings as the audit receipt stores them."""
    return tuple(Checked(f.name, f.passed, f.expected, f.found) for f in findings)


# --- nothing to switch -------------------------------------------------------------------------------


def finish_without_switch(context: TriggerContext, session: Session) -> Session:
    """Close the session as NOOP: a new snapshot records what the listing showed (rule R20)."""
    current = context.current_snapshot()
    plan = context.staging.plan(session.plan)
    snapshot = snapshot_of(
        context,
        session,
        plan,
        # This snapshot switched nothing, so a rollback goes to the parent of the one before it.
        entry_id=current.lineage_entry_id if current else "",
        parent=current.parent if current else None,
    )
    if current is not None:  # the snapshot that a rollback left is still needed
        left = {key: current.audit[key] for key in LEFT if key in current.audit}
        snapshot = replace(snapshot, audit={**snapshot.audit, **left})
    return close_published(context, session, Outcome.NOOP, snapshot)


def stage_without_switch(
    context: TriggerContext, session: Session, plan: Plan, receipts: Mapping[int, Receipt]
) -> Session:
    """Close as NOOP unless the audit blocks a file: a file that lost all its rows gives no segment, either.

    :returns: the session, DONE; or IN_PROGRESS with the failed audit.
    """
    plan_ref = context.staging.put_plan(plan)
    if session.switch_object is not None:
        # The session has no use any more for the segments that its earlier switch staged (I14).
        session = revert_entry_of(context, session)
        context.switcher().delete(load_switch(context, session).names_to)
    session = replace(session, switch_object=None, plan=plan_ref, counts=plan.counts())
    if not plan.done:
        return finish_without_switch(context, session)
    session = replace(session, state=State.IN_PROGRESS)
    session, findings = _audited(context, session, {row.ordinal: receipts[row.ordinal] for row in plan.done})
    if not any(finding.blocks for finding in findings):
        for finding in findings:  # no gate follows, so nothing else would show the warnings
            if not finding.passed:
                context.note(f"{finding.name}: {finding.message}")
        return finish_without_switch(context, session)
    return context.write_session(session)


def audit_without_switch(context: TriggerContext, session: Session) -> tuple[Session, tuple[Finding, ...]]:
    """Repeat the audit (W4) of a session without a switch that did not end as NOOP: its audit had failed."""
    session, findings = _audited(
        context, session, context.staging.accepted_receipts(context.staging.plan(session.plan))
    )
    return context.write_session(session), findings


def refuse_without_switch(context: TriggerContext, session: Session) -> NoReturn:
    """Refuse to publish: the session's audit failed. Once it passes, the next trigger closes the session.

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
