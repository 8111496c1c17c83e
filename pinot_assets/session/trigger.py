"""One trigger of one table: finish interrupted work, decide what to do, build and stage.

Source: docs/design/session.md#what-a-trigger-does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pinot_assets.core.text import plural
from pinot_assets.errors import PlanOutdated
from pinot_assets.session.checks.assertions import refuse_unaskable
from pinot_assets.session.checks.shadow import delete_left_shadow
from pinot_assets.session.close import abandon, ask_if_end_must_stop, stop_ending
from pinot_assets.session.context.context import TriggerContext, read_only_context
from pinot_assets.session.decide.retries import Next
from pinot_assets.session.decide.run_decision import (
    Decision,
    PlannedAction,
    ask_if_ends_again,
    decide_run,
    refuse_absent,
    refuse_unfit,
    wants_clear,
)
from pinot_assets.session.recover.interrupted import delete_strays, forget_former_table, show_again
from pinot_assets.session.recover.lost_pointer import catch_up, rebuild_if_lost
from pinot_assets.session.values.outdated import waiting_words
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import Mode, Outcome, Session, State
from pinot_assets.session.values.waiting_files import why_files_wait
from pinot_assets.snapshot.manifest import Snapshot

if TYPE_CHECKING:
    from pinot_assets.session.plan_report.planned_run import PlannedRun


def trigger(context: TriggerContext) -> TriggerReport:
    """Run one trigger; at best it ends with a staged, hidden switch.

    :raises SpecDrift: Pinot's schema or table config is not what the spec says.
    :raises SpecError: Pinot's table config has a setting that sessions do not support.
    :returns: WAITING when a known file is being rewritten; then no session began and no retry was spent.
    :raises ListingFailed: the listing did not complete; nothing was changed (invariant I12).
    :raises SourceError: the staging area of a table's first session cannot be used (rule R28).
    """
    return _execute(context, decide_run(context, *_prepare(context)))


def trigger_without_retry(context: TriggerContext) -> TriggerReport:
    """Run a trigger for a sensor's run or for Dagster's own retry of a run (rule R26).

    Unless `sensorRetries` is set, it leaves an open session alone that needs a retry or a new session, and
    reports its state. The sensor has checked that before, but without the lease: another run may have failed
    since.
    """
    decision = decide_run(context, *_prepare(context))
    spends = decision.step in (PlannedAction.RETRY, PlannedAction.RESTART)
    if spends and not context.spec.ingestion.sensor_retries:
        return _leave_alone(context, decision)
    return _execute(context, decision)


def trigger_scheduled(context: TriggerContext) -> TriggerReport:
    """Run a trigger for a schedule: it begins no session while new files wait for others (`waitFor`)."""
    decision = decide_run(context, *_prepare(context))
    changes = decision.free
    if decision.step is not PlannedAction.BEGIN or changes is None or changes.rebuilds:
        return _execute(context, decision)
    if (changes.deleted or changes.rewritten) and context.mode is not Mode.APPEND:  # which replaces nothing
        return _execute(context, decision)
    files = (*changes.new, *changes.rewritten)
    why = why_files_wait(context.spec.layout.wait_for, files, context.clients.now_ms())
    if not why:
        return _execute(context, decision)
    _remember(context, decision)
    context.note(why)
    return _report(context, decision, TriggerResult.NOTHING, None)


def trigger_planned(context: TriggerContext, plan_hash: str) -> TriggerReport:
    """Do exactly what a plan report showed. Its basis is read again, now under the lease, and compared.

    The trigger then works with the same listing that it compared.

    :param plan_hash: the plan hash, or its first digits.
    :returns: SETTLED if the plan was to finish interrupted work.
    :raises PlanOutdated: the basis of the plan has changed; nothing was done.
    """
    from pinot_assets.session.plan_report.planned_run import plan_run

    looking = read_only_context(context.spec, context.clients, context.progress, context.request)
    planned = plan_run(looking)
    planned.plan_basis.require(context.table, plan_hash)
    if planned.decision.step is PlannedAction.FINISH:
        session = _finish(context)
        show_again(context, rebuild_if_lost(context))
        return _report(context, planned.decision, TriggerResult.SETTLED, session)
    session, _ = _prepare(context)
    return _execute(context, _as_planned(context, session, planned))


def _as_planned(context: TriggerContext, session: Session | None, planned: PlannedRun) -> Decision:
    """Return the planned decision with the session as `_prepare` left it; refuse if the table changed."""
    decision = planned.decision
    known = decision.session.id if decision.session is not None else ""
    if (
        known != (session.id if session is not None else "")
        or planned.ref != context.lease.pointer.current_snapshot
        or ask_if_ends_again(context, session) != (decision.step is PlannedAction.END)
    ):
        raise PlanOutdated(
            f"{context.table} changed while its plan was checked; nothing of the plan was done",
            why="the end of a switch reached Pinot at this moment",
            hint=f"`pinot-assets plan {context.table}` shows what a run would do now",
        )
    return replace(decision, session=session)


# --- before anything is decided --------------------------------------------------------------------


def _prepare(context: TriggerContext) -> tuple[Session | None, Snapshot | None]:
    """Finish interrupted work, delete strays, clear; return the open session after that, and the ledger."""
    session = _finish(context)
    refuse_absent(context)
    current = rebuild_if_lost(context)
    delete_strays(context, session, current)  # even if it is refused below: queries see strays (R1, R2)
    delete_left_shadow(context)
    refuse_unfit(context)
    refuse_unaskable(context)
    return _clear(context, session), current


def _finish(context: TriggerContext) -> Session | None:
    """Finish what an earlier run left undone; return the session that is open after that, else None."""
    catch_up(context)
    forget_former_table(context)
    if (session := context.active_session()) is None:
        return None
    if session.mode is Mode.ROLLBACK:
        from pinot_assets.session.rollback.rollback import finish_rollback

        finish_rollback(context, session)
        return None
    if session.state is not State.SWITCH:
        return session
    from pinot_assets.session.commit.strategy import strategy_of

    session = strategy_of(session).resolve_interrupted(context, session)
    if session is None or not ask_if_end_must_stop(context, session):
        return session
    return stop_ending(context, session)


def _clear(context: TriggerContext, session: Session | None) -> Session | None:
    """Return the open session; None if there is none or `clearConsistentPushState` drops it now."""
    if session is not None and wants_clear(context):
        abandon(context, session, Outcome.CLEARED, "clearConsistentPushState was set")
        session = None
    token = context.clear_token if context.spec.ingestion.clear_state else ""
    if token != context.lease.pointer.clear_token:
        context.lease.write(pointer=replace(context.lease.pointer, clear_token=token))
    return session


# --- what was decided ------------------------------------------------------------------------------


def _execute(context: TriggerContext, decision: Decision) -> TriggerReport:
    _remember(context, decision)
    for text in decision.notes:
        context.note(text)
    _note_outdated(context, decision)
    step, session = decision.step, decision.session
    if session is not None and step is PlannedAction.END:
        # The switch may complete at any moment: end it again now; the next trigger lists the source.
        context.note(f"session {session.id} continues its switch, whose end got no answer")
        return _report(context, decision, TriggerResult.STAGED, session)
    if session is not None and step is PlannedAction.RESTART:
        abandon(context, session, decision.outcome, decision.why)
        session, step = None, decision.without_plan
    if decision.plan is None or decision.free is None:
        return _report(context, decision, TriggerResult(step), session)
    # Imported here: a run that finds nothing to do does not load what builds.
    from pinot_assets.session.build_and_stage import build_and_stage

    work = build_and_stage(context, decision, session, decision.plan)
    return replace(
        _report(context, decision, work.result, work.session),
        built=tuple(work.built),
        kept=work.kept,
        failed=tuple(work.failed),
        build_seconds=work.seconds,
    )


def _leave_alone(context: TriggerContext, decision: Decision) -> TriggerReport:
    """Change nothing and report the open session, which needs a retry or a new session."""
    _remember(context, decision)
    session, opened, looked = decision.session, decision.opened, decision.looked
    assert session is not None
    assert opened is not None
    assert looked is not None
    context.note(f"session {session.id} waits for the schedule or a run by hand (sensorRetries is off)")
    with_held = replace(decision, free=looked.changes)  # with the changes that a rollback holds back
    if opened.failures or opened.next is not Next.ABANDON_CONFIG:
        # Failures keep the gate shut, and repeating the audit spends no retry.
        report = _report(context, with_held, TriggerResult.FAILED, session)
        return replace(report, failed=tuple(opened.failures))
    # Do not pass it to the gate: it might pass the audit, but it was planned for an old table spec.
    paused = "was planned for another table spec"
    return replace(_report(context, with_held, TriggerResult.PAUSED, session), paused=paused)


def _note_outdated(context: TriggerContext, decision: Decision) -> None:
    """Note published files that the table spec would build otherwise, and that this run leaves as is."""
    if decision.looked is None:
        return
    building = {file.uri for file in decision.free.rebuilds} if decision.free is not None else set()
    for text in waiting_words(context.table, decision.looked.need, building):
        context.note(text)


def _remember(context: TriggerContext, decision: Decision) -> None:
    """Store the hold as the listing changed it, now: perhaps no session follows that would store it."""
    if decision.looked is None:
        return
    hold, before = decision.looked.hold, context.hold()
    ref = context.put_hold(hold)
    if ref == context.lease.pointer.hold:
        return
    context.lease.write(pointer=replace(context.lease.pointer, hold=ref))
    if gone := len(before.files) + len(before.removals) - len(hold.files) - len(hold.removals):
        context.note(
            f"{plural(gone, 'change')} no longer held back: source and table now have the same files"
        )


def _report(
    context: TriggerContext,
    decision: Decision,
    result: TriggerResult,
    session: Session | None,
) -> TriggerReport:
    readiness = decision.looked.readiness if decision.looked is not None else None
    changes = decision.free
    return TriggerReport(
        result=result,
        session=session,
        listed=len(readiness.listed.files) if readiness is not None else 0,
        files=readiness.listed.files if readiness is not None else None,
        new=tuple(f.uri for f in changes.new) if changes is not None else (),
        rewritten=tuple(f.uri for f in changes.rewritten) if changes is not None else (),
        deleted=changes.deleted if changes is not None else (),
        rebuilt=tuple(f.uri for f in changes.rebuilds) if changes is not None else (),
        unready=(readiness.waiting or readiness.later) if readiness is not None else (),
        notes=tuple(context.notes),
    )
