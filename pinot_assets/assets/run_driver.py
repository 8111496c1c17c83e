"""The driver of a table for one step of a Dagster run, with its progress in the run's log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import dagster as dg

from pinot_assets.assets.runs import is_asked_for
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import Clock, Deadline, poll_until
from pinot_assets.resources import ConsistentPushResource
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.report import Pace, TriggerReport
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.table_spec import TableSpec

QUIET_S = 60.0
"""How long a build that goes on may be silent: every line of a run's log is a row of Dagster's database."""


class RunLog:
    """Tells a run's log how a driver gets on."""

    def __init__(self, log: dg.DagsterLogManager, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._pace = Pace({})
        self._told = clock()

    def note(self, text: str) -> None:
        """One step."""
        self._log.info(text)

    def building(self, sizes: Mapping[int, int]) -> None:
        """Files are about to be built."""
        self._pace = Pace(sizes, self._clock)
        self._log.info(f"building {plural(len(sizes), 'file')} of {sum(sizes.values()):,} bytes on Spark")
        self._told = self._clock()

    def moving(self, rows: int) -> None:
        """Tasks came further."""
        self._pace.moving(rows)
        if self._clock() - self._told >= QUIET_S:
            self._tell()

    def built(self, outcome: Receipt | Failure) -> None:
        """One of them is through."""
        pace = self._pace
        pace.built(outcome)
        if isinstance(outcome, Failure):
            self._log.warning(f"{outcome.uri} failed: {outcome.code}: {outcome.reason}")
        elif pace.done == pace.files or pace.done % max(1, pace.files // 10) == 0:
            self._tell()

    def _tell(self) -> None:
        self._log.info(f"built {self._pace}")
        self._told = self._clock()


class BuildLog(RunLog):
    """As `RunLog`, and lets somebody know that a build begins: the session stands by then."""

    def __init__(self, log: dg.DagsterLogManager, on_building: Callable[[], None]) -> None:
        super().__init__(log)
        self._on_building = on_building

    def building(self, sizes: Mapping[int, int]) -> None:
        """Files are about to be built."""
        self._on_building()
        super().building(sizes)


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
