"""The runs of one table: their job, tags and requests, which runs are under way, and the driver of a run.

All steps of a run share the table's driver, which writes its progress to the log of the current step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.storage.tags import PARTITION_NAME_TAG, RETRY_NUMBER_TAG

from pinot_assets.assets.keys import TABLE_TAG, TableKeys, keys_of, partitions_name, pool_of
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import Clock, Deadline, poll_until
from pinot_assets.resources import ConsistentPushResource
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.progress import Count, Pace, RunPhase
from pinot_assets.session.values.report import TriggerReport
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.table_spec import AnyTableSpec, TableSpec, label_of

WHY_TAG = "pinot/tick"
"""Run tag with the reason that the sensor or schedule gave for the run."""
SENSOR_TAG = "pinot/sensor"
"""Run tag of runs that a sensor started."""
TO_START = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING]
"""Statuses of a run that has not begun to work."""
UNDER_WAY = [*TO_START, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
"""Statuses of a run that has not ended."""


QUIET_S = 60.0
"""Seconds between progress lines of a build: each line of a run's log is a row in Dagster's database."""
SLACK_S = 5
"""Seconds to wait for a dead run's lease beyond its time-out: ZooKeeper ends sessions only at ticks."""


def job_name(spec: AnyTableSpec, operation: str = "ingest") -> str:
    """Return the name of a job of the table; the job `ingest` makes a trigger, the gate and the switch."""
    return f"{spec.asset_name}_{operation}"


def table_job(spec: TableSpec) -> UnresolvedAssetJobDefinition:
    """Return the table's job, the same object each time: the sensor of all sessions has it as a target, too.

    Its run tags make its runs strictly serial. They also stop a Dagster instance that retries every failed
    run from spending the session's retries (rule R26): Dagster retries only a run whose worker died, and
    continues it from the failed step.
    """
    keys = keys_of(spec)
    return _table_job(job_name(spec), spec.name, keys)


@cache
def _table_job(name: str, table: str, keys: TableKeys) -> UnresolvedAssetJobDefinition:
    made = dg.AssetSelection.assets(keys.segments, keys.snapshot, keys.table)
    # Not the health checks: they list the source, and the sensor of all tables looks after each run.
    checks = dg.AssetSelection.checks_for_assets(keys.table)
    return dg.define_asset_job(
        name,
        selection=made - checks,
        executor_def=dg.in_process_executor,
        tags={
            TABLE_TAG: table,
            "dagster/retry_on_asset_or_op_failure": "false",
            "dagster/retry_strategy": "FROM_FAILURE",
        },
        description=f"One trigger of {table}: build what changed, audit it, switch to it. Choose the "
        f"partition `{ALL_FILES}`; any other partition does the same.",
    )


def trigger_of(instance: dg.DagsterInstance, spec: TableSpec, why: str) -> dg.RunRequest:
    """Request a run of the table's job, for the partition of the whole table.

    :param why: shown as a tag of the run.
    """
    instance.add_dynamic_partitions(partitions_name(spec), [ALL_FILES])
    # The tag tells Dagster the partition, so that it does not look the partition up again.
    tags = {TABLE_TAG: spec.name, WHY_TAG: why, PARTITION_NAME_TAG: ALL_FILES}
    return dg.RunRequest(partition_key=ALL_FILES, tags=tags)


def sensor_trigger_of(instance: dg.DagsterInstance, spec: TableSpec, why: str) -> dg.RunRequest:
    """As `trigger_of`, for a sensor: its run may not spend a retry (rule R26)."""
    request = trigger_of(instance, spec, why)
    return dg.RunRequest(partition_key=request.partition_key, tags={**request.tags, SENSOR_TAG: "true"})


def is_asked_for(run: dg.DagsterRun) -> bool:
    """Whether the schedule or a person started a run: only such runs spend retries (rule R26).

    If a person executes a sensor's run again, a person started it. Dagster's own retry of any run does not
    count, because the run may have died after it stored its failures.
    """
    if run.parent_run_id is not None:
        return RETRY_NUMBER_TAG not in run.tags
    return SENSOR_TAG not in run.tags


def runs_under_way(instance: dg.DagsterInstance, spec: AnyTableSpec) -> list[dg.DagsterRun]:
    """Return the runs that work on the table or wait in the queue, newest first."""
    runs = instance.get_runs(dg.RunsFilter(statuses=UNDER_WAY))
    return [run for run in runs if works_on(run, spec)]


def ask_if_alone(instance: dg.DagsterInstance, spec: TableSpec, run_id: str) -> bool:
    """Whether no other run works on the table or waits in the queue."""
    return all(run.run_id == run_id for run in runs_under_way(instance, spec))


def trigger_to_come(instance: dg.DagsterInstance, spec: TableSpec) -> dg.DagsterRun | None:
    """Return the first waiting run that will list the files and may spend a retry; None if there is none."""
    runs = instance.get_runs(dg.RunsFilter(job_name=job_name(spec), statuses=TO_START), ascending=True)
    # A run that is executed again may start at its gate and list nothing.
    return next((run for run in runs if run.parent_run_id is None and is_asked_for(run)), None)


def works_on(run: dg.DagsterRun, spec: AnyTableSpec) -> bool:
    """Whether a run writes to the table. Its tag shows it; or, if somebody selected assets without the job,
    the pool of one of its steps.
    """
    pools = run.run_op_concurrency.all_pools if run.run_op_concurrency else None
    return run.tags.get(TABLE_TAG) == label_of(spec) or pool_of(spec) in (pools or ())


class RunLog:
    """Write a driver's progress to the log of a run.

    :param on_building: called when a build begins; at that time the session exists.
    """

    def __init__(
        self,
        log: dg.DagsterLogManager,
        clock: Callable[[], float] = time.monotonic,
        on_building: Callable[[], None] = lambda: None,
    ) -> None:
        self._log, self._clock, self._on_building = log, clock, on_building
        self._pace, self._count = Pace({}), Count(RunPhase.CONNECT)
        self._logged_at = clock()

    def note(self, text: str) -> None:
        """Log one step."""
        self._log.info(text)

    def begin(self, phase: RunPhase, total: int = 0) -> None:
        """Begin to count; a phase that is over soon logs nothing."""
        self._count, self._logged_at = Count(phase, total), self._clock()

    def advance(self, done: int) -> None:
        """Log what is done of the phase at most every `QUIET_S` seconds."""
        self._count.done = done
        if self._clock() - self._logged_at >= QUIET_S:
            self._log.info(f"{self._count.phase}: {self._count}")
            self._logged_at = self._clock()

    def rest(self) -> None:
        """Log nothing: the step's end shows in Dagster itself."""

    def building(self, sizes: Mapping[int, int]) -> None:
        """Log that the build of these files begins; sizes in bytes."""
        self._on_building()
        self._pace = Pace(sizes, self._clock)
        self._log.info(f"building {plural(len(sizes), 'file')} of {sum(sizes.values()):,} bytes on Spark")
        self._logged_at = self._clock()

    def moving(self, rows: int) -> None:
        """Count rows that tasks have read, and log progress at most every `QUIET_S` seconds."""
        self._pace.moving(rows)
        if self._clock() - self._logged_at >= QUIET_S:
            self._tell()

    def built(self, outcome: Receipt | Failure) -> None:
        """Log a failed file at once, and built files in steps of a tenth."""
        pace = self._pace
        pace.built(outcome)
        if isinstance(outcome, Failure):
            self._log.warning(f"{outcome.uri} failed: {outcome.code}: {outcome.reason}")
        elif pace.done == pace.files or pace.done % max(1, pace.files // 10) == 0:
            self._tell()

    def _tell(self) -> None:
        self._log.info(f"built {self._pace}")
        self._logged_at = self._clock()


def driver_of(
    context: dg.OpExecutionContext | dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
    spec: TableSpec,
    push: ConsistentPushResource,
) -> Driver:
    """Return the driver of the run, shared by all steps of a process; it takes the lease on first use."""
    log = RunLog(context.log)
    driver = push.driver(spec, context.run.run_id, log, asked_by(context.run))
    if context.run.parent_run_id is not None:
        wait_out(context.run.parent_run_id, driver.clients.store, log.note, driver.clients)
    return driver


SCHEDULE_TAG: Final = "dagster/schedule_name"
"""Tag of a run that a schedule started; Dagster keeps it where a person executes the run again."""

_STARTERS: Final = {"dagster/sensor_name": "sensor ", SCHEDULE_TAG: "schedule ", "user": ""}
"""Tags of a run that name who started it, and what that is."""


def asked_by(run: dg.DagsterRun) -> str:
    """Return who started a run, as its tags say, with the run's id."""
    for tag, what in _STARTERS.items():
        if name := run.tags.get(tag):
            return f"{what}{name}, Dagster run {run.run_id}"
    return f"Dagster run {run.run_id}"


def trigger_once(driver: Driver, run: dg.DagsterRun) -> TriggerReport:
    """Make a trigger; it may spend a retry only if the schedule or a person started the run."""
    if not is_asked_for(run):
        return driver.trigger_without_retry()
    by_schedule = SCHEDULE_TAG in run.tags and run.parent_run_id is None
    return driver.trigger_scheduled() if by_schedule else driver.trigger()


def wait_out(parent: str, store: SessionStore, note: Callable[[str], None], clock: Clock) -> None:
    """Wait until ZooKeeper has ended the lease of the parent run, which this run continues.

    A killed worker cannot release its lease, and Dagster starts the retry within seconds. Without this wait,
    every retry of a dead run would find that run's lease and fail. It does not wait for a lease of any
    other run.
    """

    def ask_if_let_go() -> bool:
        holder = store.holder()
        return holder is None or holder.run != parent

    if not ask_if_let_go():
        note(f"waiting for the lease of run {parent}, which this run continues")
        poll_until(Deadline(clock, store.waits.lease + SLACK_S), 1, ask_if_let_go, bool)
