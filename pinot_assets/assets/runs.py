"""What Dagster must know of the runs of one table, whatever starts them."""

from __future__ import annotations

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.storage.tags import PARTITION_NAME_TAG, RETRY_NUMBER_TAG

from pinot_assets.assets.keys import TABLE_TAG, keys_of, partitions_name, pool_of
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.table_spec import AnyTableSpec, TableSpec, label_of

WHY_TAG = "pinot/tick"
"""Run tag with what the sensor or schedule said that started the run."""
SENSOR_TAG = "pinot/sensor"
"""Run tag of runs that a sensor started."""
TO_START = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
]
"""What a run is in before it does anything."""
UNDER_WAY = [*TO_START, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
"""And what until it has ended."""


def job_name(spec: TableSpec) -> str:
    """The table's job: one trigger."""
    return f"{spec.asset_name}_ingest"


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


def is_alone(instance: dg.DagsterInstance, spec: TableSpec, run_id: str) -> bool:
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
