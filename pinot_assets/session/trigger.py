"""One trigger of one table: settle, list, plan or reconcile, build, stage (spec/session.md section 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pinot_assets.errors import SessionError
from pinot_assets.session import plan as planning
from pinot_assets.session.abandon import abandon, sweep
from pinot_assets.session.building import build
from pinot_assets.session.hybrid import refuse_second_writer
from pinot_assets.session.listing import changes_of, list_ready
from pinot_assets.session.model import Mode, Outcome, Session, State, new_session_id, seq_of
from pinot_assets.session.plan import Changes, Next, Plan
from pinot_assets.session.publish import is_open, settle, stage
from pinot_assets.session.receipt import Failure, Receipt
from pinot_assets.session.report import Report, Result
from pinot_assets.session.rollback import finish_rollback
from pinot_assets.session.run import Run
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.spec.apply import refuse_drift
from pinot_assets.spec.pinot_settings import refuse_settings


def trigger(run: Run) -> Report:
    """Bring the table as far as it gets: up to a staged, hidden switch.

    :raises SpecDrift: Pinot's schema or table config is not what the spec says.
    :raises SpecError: Pinot's table config has a setting that a session cannot live with.
    :returns: WAITING when a file that the table knows is being rewritten; nothing was begun or spent then.
    :raises ListingFailed: the listing did not complete; nothing was changed (invariant I12).
    :raises SourceError: the staging area of a table's first session cannot be used (rule R28).
    """
    return _trigger(run, _work_off)


def trigger_without_retry(run: Run) -> Report:
    """The same for what nobody asked for: a sensor's run, Dagster's own retry of a run (rule R26).

    Without `sensorRetries`, it leaves alone an open session that only a retry or a new one brings further,
    and reports how that stands. Who starts such a run has looked before, but not under the lease: another
    run may have failed since.
    """
    return _trigger(run, _work_off if run.spec.ingestion.sensor_retries else _spare)


_Work = Callable[[Run, Session | None, Changes, Snapshot | None], Report]


def _trigger(run: Run, work_off: _Work) -> Report:
    session = _settled(run)
    refuse_drift(run.spec, run.edges.pinot)
    refuse_settings(run.spec.name, run.table_config)
    refuse_second_writer(run)
    current = run.current_snapshot()
    sweep(run, session, current)
    session = _cleared(run, session)
    if session is None and run.mode is Mode.SWAP and run.lease.pointer.hold is not None:
        return Report(Result.HELD, None, listed=0, notes=tuple(run.notes))
    if session is not None and session.end_issued:
        # It may complete at any moment: end it again, and look at the source at the next trigger.
        run.note(f"session {session.id} goes on with its switch, whose end gave no answer")
        return Report(Result.STAGED, session, listed=0, notes=tuple(run.notes))
    found = list_ready(run, session, current)
    if found.waiting:
        report = Report(Result.WAITING, session, listed=0, unready=found.waiting, notes=tuple(run.notes))
    else:
        changes = changes_of(run, found.counted, current)
        report = replace(work_off(run, session, changes, current), unready=found.later)
    return replace(report, listed=len(found.listed.files), files=found.listed.files)


def _work_off(run: Run, session: Session | None, changes: Changes, current: Snapshot | None) -> Report:
    free = planning.without_held(changes, run.hold())
    begun = _go_on(run, session, free, current) if session else _begin(run, free, current)
    if begun is None:
        result = Result.NOTHING if free == changes else Result.HELD
        return _report(run, result, None, free)
    return _build_and_stage(run, *begun, free)


def _spare(run: Run, session: Session | None, changes: Changes, current: Snapshot | None) -> Report:
    step = _next(run, session) if session else Next.CONTINUE
    if step is Next.CONTINUE:
        return _work_off(run, session, changes, current)
    assert session is not None
    run.note(f"session {session.id} waits for the schedule or a run by hand (sensorRetries is off)")
    failures = _failures(run, session)
    # What was planned for another spec may be fit to be switched, and is not what the table wants any more:
    # it must not come before the gate. Failures keep that shut, and another look at the replicas is free.
    stale = step is Next.ABANDON_CONFIG and not failures
    return _report(run, Result.PAUSED if stale else Result.FAILED, session, changes, _Done(failed=failures))


def _settled(run: Run) -> Session | None:
    session = run.active_session()
    if session is None:
        return None
    if session.mode is Mode.ROLLBACK:
        finish_rollback(run, session)
        return None
    if session.state is not State.SWITCH:
        return session
    session = settle(run, session)
    if session is not None and session.lineage_entry_id and not is_open(run, session):
        # Its names stand in an entry that was reverted or reaped: they are spent for ever (rule R16).
        abandon(run, session, Outcome.ABANDONED_ENTRY, "its lineage entry was reverted or reaped")
        return None
    if session is not None and session.end_issued and not _may_end_again(run, session):
        abandon(run, session, Outcome.ABANDONED_ENTRY, "its switch was never ended and is not fit to be now")
        return None
    return session


def _may_end_again(run: Run, session: Session) -> bool:
    return session.gate_open and run.switcher.is_usable(session.lineage_entry_id)


def _cleared(run: Run, session: Session | None) -> Session | None:
    """`clearConsistentPushState` acts once per change of the spec, not at every trigger (section 9)."""
    pointer = run.lease.pointer
    asked = run.spec.ingestion.clear_state
    token = run.clear_token if asked else ""
    if token == pointer.clear_token:
        return session
    if asked and session is not None:
        abandon(run, session, Outcome.CLEARED, "clearConsistentPushState was set")
        session = None
    run.lease.write(pointer=replace(run.lease.pointer, clear_token=token))
    return session


# --- a new session ---------------------------------------------------------------------------------


def _begin(run: Run, changes: Changes, current: Snapshot | None) -> tuple[Session, Plan] | None:
    names = run.edges.pinot.all_segments(run.spec.name)
    seq = max(run.lease.pointer.next_seq, 1 + max((seq_of(s) or 0 for s in names), default=0))  # R17
    plan = planning.new_plan(new_session_id(seq), run.mode, changes)
    if _nothing_to_do(run, plan, changes, current):
        return None
    if current is None:
        run.edges.staging.store.probe()  # before the first session, while nothing stands anywhere (R28)
    now = run.edges.now_ms()
    session = Session(
        id=plan.session,
        seq=seq,
        mode=run.mode,
        config_fingerprint=run.fingerprint,
        created_ms=now,
        attempt_started_ms=now,
        plan=run.edges.staging.put_plan(plan),
        counts=plan.counts(),
    )
    pointer = replace(
        run.lease.pointer,
        active_session=session.node,
        next_seq=seq + 1,
        history=(*run.lease.pointer.history, session.node)[-2:],
    )
    run.lease.write(pointer=pointer, session=session)
    run.lease.prune()
    run.note(f"session {session.id} ({session.mode.lower()}): {len(plan.rows)} files to build")
    if run.mode is Mode.APPEND and changes.rewritten:
        run.note(f"{len(changes.rewritten)} rewritten files are added beside their older versions (append)")
    return session, plan


def _nothing_to_do(run: Run, plan: Plan, changes: Changes, current: Snapshot | None) -> bool:
    if run.mode is not Mode.SWAP:
        return planning.is_empty(plan)
    if current is None or not current.files:
        return not plan.rows
    # Beside the ledger, not beside the listing that the snapshot was made from: a file that was rewritten
    # after it had been built is in that listing and not in the snapshot (scene 4).
    return not changes.any and current.mode == Mode.SWAP and current.config_fingerprint == run.fingerprint


# --- an open session -------------------------------------------------------------------------------


def _go_on(
    run: Run, session: Session, changes: Changes, current: Snapshot | None
) -> tuple[Session, Plan] | None:
    staging = run.edges.staging
    plan = staging.plan(session.plan)
    step = _next(run, session)
    if step is Next.ABANDON_CONFIG:
        abandon(run, session, Outcome.ABANDONED_CONFIG, "the table spec changed")
        return _begin(run, changes, current)
    if step is Next.ABANDON_RETRIES:
        abandon(run, session, Outcome.ABANDONED_RETRIES, f"no retry left after {session.retry_count}")
        return _begin(run, changes, current)
    spoiled = {f.ordinal for f in _failures(run, session)}
    receipts = {o: r for o, r in staging.receipts(plan).items() if o not in spoiled}
    plan = planning.reconcile(plan, changes, receipts)
    retries = session.retry_count + (step is Next.RETRY)
    session = replace(
        session,
        plan=staging.put_plan(plan),
        attempt=plan.attempt,
        attempt_started_ms=run.edges.now_ms(),
        retry_count=retries,
        failures=None,
        audit=None,
        counts=plan.counts(),
    )
    run.lease.write(session=session)
    what = f"retry {retries} of" if step is Next.RETRY else "going on with"
    run.note(f"{what} session {session.id}: {len(plan.done)} files kept, {len(plan.to_build)} to build")
    return session, plan


def _next(run: Run, session: Session) -> Next:
    audit_failed = session.audit is not None and not session.audit.passed
    return planning.decide(
        failed=session.failures is not None or audit_failed,
        same_config=session.config_fingerprint == run.fingerprint,
        retry_count=session.retry_count,
        max_retries=run.spec.ingestion.max_retries,
    )


def _failures(run: Run, session: Session) -> Sequence[Failure]:
    return run.edges.staging.failures(session.failures) if session.failures else ()


# --- build and stage -------------------------------------------------------------------------------


def _build_and_stage(run: Run, session: Session, plan: Plan, changes: Changes) -> Report:
    kept = len(plan.done)
    if plan.to_build and session.state is State.INIT:
        session = replace(session, state=State.IN_PROGRESS)
        run.lease.write(session=session)
    built, failed = build(run, session, plan) if plan.to_build else ([], [])
    if failed:
        session = replace(
            session,
            failures=run.edges.staging.put_failures(session.id, session.attempt, failed),
            counts=plan.counts(len(failed)) | {"done": kept + len(built), "pending": 0},
            last_error=f"{len(failed)} files failed; {failed[0].uri}: {failed[0].reason}"[:1000],
        )
        run.lease.write(session=session)
        return _report(run, Result.FAILED, session, changes, _Done(built, kept, failed))
    found = run.edges.staging.receipts(plan)
    plan = planning.accept(plan, found)
    if plan.to_build:
        raise SessionError(
            f"{len(plan.to_build)} files of {session.id} have no valid receipt after their build",
            why=f"first: {plan.to_build[0].uri}",
            hint="check that the staging area keeps what is written; the next trigger builds them again",
        )
    session = stage(run, session, plan, {o: r for o, (_, r) in found.items()})
    result = Result.STAGED if session.state is State.SWITCH else Result.NOOP
    return _report(run, result, session, changes, _Done(built, kept, failed))


@dataclass(frozen=True, slots=True)
class _Done:
    built: Sequence[Receipt] = ()
    kept: int = 0
    failed: Sequence[Failure] = ()


def _report(
    run: Run, result: Result, session: Session | None, changes: Changes, work: _Done | None = None
) -> Report:
    work = work or _Done()
    return Report(
        result=result,
        session=session,
        listed=len(changes.listed),
        new=tuple(f.uri for f in changes.new),
        rewritten=tuple(f.uri for f in changes.rewritten),
        deleted=changes.deleted,
        built=tuple(work.built),
        kept=work.kept,
        failed=tuple(work.failed),
        notes=tuple(run.notes),
    )
