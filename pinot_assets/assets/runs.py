"""The runs of one table: what Dagster must know of them, whatever starts them, and the driver of each.

Each step of a run has the driver of its table, with its progress in the run's log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.storage.tags import PARTITION_NAME_TAG, RETRY_NUMBER_TAG

from pinot_assets.assets.keys import TABLE_TAG, keys_of, partitions_name, pool_of
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import Clock, Deadline, poll_until
from pinot_assets.resources import ConsistentPushResource
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.report import Pace, TriggerReport
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.table_spec import AnyTableSpec, TableSpec, label_of

WHY_TAG = "pinot/tick"
"""Run tag with what the sensor or schedule said that started the run."""
SENSOR_TAG = "pinot/sensor"
"""Run tag of runs that a sensor started."""
TO_START = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING]
"""What a run is in before it does anything."""
UNDER_WAY = [*TO_START, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
"""And what until it has ended."""


QUIET_S = 60.0
"""How long a build that goes on may be silent: every line of a run's log is a row of Dagster's database."""
SLACK_S = 5
"""How much longer than its time-out a dead run's lease is waited for: ZooKeeper ends sessions in ticks."""


def job_name(spec: AnyTableSpec, operation: str = "ingest") -> str:
    """What a job of the table is called; `ingest` is the one that brings it up to its files."""
    return f"{spec.asset_name}_{operation}"


def table_job(spec: TableSpec) -> UnresolvedAssetJobDefinition:
    """The table's job.

    Its run tags make its runs strictly serial, and keep an instance that retries every failed run from
    spending the session's retries (rule R26): only a run whose worker died is worth another one, from where
    it died.
    """
    keys = keys_of(spec)
    return dg.define_asset_job(
        job_name(spec),
        selection=dg.AssetSelection.assets(keys.segments, keys.snapshot),
        executor_def=dg.in_process_executor,
        tags={
            TABLE_TAG: spec.name,
            "dagster/retry_on_asset_or_op_failure": "false",
            "dagster/retry_strategy": "FROM_FAILURE",
        },
        description=f"One trigger of {spec.name}: build what changed, gate it, switch to it. "
        f"Choose the partition `{ALL_FILES}`; any other does the same.",
    )


def trigger_of(instance: dg.DagsterInstance, spec: TableSpec, why: str) -> dg.RunRequest:
    """A run of the table's job: of the partition that stands for the whole table.

    :param why: shown as a tag of the run.
    """
    instance.add_dynamic_partitions(partitions_name(spec), [ALL_FILES])
    # With the tag, Dagster takes the partition as it is and does not look for it once more.
    tags = {TABLE_TAG: spec.name, WHY_TAG: why, PARTITION_NAME_TAG: ALL_FILES}
    return dg.RunRequest(partition_key=ALL_FILES, tags=tags)


def sensor_trigger_of(instance: dg.DagsterInstance, spec: TableSpec, why: str) -> dg.RunRequest:
    """The same, for a sensor: it may not spend a retry (rule R26)."""
    request = trigger_of(instance, spec, why)
    return dg.RunRequest(partition_key=request.partition_key, tags={**request.tags, SENSOR_TAG: "true"})


def is_asked_for(run: dg.DagsterRun) -> bool:
    """Whether the schedule or a person wants a run, who alone spend retries (rule R26).

    A sensor's run that a person executes again is one that a person wants; Dagster's own retry of whatever
    run is not: the run may have died after it stored what failed.
    """
    if run.parent_run_id is not None:
        return RETRY_NUMBER_TAG not in run.tags
    return SENSOR_TAG not in run.tags


def runs_under_way(instance: dg.DagsterInstance, spec: TableSpec) -> list[dg.DagsterRun]:
    """Runs that work on the table or wait for their turn, newest first."""
    runs = instance.get_runs(dg.RunsFilter(statuses=UNDER_WAY))
    return [run for run in runs if works_on(run, spec)]


def ask_if_alone(instance: dg.DagsterInstance, spec: TableSpec, run_id: str) -> bool:
    """Whether no other run works on the table or waits for its turn."""
    return all(run.run_id == run_id for run in runs_under_way(instance, spec))


def trigger_to_come(instance: dg.DagsterInstance, spec: TableSpec) -> dg.DagsterRun | None:
    """A run that will list the files and may spend a retry, and has not begun to: the first of them."""
    runs = instance.get_runs(dg.RunsFilter(job_name=job_name(spec), statuses=TO_START), ascending=True)
    # One that is executed again may go on from its gate.
    return next((run for run in runs if run.parent_run_id is None and is_asked_for(run)), None)


def works_on(run: dg.DagsterRun, spec: AnyTableSpec) -> bool:
    """Whether a run writes to the table: by its tag, or, for assets that were picked without the job, by the
    pool of one of its steps.
    """
    pools = run.run_op_concurrency.all_pools if run.run_op_concurrency else None
    return run.tags.get(TABLE_TAG) == label_of(spec) or pool_of(spec) in (pools or ())


class RunLog:
    """Tells a run's log how a driver gets on.

    :param on_building: is called when a build begins: the session exists by then.
    """

    def __init__(
        self,
        log: dg.DagsterLogManager,
        clock: Callable[[], float] = time.monotonic,
        on_building: Callable[[], None] = lambda: None,
    ) -> None:
        self._log, self._clock, self._on_building = log, clock, on_building
        self._pace = Pace({})
        self._logged_at = clock()

    def note(self, text: str) -> None:
        """One step."""
        self._log.info(text)

    def building(self, sizes: Mapping[int, int]) -> None:
        """Files are about to be built."""
        self._on_building()
        self._pace = Pace(sizes, self._clock)
        self._log.info(f"building {plural(len(sizes), 'file')} of {sum(sizes.values()):,} bytes on Spark")
        self._logged_at = self._clock()

    def moving(self, rows: int) -> None:
        """Tasks came further."""
        self._pace.moving(rows)
        if self._clock() - self._logged_at >= QUIET_S:
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
        self._logged_at = self._clock()


def driver_of(
    context: dg.OpExecutionContext | dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
    spec: TableSpec,
    push: ConsistentPushResource,
) -> Driver:
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

    def ask_if_let_go() -> bool:
        holder = store.holder()
        return holder is None or holder.run != parent

    if not ask_if_let_go():
        note(f"waiting for the lease of run {parent}, which this one goes on for")
        poll_until(Deadline(clock, store.waits.lease + SLACK_S), 1, ask_if_let_go, bool)
