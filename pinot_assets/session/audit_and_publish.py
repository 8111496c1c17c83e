"""Audit what is staged, and publish it: the second and the third step of a run (W4 to W6)."""

from __future__ import annotations

from pinot_assets.audit.checks import Finding
from pinot_assets.session.close import abandon
from pinot_assets.session.commit.gate import session_to_gate
from pinot_assets.session.commit.strategy import strategy_of
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.rollback.retention import expire
from pinot_assets.session.values.progress import RunPhase
from pinot_assets.session.values.state import Outcome, PushKind, Session
from pinot_assets.snapshot.manifest import Snapshot


def audit_staged(context: TriggerContext) -> tuple[Session, tuple[Finding, ...]]:
    """Audit the staged segments and store the audit receipt.

    :returns: the session after that, and what the checks found.
    :raises SnapshotIncomplete: nothing is staged.
    """
    context.progress.begin(RunPhase.AUDIT)
    session = session_to_gate(context)
    session, findings = strategy_of(session).audit(context, session)
    is_atomic = session.push is PushKind.ATOMIC and session.outcome is Outcome.OPEN
    if is_atomic and any(finding.blocks for finding in findings):
        # An atomic run publishes all or nothing: no later run may publish what it staged (edge case E16).
        session = abandon(context, session, Outcome.ABANDONED_RETRIES, session.last_error)
    return session, findings


def publish_staged(context: TriggerContext) -> Snapshot:
    """Publish the staged switch; its audit receipt must have passed for exactly this switch.

    :raises SnapshotIncomplete: the gate is shut.
    """
    context.progress.begin(RunPhase.SWITCH)
    session = session_to_gate(context)
    snapshot = strategy_of(session).publish(context, session)
    expire(context)
    return snapshot
