"""The driver of a table, for one step of a Dagster run."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg

from pinot_assets.assets.progress import RunLog
from pinot_assets.assets.runs import is_asked_for
from pinot_assets.core.deadline import Clock, Deadline, poll_until
from pinot_assets.resources import ConsistentPushResource
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.report import TriggerReport
from pinot_assets.table_spec import TableSpec

SLACK_S = 5
"""How much longer than its time-out a dead run's lease is waited for: ZooKeeper ends sessions in ticks."""

Context = dg.OpExecutionContext | dg.AssetExecutionContext | dg.AssetCheckExecutionContext


def driver_of(context: Context, spec: TableSpec, push: ConsistentPushResource) -> Driver:
    """The same one for every step of a process; it takes the lease when it is first used."""
    log = RunLog(context.log)
    driver = push.driver(spec, context.run.run_id, log)
    if context.run.parent_run_id is not None:
        wait_out(context.run.parent_run_id, driver.clients.store, log.note, driver.clients)
    return driver


def trigger(driver: Driver, run: dg.DagsterRun) -> TriggerReport:
    """The trigger that a run may make."""
    return driver.trigger() if is_asked_for(run) else driver.trigger_without_retry()


def wait_out(parent: str, store: SessionStore, note: Callable[[str], None], clock: Clock) -> None:
    """Let ZooKeeper take the lease from the run that this one goes on for.

    A worker that was killed cannot let go of it, and Dagster starts the next one within seconds: without
    this, every retry of a dead run would meet the dead run's lease and fail. One that is held by anybody
    else is not waited for.
    """

    def is_let_go() -> bool:
        holder = store.holder()
        return holder is None or holder.run != parent

    if not is_let_go():
        note(f"waiting for the lease of run {parent}, which this one goes on for")
        poll_until(Deadline(clock, store.waits.lease + SLACK_S), 1, is_let_go, bool)
