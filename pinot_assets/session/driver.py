"""The consistent-push machine of one table, as its callers see it: Dagster's steps, the CLI, tests.

`trigger` lists, plans, builds and stages (W1 to W3), `audit` is the gate (W4), `publish` switches (W5, W6).
They may run in one process or in three: everything that the next one needs is stored before the one before
returns (docs/design/session.md#in-dagster).
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from pinot_assets.audit.checks import Finding
from pinot_assets.core.effects import progress_in_errors
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.stored_format import NEWEST
from pinot_assets.errors import PlanOutdated, SessionHeld, SnapshotIncomplete, SwitchStateUnknown
from pinot_assets.session.checks.server_checks import RowCount, count
from pinot_assets.session.checks.shadow import sweep_shadow
from pinot_assets.session.close import abandon
from pinot_assets.session.commit.gate import session_to_gate
from pinot_assets.session.commit.strategy import strategy_of
from pinot_assets.session.context.context import TriggerContext, read_only_context, so_far
from pinot_assets.session.context.watchdog import Fed, Watchdog
from pinot_assets.session.detect.observe import Observation, observe
from pinot_assets.session.plan_report.plan_report import PlanReport, make_plan_report
from pinot_assets.session.recover.lost_pointer import catch_up, rebuild
from pinot_assets.session.rollback.retention import expire
from pinot_assets.session.rollback.rollback import clear_rollback, rollback
from pinot_assets.session.rollback.rollback_plan import RollbackPlan, rollback_plan, rollback_plans
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.formats import require_known
from pinot_assets.session.trigger import trigger, trigger_planned, trigger_without_retry
from pinot_assets.session.values.report import Progress, Quiet, TriggerReport, TriggerResult
from pinot_assets.session.values.state import Mode, Outcome, Owner, PushKind, Session, State, given_up
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure
from pinot_assets.table_spec import TableSpec

P = ParamSpec("P")
T = TypeVar("T")


def _watched(
    step: Callable[Concatenate[Driver, TriggerContext, P], T],
) -> Callable[Concatenate[Driver, P], T]:
    """A step of the driver: `carry_out` does it, and gives it the context."""

    @wraps(step)
    def watched(driver: Driver, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return driver.carry_out(step.__name__, lambda context: step(driver, context, *args, **kwargs))

    return watched


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What one step of a driver came to, for whoever tells of it afterwards.

    :ivar seconds: wall time.
    :ivar result: what it returned, or the error that it raised.
    """

    seconds: float
    result: object


def was_turned_away(steps: Mapping[str, StepRecord]) -> bool:
    """Whether a driver did nothing, since another one works on the table, or its plan no longer held: what
    is told of the table is for whoever works on it, or did last."""
    return any(isinstance(step.result, SessionHeld | PlanOutdated) for step in steps.values())


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended.

    :ivar findings: of the gate; none where nothing was to be gated.
    :ivar snapshot: what queries see now, None where nothing was switched to.
    :ivar refusal: why the gate stayed shut.
    :ivar left_out: files that failed while others were published (a plain push).
    """

    report: TriggerReport
    findings: tuple[Finding, ...] = ()
    snapshot: Snapshot | None = None
    refusal: SnapshotIncomplete | None = None
    left_out: tuple[Failure, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """What a command ends with."""
        return ExitCode.REFUSED if self.refusal is not None or self.left_out else ExitCode.DONE

    @property
    def values(self) -> JsonObject:
        """For other programs."""
        report, snapshot = self.report, self.snapshot
        return {
            "result": report.result.value,
            "summary": report.summary,
            "session": None if report.session is None else report.session.id,
            "files": {
                "listed": report.listed,
                "new": len(report.new),
                "rewritten": len(report.rewritten),
                "deleted": len(report.deleted),
                "built": len(report.built),
                "kept": report.kept,
            },
            "failed": [
                {"file": failure.uri, "code": failure.code, "reason": failure.reason}
                for failure in (report.failed or self.left_out)
            ],
            "notReady": [f"{unready.uri} {unready.why}" for unready in report.unready],
            "checks": [
                {"name": f.name, "passed": f.passed, "warns": f.warns, "message": f.message}
                for f in self.findings
            ],
            "switched": None
            if snapshot is None
            else {
                "session": snapshot.session,
                "files": len(snapshot.ledger),
                "segments": len(snapshot.segments),
                "rows": snapshot.rows,
            },
            "notSwitched": None if self.refusal is None else self.refusal.reason,
            "exit": int(self.exit_code),
        }


class Driver:
    """Drives one table; holds its lease from the first use until `release`.

    :param spec: the table as its user wrote it.
    :param run_id: who asks, for the lease: a Dagster run id, `pinot-assets run`, …
    :ivar steps: what was done so far, by the name of the step.
    """

    def __init__(
        self, spec: TableSpec, clients: TableClients, run_id: str, progress: Progress | None = None
    ) -> None:
        self.spec = spec
        self.clients = clients
        self._run_id = run_id
        self._progress = progress or Quiet()
        self._context: TriggerContext | None = None
        self.steps: dict[str, StepRecord] = {}

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let go of the lease, if this driver took it."""
        context, self._context = self._context, None
        if context is not None:
            self._watchdog.stop()
            context.lease.release()

    def take(self) -> None:
        """Take the lease now, so that what is observed from here on stays as it is.

        :raises SessionHeld: another run holds it.
        """
        self._take_lease().lease.assert_held()

    def report_to(self, progress: Progress) -> None:
        """Tell another one how it gets on from now on: a later step has a log of its own."""
        self._progress = progress
        if self._context is not None:
            self._context.progress = Fed(progress, self._watchdog)

    def carry_out(self, name: str, work: Callable[[TriggerContext], T]) -> T:
        """A step under the lease and the watchdog (rule R25), told of in `steps`. Callers define more.

        One that leaves a write to Pinot unknown says so, whatever breaks it off, and an error that does says
        what was done before.

        :raises SessionHeld: another run holds the table's lease.
        """
        begun = time.monotonic()
        try:
            context = self._take_lease()
            with self._watchdog.guard(), progress_in_errors(lambda: so_far(context, name)):
                try:
                    came_to = work(context)
                except BaseException as error:  # an interrupt, too: what was sent goes on without us (R2)
                    if isinstance(error, SwitchStateUnknown) or context.effects.unknown:
                        context.lease.left_unknown()
                    raise
        except Exception as error:
            self.steps[name] = StepRecord(time.monotonic() - begun, error)
            raise
        self.steps[name] = StepRecord(time.monotonic() - begun, came_to)
        return came_to

    def _take_lease(self) -> TriggerContext:
        """What this driver's steps work with; takes the lease, unless this driver has it."""
        if self._context is not None:
            return self._context
        owner = Owner(
            run=self._run_id, host=socket.gethostname(), pid=os.getpid(), since_ms=self.clients.now_ms()
        )
        # Before the lease, so that nothing at all is written. A newer release that comes in between begins
        # with the pointer, and that is read again when the lease is taken.
        self.require_known()
        lease = self.clients.store.take_lease(owner)
        self._watchdog = Watchdog(self.clients.waits, self.clients.store.let_go)
        lease.on_progress = self._watchdog.feed
        progress = Fed(self._progress, self._watchdog)
        self._context = TriggerContext(self.spec, self.clients, lease, progress)
        return self._context

    def require_known(self) -> None:
        """See that what is stored was written by a release that this one knows.

        :raises NeedsNewerRelease: it was not.
        """
        require_known(self.clients.store, self.clients.staging)

    @_watched
    def trigger(self, context: TriggerContext) -> TriggerReport:
        """List, plan, build and stage.

        :raises SessionHeld: another run holds the table's lease.
        :raises PinotAssetsError: as the steps say; what was done so far is stored.
        """
        return trigger(context)

    @_watched
    def trigger_planned(self, context: TriggerContext, plan_hash: str) -> TriggerReport:
        """The same, if it is still what a plan showed.

        :param plan_hash: the plan's hash, or its first digits.
        :raises PlanOutdated: it is not; nothing was done.
        """
        return trigger_planned(context, plan_hash)

    @_watched
    def trigger_without_retry(self, context: TriggerContext) -> TriggerReport:
        """The same for runs that nobody asked for: no retry is spent without `sensorRetries` (rule R26).

        :returns: FAILED or PAUSED, with what stands, where only that would bring the table further.
        """
        return trigger_without_retry(context)

    @_watched
    def audit(self, context: TriggerContext) -> tuple[Session, tuple[Finding, ...]]:
        """The gate: look at the staged segments and store the receipt.

        :raises SnapshotIncomplete: nothing is staged.
        """
        session = session_to_gate(context)
        session, findings = strategy_of(session).audit(context, session)
        is_atomic = session.push is PushKind.ATOMIC and session.outcome is Outcome.OPEN
        if is_atomic and any(finding.blocks for finding in findings):
            # One run publishes all, or nothing: what it staged does not wait for another (edge case E16).
            session = abandon(context, session, Outcome.ABANDONED_RETRIES, session.last_error)
        return session, findings

    def given_up(self) -> Session | None:
        """The newest session, if its one run ended with nothing published and it was closed at once."""
        return given_up(self.clients.store.newest_session())

    def last_failures(self) -> tuple[Failure, ...]:
        """Files that the newest session left out; with a plain push the others are published."""
        last = self.clients.store.newest_session()
        ref = last.failures if last is not None else None
        return self.clients.staging.failures(ref) if ref is not None else ()

    @_watched
    def publish(self, context: TriggerContext) -> Snapshot:
        """Switch; refuses unless the stored audit receipt passed for exactly this switch.

        :raises SnapshotIncomplete: the gate is shut.
        """
        session = session_to_gate(context)
        snapshot = strategy_of(session).publish(context, session)
        expire(context)
        return snapshot

    def gate_and_publish(self, report: TriggerReport, on_finding: Callable[[Finding], None]) -> RunOutcome:
        """Gate what a trigger staged, and switch to it: the end of a run, as `run` and `watch` do it.

        :param on_finding: is told each finding of the gate before the switch.
        """
        if report.result not in (TriggerResult.STAGED, TriggerResult.FAILED):
            return RunOutcome(report, left_out=report.failed)
        _, findings = self.audit()
        for finding in findings:
            on_finding(finding)
        try:
            snapshot = self.publish()
        except SnapshotIncomplete as error:
            return RunOutcome(report, findings, refusal=error)
        return RunOutcome(report, findings, snapshot, left_out=tuple(self.last_failures()))

    def observe(self) -> Observation:
        """What stands in ZooKeeper and the staging area now; needs no lease."""
        return observe(self.clients.store, self.clients.staging)

    def plan(self) -> PlanReport:
        """What a run would do now; needs no lease and changes nothing.

        :raises PinotAssetsError: what a run would refuse before it decides anything.
        """
        self.require_known()
        return make_plan_report(read_only_context(self.spec, self.clients, self._progress))

    def rollback_plans(self, newest: int) -> tuple[RollbackPlan, ...]:
        """The newest kept snapshots, each with the way to it; needs no lease."""
        self.require_known()
        return tuple(rollback_plans(self.spec, self.clients, newest))

    def rollback_plan(self, to: str = "") -> RollbackPlan:
        """What `rollback` would do; needs no lease and changes nothing.

        :param to: number or session of a kept snapshot; "" is the one before the current one.
        :raises RollbackRefused: there is nothing to go back to.
        """
        self.require_known()
        return rollback_plan(self.spec, self.clients, to)

    @_watched
    def rollback(self, context: TriggerContext, to: str = "", shown: RollbackPlan | None = None) -> Snapshot:
        """Back to a kept snapshot.

        :param shown: what `rollback_plan` said; if something else would be done by now, nothing is.
        :raises RollbackRefused: there is no safe way back.
        """
        return rollback(context, to, shown)

    def count(self, snapshot: Snapshot) -> tuple[RowCount, ...]:
        """Whether queries at every broker count the rows of a snapshot."""
        return count(self.clients, self.spec.name, snapshot)

    @property
    def notes(self) -> tuple[str, ...]:
        """What this driver did that a person should know."""
        return tuple(self._context.notes) if self._context is not None else ()

    @_watched
    def resume(self, context: TriggerContext) -> bool:
        """Let go of what a rollback holds back; whether anything was held."""
        if held := context.lease.pointer.hold is not None:
            context.lease.write(pointer=replace(context.lease.pointer, hold=None))
        return held

    @_watched
    def rebuild(self, context: TriggerContext) -> Snapshot | None:
        """Make the ledger anew from what queries see; drops the open session.

        :returns: the ledger.
        """
        return rebuild(context)

    @_watched
    def upgrade(self, context: TriggerContext) -> bool:
        """From now on, new sessions write the newest format; releases that do not know it stop.

        :returns: whether it changed anything.
        """
        lease = context.lease
        if lease.pointer.format == NEWEST:
            return False
        lease.write(pointer=replace(lease.pointer, format=NEWEST))
        return True

    @_watched
    def clear(self, context: TriggerContext) -> Session | None:
        """Drop the open session and what it staged; the published snapshot stays.

        :returns: the session that was dropped, None if none was open.
        """
        catch_up(context)
        sweep_shadow(context)
        session = context.active_session()
        if session is not None and session.mode is Mode.ROLLBACK:
            return clear_rollback(context, session)
        if session is not None and session.state is State.SWITCH:
            session = strategy_of(session).resolve_interrupted(context, session)
        if session is not None:
            abandon(context, session, Outcome.CLEARED, "cleared by hand")
        return session
