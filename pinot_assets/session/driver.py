"""The driver of one table: what Dagster's steps, the CLI and tests call.

`trigger` lists, plans, builds and stages (W1 to W3). `audit` is the gate (W4). `publish` switches (W5, W6).
They may run in one process or in three: each stores everything that the next one needs before it returns
(docs/design/session.md#in-dagster). What most runs do not do is imported by the method that does it: a run
that finds nothing to do has to start fast.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from pinot_assets.audit.checks import Finding
from pinot_assets.core.effects import progress_in_errors
from pinot_assets.core.outages import OutageWatch
from pinot_assets.core.stored_format import NEWEST
from pinot_assets.errors import SnapshotIncomplete, SwitchStateUnknown
from pinot_assets.session.checks.shadow import delete_left_shadow
from pinot_assets.session.close import abandon
from pinot_assets.session.context.context import TriggerContext, read_only_context, so_far
from pinot_assets.session.context.watchdog import Fed, Watchdog
from pinot_assets.session.detect.observe import Observation, observe
from pinot_assets.session.lineage.stale_pointer import number_of
from pinot_assets.session.recover.lost_pointer import catch_up, rebuild
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.formats import require_known
from pinot_assets.session.trigger import (
    trigger,
    trigger_planned,
    trigger_scheduled,
    trigger_without_retry,
)
from pinot_assets.session.values.outcome import RunOutcome, StepRecord
from pinot_assets.session.values.outdated import Request
from pinot_assets.session.values.progress import Progress, Quiet
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import (
    HoldEnd,
    Mode,
    Outcome,
    Owner,
    Session,
    State,
    given_up,
)
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure
from pinot_assets.snapshot.recipes import StoredRecipe
from pinot_assets.table_spec import TableSpec

if TYPE_CHECKING:
    from pinot_assets.session.checks.server_checks import RowCount
    from pinot_assets.session.plan_report.plan_report import PlanReport
    from pinot_assets.session.rollback.rollback_plan import RollbackPlan
    from pinot_assets.table_spec.tables.apply import ApplyPlan

P = ParamSpec("P")
T = TypeVar("T")


def _watched(
    step: Callable[Concatenate[Driver, TriggerContext, P], T],
) -> Callable[Concatenate[Driver, P], T]:
    """Make a method a step of the driver: `carry_out` runs it and passes the context to it."""

    @wraps(step)
    def watched(driver: Driver, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return driver.carry_out(step.__name__, lambda context: step(driver, context, *args, **kwargs))

    return watched


class Driver:
    """Drives one table; holds its lease from the first step until `release`.

    :param spec: the table spec.
    :param run_id: the name of the lease's owner: a Dagster run id, `pinot-assets run`, …
    :param asked_by: who asked for the work, for sessions and snapshots: a person, a sensor, a schedule.
    :ivar steps: the steps done so far, by name.
    """

    def __init__(
        self,
        spec: TableSpec,
        clients: TableClients,
        run_id: str,
        progress: Progress | None = None,
        asked_by: str = "",
    ) -> None:
        self.spec = spec
        self._asked_by = asked_by
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
        """Release the lease, if this driver took it."""
        context, self._context = self._context, None
        if context is not None:
            self._outages.stop()
            self._watchdog.stop()
            context.lease.release()

    def take(self) -> None:
        """Take the lease now, so that no other driver changes what the caller reads next.

        :raises SessionHeld: another run holds it.
        """
        self._take_lease().lease.assert_held()

    def report_to(self, progress: Progress) -> None:
        """Report progress to `progress` from now on; each Dagster step has its own log."""
        self._progress = progress
        if self._context is not None:
            self._context.progress = Fed(progress, self._feed)

    def carry_out(self, name: str, work: Callable[[TriggerContext], T]) -> T:
        """Run a step under the lease and the watchdog (rule R25); record it in `steps`. Callers add steps.

        If the step ends while the answer to a write to Pinot is missing, the lease records that. An error of
        the step says what was done before.

        :raises SessionHeld: another run holds the table's lease.
        """
        begun = time.monotonic()
        try:
            context = self._take_lease()
            with (
                self._watchdog.guard(),
                self._outages.in_errors(),
                progress_in_errors(lambda: so_far(context, name)),
            ):
                try:
                    came_to = work(context)
                except BaseException as error:  # an interrupt, too: Pinot carries out what was sent (R2)
                    if isinstance(error, SwitchStateUnknown) or context.effects.unknown:
                        context.lease.left_unknown()
                    raise
        except Exception as error:
            self._finish(name, StepRecord(time.monotonic() - begun, error))
            raise
        finally:
            self._progress.rest()
        self._finish(name, StepRecord(time.monotonic() - begun, came_to))
        return came_to

    def _finish(self, name: str, record: StepRecord) -> None:
        """Keep and log the record of a step."""
        self.steps[name] = record
        if self._context is not None:
            self._context.log("step", {"step": name, "seconds": round(record.seconds, 3), **record.outcome})

    def _take_lease(self) -> TriggerContext:
        """Return the context of this driver's steps; take the lease first, unless this driver has it."""
        if self._context is not None:
            return self._context
        owner = Owner(
            run=self._run_id, host=socket.gethostname(), pid=os.getpid(), since_ms=self.clients.now_ms()
        )
        # Check before the lease is taken, so that nothing is written. A newer release that starts in between
        # writes the pointer first, and `take_lease` reads the pointer again.
        self.require_known()
        lease = self.clients.store.take_lease(owner)
        self._watchdog = Watchdog(self.clients.waits, self.clients.store.let_go)
        self._outages = OutageWatch(
            self.clients.services, lambda text: self._progress.note(text), self._watchdog.end_step
        )
        lease.on_progress = self._feed
        progress = Fed(self._progress, self._feed)
        self._context = TriggerContext(self.spec, self.clients, lease, progress, self._asked_by)
        return self._context

    def _feed(self) -> None:
        self._watchdog.feed()
        self._outages.feed()

    def require_known(self) -> None:
        """Check that this release knows the formats of all that is stored for the table.

        :raises NeedsNewerRelease: it does not.
        """
        require_known(self.clients.store, self.clients.staging)

    @_watched
    def trigger(self, context: TriggerContext) -> TriggerReport:
        """List, plan, build and stage.

        :raises SessionHeld: another run holds the table's lease.
        :raises PinotAssetsError: a step failed (see `trigger`); what was done so far is stored.
        """
        return trigger(context)

    @_watched
    def trigger_planned(
        self, context: TriggerContext, plan_hash: str, request: Request | None = None
    ) -> TriggerReport:
        """Run a trigger if it would still do what a plan report showed.

        :param plan_hash: the plan hash, or its first digits.
        :param request: what the plan was asked to do, None if it was the plan of an ordinary run.
        :raises PlanOutdated: it would do something else; nothing was done.
        """
        context.request = request
        return trigger_planned(context, plan_hash)

    @_watched
    def trigger_without_retry(self, context: TriggerContext) -> TriggerReport:
        """Trigger for a sensor or a Dagster retry: spends no retry unless `sensorRetries` is set (rule R26).

        :returns: FAILED or PAUSED, with the open session, if only a retry or a new session would help.
        """
        return trigger_without_retry(context)

    @_watched
    def trigger_scheduled(self, context: TriggerContext) -> TriggerReport:
        """Trigger for a schedule: files wait for others as the table spec says (`layout.waitFor`)."""
        return trigger_scheduled(context)

    @_watched
    def audit(self, context: TriggerContext) -> tuple[Session, tuple[Finding, ...]]:
        """Audit the staged segments and store the audit receipt.

        :raises SnapshotIncomplete: nothing is staged.
        """
        from pinot_assets.session.audit_and_publish import audit_staged

        return audit_staged(context)

    def given_up(self) -> Session | None:
        """Return the newest session if it is atomic or plain and was given up for failed files."""
        return given_up(self.clients.store.newest_session())

    def last_failures(self) -> tuple[Failure, ...]:
        """Return the files that failed in the newest session; a plain push published the others."""
        last = self.clients.store.newest_session()
        ref = last.failures if last is not None else None
        return self.clients.staging.failures(ref) if ref is not None else ()

    @_watched
    def publish(self, context: TriggerContext) -> Snapshot:
        """Publish the staged switch; its audit receipt must have passed for exactly this switch.

        :raises SnapshotIncomplete: the gate is shut.
        """
        from pinot_assets.session.audit_and_publish import publish_staged

        return publish_staged(context)

    def gate_and_publish(
        self, report: TriggerReport, on_findings: Callable[[Sequence[Finding]], None]
    ) -> RunOutcome:
        """Audit and publish what a trigger staged: the end of a run of `run` and `watch`.

        :param on_findings: called with the findings of the audit before the switch.
        """
        if report.result not in (TriggerResult.STAGED, TriggerResult.FAILED):
            return RunOutcome(report, left_out=report.failed)
        _, findings = self.audit()
        on_findings(findings)
        try:
            snapshot = self.publish()
        except SnapshotIncomplete as error:
            return RunOutcome(report, findings, refusal=error)
        return RunOutcome(report, findings, snapshot, left_out=tuple(self.last_failures()))

    def observe(self) -> Observation:
        """Read the table's present state from ZooKeeper and the staging area; needs no lease."""
        return observe(self.clients.store, self.clients.staging)

    def plan(self, request: Request | None = None) -> PlanReport:
        """Return what a run would do now; needs no lease and changes nothing.

        :param request: what the run is asked to do with published files, None if it is not asked.
        :raises RebuildRefused: the table cannot do that.
        :raises PinotAssetsError: a run would fail before it decides anything.
        """
        from pinot_assets.session.plan_report.plan_report import make_plan_report  # no run needs it

        self.require_known()
        context = read_only_context(self.spec, self.clients, self._progress, request)
        return make_plan_report(context)

    def rollback_plans(self, newest: int) -> tuple[RollbackPlan, ...]:
        """Return the `newest` kept snapshots, each with the rollback that leads to it; needs no lease."""
        from pinot_assets.session.rollback.rollback_plan import rollback_plans

        self.require_known()
        return tuple(rollback_plans(self.spec, self.clients, newest))

    def rollback_plan(self, to: str = "") -> RollbackPlan:
        """Return what `rollback` would do; needs no lease and changes nothing.

        :param to: number or session of a kept snapshot; "" is the one before the current one.
        :raises RollbackRefused: there is nothing to go back to.
        """
        from pinot_assets.session.rollback.rollback_plan import rollback_plan

        self.require_known()
        return rollback_plan(self.spec, self.clients, to)

    @_watched
    def rollback(self, context: TriggerContext, to: str = "", shown: RollbackPlan | None = None) -> Snapshot:
        """Bring the table back to a kept snapshot.

        :param shown: what `rollback_plan` returned; if the rollback would now do something else, it refuses.
        :raises RollbackRefused: there is no safe way back.
        """
        from pinot_assets.session.rollback.rollback import rollback

        return rollback(context, to, shown)

    @_watched
    def apply_recipe(self, context: TriggerContext, recipe: StoredRecipe) -> ApplyPlan:
        """Set Pinot's schema and table config to those of a recipe.

        :raises PinotError: Pinot refuses them.
        """
        from pinot_assets.session.rollback.spec_of_target import apply_recipe

        context.before_pinot_write()
        return apply_recipe(self.spec, recipe, context.pinot)

    def count(self, snapshot: Snapshot) -> tuple[RowCount, ...]:
        """Count the rows of the table at every broker, to compare them with the snapshot's rows."""
        from pinot_assets.session.checks.server_checks import count_at_brokers

        return count_at_brokers(self.clients, self.spec.name, snapshot)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for people about what this driver did."""
        return tuple(self._context.notes) if self._context is not None else ()

    @_watched
    def resume(self, context: TriggerContext) -> bool:
        """End the hold of a rollback; return whether there was one."""
        pointer = context.lease.pointer
        if held := pointer.hold is not None:
            seq = number_of(pointer.current_snapshot)
            end = HoldEnd(seq, self.clients.now_ms(), context.asked_by)
            context.lease.write(pointer=replace(pointer, hold=None, hold_ended=end))
        return held

    def hold_ended(self) -> HoldEnd | None:
        """Return the last `resume` that ended a hold; needs no lease."""
        return self.clients.store.pointer().hold_ended

    @_watched
    def rebuild(self, context: TriggerContext) -> Snapshot | None:
        """Rebuild the ledger from visible segments and kept snapshots; drop the open session.

        :returns: the ledger.
        """
        return rebuild(context)

    @_watched
    def upgrade(self, context: TriggerContext) -> bool:
        """Let new sessions write the newest format; releases that do not know it refuse the table.

        :returns: whether the format changed.
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
        from pinot_assets.session.commit.strategy import strategy_of
        from pinot_assets.session.rollback.rollback import clear_rollback

        catch_up(context)
        delete_left_shadow(context)
        session = context.active_session()
        if session is not None and session.mode is Mode.ROLLBACK:
            return clear_rollback(context, session)
        if session is not None and session.state is State.SWITCH:
            session = strategy_of(session).resolve_interrupted(context, session)
        if session is not None:
            abandon(context, session, Outcome.CLEARED, "cleared by hand")
        return session
