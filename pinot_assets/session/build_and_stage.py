"""What a trigger does about a decided plan: begin or continue its session, build, stage the switch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError, SessionError
from pinot_assets.session.begin_and_build import begin, build, build_spec_of, go_on
from pinot_assets.session.build_packs import with_packs
from pinot_assets.session.close import abandon
from pinot_assets.session.commit.per_file_push import failures_in_words
from pinot_assets.session.commit.strategy import strategy_of
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.decide.run_decision import Decision
from pinot_assets.session.values import trouble
from pinot_assets.session.values.plan import (
    Plan,
    Receipts,
    RowStatus,
    superseded,
    with_receipts,
    without_files,
)
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome, PushKind, Session, State
from pinot_assets.snapshot.receipt import Failure, Receipt

_RESULTS: Final = {
    State.SWITCH: TriggerResult.STAGED,
    State.DONE: TriggerResult.NOOP,
    State.IN_PROGRESS: TriggerResult.FAILED,  # its files are built and failed the audit
}


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StagedWork:
    """How far the work of one trigger came.

    :ivar session: the session as stored at the end.
    :ivar built: receipts of the files that this trigger built.
    :ivar kept: number of files that earlier triggers of the session had built.
    :ivar failed: files that failed in this trigger.
    :ivar seconds: wall time of the build.
    """

    result: TriggerResult
    session: Session
    built: Sequence[Receipt]
    kept: int
    failed: Sequence[Failure]
    seconds: float


def build_and_stage(
    context: TriggerContext, decision: Decision, session: Session | None, plan: Plan
) -> StagedWork:
    """Begin the session, or the next attempt of the open one; build its files and stage its switch.

    :param session: the open session that continues, None if a new one begins.
    :param plan: the decided plan.
    :raises SessionError: the staging area lost a receipt.
    :raises PinotAssetsError: a step failed; what was done so far is stored.
    """
    session, plan = _begun(context, decision, session, plan)
    kept = len(plan.done)
    session, built, failed, took = _build(context, session, plan) if plan.to_build else (session, [], [], 0.0)
    came_to = partial(StagedWork, built=built, kept=kept, failed=failed, seconds=took)
    if failed and session.push is PushKind.CONSISTENT:
        return came_to(TriggerResult.FAILED, session)  # the next trigger continues it
    if failed and session.push is PushKind.ATOMIC:
        return came_to(TriggerResult.FAILED, _give_up(context, session, "one run publishes all, or nothing"))
    receipts: Receipts = context.staging.receipts(plan)
    plan = without_files(with_receipts(plan, receipts), frozenset(f.uri for f in failed))
    if session.push is PushKind.PLAIN:  # which replaces no pack: a file that came back stays as it is
        packed = (file.uri for file in superseded(plan, context.current_snapshot()) if file.packs)
        plan = without_files(plan, frozenset(packed))
    if failed and not (plan.done or plan.removals or plan.touched):
        return came_to(TriggerResult.FAILED, _give_up(context, session, "every file failed"))
    live = (row for row in plan.rows if row.status is not RowStatus.GONE)
    if lacking := [row for row in live if row.ordinal not in receipts]:
        raise SessionError(
            f"{plural(len(lacking), 'file')} of {session.id} without a valid receipt after the build",
            why=f"first: {lacking[0].uri}",
            hint="check that the staging area keeps what is written; the next trigger builds them again",
        )
    build_spec = build_spec_of(context, session, plan)
    with_all = partial(with_packs, context, session, plan, receipts, build_spec)
    packs = plan.packs
    session, plan, receipts = _in_trouble(context, session, with_all)
    if plan.packs != packs:
        session = _built_all(context, session)
    session = strategy_of(session).stage(context, session, plan, {o: r for o, (_, r) in receipts.items()})
    return came_to(_RESULTS[session.state], session)


def _begun(
    context: TriggerContext, decision: Decision, session: Session | None, plan: Plan
) -> tuple[Session, Plan]:
    if session is not None and decision.opened is not None:
        return go_on(context, session, decision.opened, plan, decision.receipts, decision.current)
    assert decision.free is not None  # a plan is of changes
    return begin(context, plan, decision.free, decision.current)


def _give_up(context: TriggerContext, session: Session, why: str) -> Session:
    return abandon(context, session, Outcome.ABANDONED_RETRIES, why)


def _build(
    context: TriggerContext, session: Session, plan: Plan
) -> tuple[Session, list[Receipt], list[Failure], float]:
    """Build; return session, receipts, failures, seconds. Store failures, errors and trouble at once."""
    if session.state is State.INIT:
        session = context.write_session(replace(session, state=State.IN_PROGRESS))
    begun = time.monotonic()
    built, failed = _in_trouble(context, session, partial(build, context, session, plan))
    seconds = time.monotonic() - begun
    if not failed:
        return _built_all(context, session), built, failed, seconds
    since = (session.trouble_since_ms or context.clients.now_ms()) if trouble.passes(failed) else 0
    session = replace(
        session,
        failures=context.staging.put_failures(session.id, session.attempt, failed, session.format),
        counts=plan.counts(len(failed)) | {"done": len(plan.done) + len(built), "pending": 0},
        last_error=failures_in_words(failed),
        trouble_since_ms=since,
    )
    return context.write_session(session), built, failed, seconds


def _in_trouble(context: TriggerContext, session: Session, work: Callable[[], T]) -> T:
    """Do a part of the build; store the error that ends it, and since when there is trouble."""
    try:
        return work()
    except PinotAssetsError as error:
        since = session.trouble_since_ms or (context.clients.now_ms() if trouble.may_pass(error) else 0)
        stored = context.session or session  # the work may have stored the session with another plan
        with suppress(PinotAssetsError):  # the first error says more
            context.lease.write(session=replace(stored, trouble_since_ms=since, last_error=error.reason))
        raise


def _built_all(context: TriggerContext, session: Session) -> Session:
    """Return the session without stalls and, unless in SWITCH, without trouble and error: all is built.
    Trouble is cleared at once, since later steps may meet another one. A session in SWITCH keeps its trouble
    with servers until the audit passes. Stalled ends of its old switch do not count for the next (R10)."""
    over = replace(session, stalls=0)
    if session.state is not State.SWITCH:
        over = replace(over, trouble_since_ms=0, last_error="")
    if session.trouble_since_ms and over != session:
        context.lease.write(session=over)
    return over
