"""What comes next for an open session: its next attempt, with or without spending a retry, or its end.

Source: docs/design/session.md#continuing-an-open-session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.values.plan import Plan, Receipts
from pinot_assets.session.values.state import Session
from pinot_assets.session.values.trouble import STALLS, passes
from pinot_assets.snapshot.receipt import Failure


class Next(StrEnum):
    """What a trigger does with an unpublished session."""

    CONTINUE = "CONTINUE"
    RETRY = "RETRY"
    ABANDON_RETRIES = "ABANDON_RETRIES"
    ABANDON_CONFIG = "ABANDON_CONFIG"
    ABANDON_AUDIT = "ABANDON_AUDIT"


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
        """Whether its last builds ended without a built file and without a failure: drivers died."""
        return bool(self.plan.unbuilt) and self.stalls >= STALLS


def after_attempt(context: TriggerContext, session: Session) -> Opened:
    """Read what the last attempt left; decide what comes next (how many retries there are is read now)."""
    plan = context.staging.plan(session.plan)
    failures = context.staging.failures(session.failures) if session.failures else ()
    at_fault = {f.ordinal for f in failures}
    receipts = {o: r for o, r in context.staging.receipts(plan).items() if o not in at_fault}
    stalls = _stalls(session, plan, receipts)
    audit = session.audit
    audit_failed = audit is not None and not audit.passed and not audit.waits
    step = next_step_of_session(
        # A build without receipts and failures proves nothing against its files: it is trouble, no failure.
        failed=(session.has_blocking_failures and not passes(failures))
        or audit_failed
        or (not plan.unbuilt and stalls >= STALLS),
        at_nobodys_fault=audit_failed and session.failures is None,
        same_config=session.config_fingerprint == context.fingerprint,
        retry_count=session.retry_count,
        max_retries=context.spec.ingestion.retries,
    )
    newest = max(plan.attempt, context.staging.newest_attempt(session.id))
    return Opened(plan, receipts, failures, stalls, step, newest)


def _stalls(session: Session, plan: Plan, receipts: Receipts) -> int:
    if not plan.unbuilt or session.failures is not None or session.trouble_since_ms:
        return session.stalls
    return 0 if any(row.ordinal in receipts for row in plan.unbuilt) else session.stalls + 1


def next_step_of_session(
    *, failed: bool, same_config: bool, retry_count: int, max_retries: int, at_nobodys_fault: bool = False
) -> Next:
    """Whether to retry: the budget is read now, and only a failure spends it.

    :param failed: whether the last attempt had failed files or a failed audit, or its end twice gave no
        answer; not where trouble that passes by itself was all of it.
    :param at_nobodys_fault: whether its audit failed and named no file, so that there is nothing to build
        again (rule R14).
    """
    if not same_config:
        return Next.ABANDON_CONFIG
    if at_nobodys_fault:
        return Next.ABANDON_AUDIT
    if not failed:
        return Next.CONTINUE
    return Next.RETRY if retry_count < max_retries else Next.ABANDON_RETRIES
