"""One trigger of one table: settle, list, plan or reconcile, build, stage.

Source: docs/design/session.md#what-a-trigger-does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError, PlanOutdated, SessionError
from pinot_assets.session.attempt.attempt import begin, continue_session
from pinot_assets.session.attempt.building import build
from pinot_assets.session.checks.assertions import refuse_unaskable
from pinot_assets.session.checks.shadow import sweep_shadow
from pinot_assets.session.commit import per_file_push
from pinot_assets.session.commit.per_file_steps import told
from pinot_assets.session.commit.strategy import strategy_of
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.context.read_only import read_only_context
from pinot_assets.session.detect.former_table import forget_former_table
from pinot_assets.session.detect.open_session import Opened
from pinot_assets.session.detect.preconditions import refuse_absent, refuse_unfit, waits_for_resume
from pinot_assets.session.detect.source_state import SourceState, read_source_state
from pinot_assets.session.plan_report.decision import Decision, PlannedAction, decide_run
from pinot_assets.session.recover.abandon import abandon, show_again, sweep
from pinot_assets.session.recover.catch_up import catch_up
from pinot_assets.session.recover.rebuild import ledger
from pinot_assets.session.recover.resolve_interrupted import is_lost, may_end_again, stop_ending
from pinot_assets.session.rollback.rollback import finish_rollback
from pinot_assets.session.values import plan as planning
from pinot_assets.session.values import trouble
from pinot_assets.session.values.plan import Changes, Hold, Next, Plan
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import Mode, Outcome, PushKind, Session, State
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure, Receipt


def trigger(context: TriggerContext) -> TriggerReport:
    """Bring the table as far as it gets: up to a staged, hidden switch.

    :raises SpecDrift: Pinot's schema or table config is not what the spec says.
    :raises SpecError: Pinot's table config has a setting that a session cannot live with.
    :returns: WAITING when a file that the table knows is being rewritten; nothing was begun or spent then.
    :raises ListingFailed: the listing did not complete; nothing was changed (invariant I12).
    :raises SourceError: the staging area of a table's first session cannot be used (rule R28).
    """
    return _trigger(context, _work_off)


def trigger_without_retry(context: TriggerContext) -> TriggerReport:
    """The same for what nobody asked for: a sensor's run, Dagster's own retry of a run (rule R26).

    Without `sensorRetries`, it leaves alone an open session that only a retry or a new one brings further,
    and reports how that stands. Who starts such a run has looked before, but not under the lease: another
    run may have failed since.
    """
    return _trigger(context, _work_off if context.spec.ingestion.sensor_retries else _spare)


def trigger_planned(context: TriggerContext, wanted: str) -> TriggerReport:
    """What a plan showed, and nothing else: what it rests on is read again, now under the lease.

    Nothing is looked at twice: what is checked is what is then worked with, the listing included.

    :param wanted: the plan's hash, or the first digits of it.
    :returns: SETTLED where the plan was to finish what is left half way.
    :raises PlanOutdated: something of what it rests on is another thing by now; nothing was done.
    """
    seen = decide_run(read_only_context(context.spec, context.clients, context.progress))
    seen.plan_basis.require(context.spec.name, wanted)
    if seen.step is PlannedAction.FINISH:
        catch_up(context)
        forget_former_table(context)
        session = _settled(context)
        show_again(context, ledger(context))
        return TriggerReport(TriggerResult.SETTLED, session, listed=0, notes=tuple(context.notes))

    return _trigger(context, _work_off, lambda run, session, _: _as_planned(run, session, seen))


def _as_planned(context: TriggerContext, session: Session | None, seen: Decision) -> SourceState:
    """What the plan looked at, with the session as it was settled since: under another entry, say."""
    known = seen.session.id if seen.session is not None else ""
    ref = context.lease.pointer.current_snapshot
    if seen.looked is None or known != (session.id if session is not None else "") or ref != seen.ref:
        raise PlanOutdated(
            f"{context.spec.name} changed while its plan was checked; nothing of it was done",
            why="the end of a switch reached Pinot at this moment",
            hint=f"`pinot-assets plan {context.spec.name}` shows what a run would do now",
        )
    opened = seen.looked.opened
    if opened is None or session is None:
        return seen.looked
    return replace(seen.looked, opened=replace(opened, session=session))


_Work = Callable[[TriggerContext, Opened | None, Changes, Snapshot | None], TriggerReport]
_Look = Callable[[TriggerContext, Session | None, Snapshot | None], SourceState]


def _trigger(context: TriggerContext, work_off: _Work, look: _Look = read_source_state) -> TriggerReport:
    catch_up(context)
    forget_former_table(context)
    session = _settled(context)
    refuse_absent(context)
    current = ledger(context)
    sweep(context, session, current)  # whatever keeps this trigger from going on: queries see it (R1, R2)
    sweep_shadow(context)
    refuse_unfit(context)
    refuse_unaskable(context)
    session = _cleared(context, session)
    if waits_for_resume(context, session):
        return TriggerReport(TriggerResult.HELD, None, listed=0, notes=tuple(context.notes))
    if session is not None and session.end_sent and not is_lost(context, session):
        # It may complete at any moment: end it again, and look at the source at the next trigger.
        context.note(f"session {session.id} goes on with its switch, whose end gave no answer")
        return TriggerReport(TriggerResult.STAGED, session, listed=0, notes=tuple(context.notes))
    looked = look(context, session, current)
    _remember(context, looked.hold)
    found = looked.found
    if looked.changes is None:
        report = TriggerReport(
            TriggerResult.WAITING, session, listed=0, unready=found.waiting, notes=tuple(context.notes)
        )
    else:
        report = replace(work_off(context, looked.opened, looked.changes, current), unready=found.later)
    return replace(report, listed=len(found.listed.files), files=found.listed.files)


def _remember(context: TriggerContext, hold: Hold) -> None:
    """Write down what a listing tells of what is held back: no session may follow that would.

    :param hold: as it was looked at.
    """
    before, ref = context.hold(), context.put_hold(hold)
    if ref == context.lease.pointer.hold:
        return
    context.lease.write(pointer=replace(context.lease.pointer, hold=ref))
    if gone := len(before.files) + len(before.removals) - len(hold.files) - len(hold.removals):
        context.note(
            f"{plural(gone, 'change')} no longer held back: source and table agree on the files again"
        )


def _work_off(
    context: TriggerContext, opened: Opened | None, changes: Changes, current: Snapshot | None
) -> TriggerReport:
    free = planning.without_held(changes, context.hold())
    begun = (
        continue_session(context, opened, free, current)
        if opened is not None
        else begin(context, free, current)
    )
    if begun is None:
        result = TriggerResult.NOTHING if free == changes else TriggerResult.HELD
        return _report(context, result, None, free)
    return _build_and_stage(context, *begun, free)


def _spare(
    context: TriggerContext, opened: Opened | None, changes: Changes, current: Snapshot | None
) -> TriggerReport:
    if opened is None or opened.next is Next.CONTINUE:
        return _work_off(context, opened, changes, current)
    session, failures = opened.session, opened.failures
    context.note(f"session {session.id} waits for the schedule or a run by hand (sensorRetries is off)")
    if failures or opened.next is not Next.ABANDON_CONFIG:
        # Failures keep the gate shut, and another look at the replicas is free.
        return _report(context, TriggerResult.FAILED, session, changes, _Done(failed=failures))
    # Not for the gate: it may be fit to be switched, and is not what the table wants any more.
    paused = "was planned for another table spec"
    return replace(_report(context, TriggerResult.PAUSED, session, changes), paused=paused)


def _settled(context: TriggerContext) -> Session | None:
    session = context.active_session()
    if session is None:
        return None
    if session.mode is Mode.ROLLBACK:
        finish_rollback(context, session)
        return None
    if session.state is not State.SWITCH:
        return session
    session = strategy_of(session).resolve_interrupted(context, session)
    if (
        session is None
        or not session.end_sent
        or is_lost(context, session)
        or may_end_again(context, session)
    ):
        return session
    return stop_ending(context, session)


def _cleared(context: TriggerContext, session: Session | None) -> Session | None:
    """`clearConsistentPushState` acts once per change of the spec, not at every trigger.

    Source: docs/design/session.md#clear.
    """
    pointer = context.lease.pointer
    asked = context.spec.ingestion.clear_state
    token = context.clear_token if asked else ""
    if token == pointer.clear_token:
        return session
    if asked and session is not None:
        abandon(context, session, Outcome.CLEARED, "clearConsistentPushState was set")
        session = None
    context.lease.write(pointer=replace(context.lease.pointer, clear_token=token))
    return session


# --- build and stage -------------------------------------------------------------------------------


def _build_and_stage(
    context: TriggerContext, session: Session, plan: Plan, changes: Changes
) -> TriggerReport:
    kept = len(plan.done)
    if plan.to_build and session.state is State.INIT:
        session = replace(session, state=State.IN_PROGRESS)
        context.lease.write(session=session)
    begun = time.monotonic()
    built, failed = _built(context, session, plan) if plan.to_build else ([], [])
    work = _Done(built, kept, failed, time.monotonic() - begun if plan.to_build else 0.0)
    if failed:
        session = replace(
            session,
            failures=context.clients.staging.put_failures(
                session.id, session.attempt, failed, session.format
            ),
            counts=plan.counts(len(failed)) | {"done": kept + len(built), "pending": 0},
            last_error=told(failed),
            trouble_since_ms=_trouble_since(context, session) if trouble.passes(failed) else 0,
        )
        context.lease.write(session=session)
    elif plan.to_build:
        session = _built_all(context, session)
    if failed and session.push is not PushKind.PLAIN:
        if session.push is PushKind.ATOMIC:
            session = abandon(
                context, session, Outcome.ABANDONED_RETRIES, "one run publishes all, or nothing"
            )
        return _report(context, TriggerResult.FAILED, session, changes, work)
    found = context.clients.staging.receipts(plan)
    plan = planning.accept(plan, found)
    if session.push is PushKind.PLAIN:
        plan = per_file_push.without(plan, frozenset(f.uri for f in failed))
        if failed and not (plan.done or plan.removals or plan.touched):
            session = abandon(context, session, Outcome.ABANDONED_RETRIES, "every file failed")
            return _report(context, TriggerResult.FAILED, session, changes, work)
    if plan.to_build:
        raise SessionError(
            f"{plural(len(plan.to_build), 'file')} of {session.id} without a valid receipt after the build",
            why=f"first: {plan.to_build[0].uri}",
            hint="check that the staging area keeps what is written; the next trigger builds them again",
        )
    session = strategy_of(session).stage(context, session, plan, {o: r for o, (_, r) in found.items()})
    return _report(context, _RESULTS[session.state], session, changes, work)


def _built_all(context: TriggerContext, session: Session) -> Session:
    """The session without what kept it from building. That is stored at once: what comes next may meet other
    trouble. One in SWITCH was built before, and waits for its servers until the audit passes; ends of the
    switch before say nothing of the one that now comes (R10)."""
    over = replace(session, stalls=0)
    if session.state is not State.SWITCH:
        over = replace(over, trouble_since_ms=0, last_error="")
    if session.trouble_since_ms and over != session:
        context.lease.write(session=over)
    return over


def _built(context: TriggerContext, session: Session, plan: Plan) -> tuple[list[Receipt], list[Failure]]:
    """Build; what ends the whole build is written down, and a store's trouble as that of a file is."""
    try:
        return build(context, session, plan)
    except PinotAssetsError as error:
        since = _trouble_since(context, session) if trouble.may_pass(error) else session.trouble_since_ms
        with suppress(PinotAssetsError):  # the first error says more
            context.lease.write(session=replace(session, trouble_since_ms=since, last_error=error.reason))
        raise


def _trouble_since(context: TriggerContext, session: Session) -> int:
    return session.trouble_since_ms or context.clients.now_ms()


_RESULTS: Final = {
    State.SWITCH: TriggerResult.STAGED,
    State.DONE: TriggerResult.NOOP,
    State.IN_PROGRESS: TriggerResult.FAILED,  # its files are built, and have not passed the audit
}


@dataclass(frozen=True, slots=True)
class _Done:
    built: Sequence[Receipt] = ()
    kept: int = 0
    failed: Sequence[Failure] = ()
    seconds: float = 0.0


def _report(
    context: TriggerContext,
    result: TriggerResult,
    session: Session | None,
    changes: Changes,
    work: _Done | None = None,
) -> TriggerReport:
    work = work or _Done()
    return TriggerReport(
        result=result,
        session=session,
        listed=len(changes.listed),
        new=tuple(f.uri for f in changes.new),
        rewritten=tuple(f.uri for f in changes.rewritten),
        deleted=changes.deleted,
        built=tuple(work.built),
        kept=work.kept,
        failed=tuple(work.failed),
        build_seconds=work.seconds,
        notes=tuple(context.notes),
    )
