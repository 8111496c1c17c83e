"""Sessions with nothing to switch, since no segment comes or goes: what was read is audited all the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from pinot_assets.audit.checks import Finding
from pinot_assets.session.checks.assertions import assertion_findings
from pinot_assets.session.close import close_published, load_switch, snapshot_of, without_entry
from pinot_assets.session.commit.gate import (
    findings_of_files,
    refuse_failed_files,
    shut,
    with_audit,
    with_those_at_fault,
)
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.state import Outcome, Session, State
from pinot_assets.snapshot.manifest import LEFT
from pinot_assets.snapshot.receipt import Receipt


def finish_without_switch(context: TriggerContext, session: Session) -> Session:
    """NOOP: the ledger learns what was seen (rule R20)."""
    current = context.current_snapshot()
    plan = context.clients.staging.plan(session.plan)
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
    plan_ref = context.clients.staging.put_plan(plan)
    if session.switch_object is not None:
        # Nothing of what an earlier switch of this session staged is wanted any more (I14).
        session = without_entry(context, session)
        context.switcher.delete(load_switch(context, session).names_to)
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
    context.lease.write(session=session)
    return session


def audit_without_switch(context: TriggerContext, session: Session) -> tuple[Session, tuple[Finding, ...]]:
    """The gate (W4) of a session that would have ended as NOOP, had it passed it: looked at again."""
    staging = context.clients.staging
    session, findings = _audited(context, session, staging.accepted_receipts(staging.plan(session.plan)))
    context.lease.write(session=session)
    return session, findings


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
