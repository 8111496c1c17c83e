"""The audit and the receipt that it leaves: W4 of docs/design/session.md#the-switch-w1-to-w6."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pinot_assets.audit.checks import Finding, files_built
from pinot_assets.session.checks.assertions import assertion_findings
from pinot_assets.session.checks.losses import loss_findings
from pinot_assets.session.checks.receipt_checks import cut_findings, receipt_findings
from pinot_assets.session.checks.server_checks import server_findings
from pinot_assets.session.commit.gate import require_staged
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.recover.finalize import load_switch
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values import quarantined_rows
from pinot_assets.session.values.state import AuditReceipt, Checked, Mode, Session
from pinot_assets.snapshot.receipt import Failure, Receipt


def audit(context: TriggerContext, session: Session) -> tuple[Session, tuple[Finding, ...]]:
    """W4: look at what the servers loaded and store the receipt that opens the gate, or keeps it shut.

    Files that failed to build keep it shut before Pinot is asked for anything.

    :raises SnapshotIncomplete: nothing is built or staged.
    """
    if session.failures is not None and session.has_blocking_failures:
        failures = context.clients.staging.failures(session.failures)
        return session, (files_built(session.counts["files"], failures),)
    require_staged(context, session)
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
