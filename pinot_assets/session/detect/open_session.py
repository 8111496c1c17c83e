"""The open session as its last attempt left it, and what a trigger does with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.values import plan as planning
from pinot_assets.session.values.plan import Next, Plan
from pinot_assets.session.values.state import Session
from pinot_assets.session.values.trouble import passes
from pinot_assets.snapshot.receipt import Failure, Receipt

Receipts = Mapping[int, tuple[str, Receipt]]
"""Valid receipts by ordinal, each with its key."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An open session as its last attempt left it.

    :ivar receipts: valid receipts by ordinal, each with its key, less those of files at fault (R12, R14).
    :ivar failures: why files of the last attempt failed.
    :ivar stalls: attempts in a row that came no further, the last one included (R10).
    :ivar next: what a trigger does with it.
    :ivar newest: the newest attempt that built something, whose names are given: later than the plan's only
        where ZooKeeper was put back to a backup.
    """

    plan: Plan
    receipts: Receipts
    failures: Sequence[Failure]
    stalls: int
    next: Next
    newest: int

    @property
    def keeps_dying(self) -> bool:
        """Whether its last builds ended without a file, and without a word about any."""
        return bool(self.plan.to_build) and self.stalls >= planning.STALLS


def look_at(context: TriggerContext, session: Session) -> Opened:
    """Read what the last attempt left; decide what comes next (the retries are counted now)."""
    staging = context.clients.staging
    plan = staging.plan(session.plan)
    failures = staging.failures(session.failures) if session.failures else ()
    at_fault = {f.ordinal for f in failures}
    receipts = {o: r for o, r in staging.receipts(plan).items() if o not in at_fault}
    stalls = _stalls(session, plan, receipts)
    audit = session.audit
    audit_failed = audit is not None and not audit.passed and not audit.waits
    step = planning.decide(
        # A build that ended without a word says nothing about the files: that is trouble, no failure.
        failed=(session.has_blocking_failures and not passes(failures))
        or audit_failed
        or (not plan.to_build and stalls >= planning.STALLS),
        at_nobodys_fault=audit_failed and session.failures is None,
        same_config=session.config_fingerprint == context.fingerprint,
        retry_count=session.retry_count,
        max_retries=context.spec.ingestion.retries,
    )
    newest = max(plan.attempt, staging.newest_attempt(session.id))
    return Opened(plan, receipts, failures, stalls, step, newest)


def _stalls(session: Session, plan: Plan, receipts: Receipts) -> int:
    if not plan.to_build or session.failures is not None or session.trouble_since_ms:
        return session.stalls
    return 0 if any(row.ordinal in receipts for row in plan.to_build) else session.stalls + 1
