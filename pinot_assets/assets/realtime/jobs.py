"""The jobs of a REALTIME table: one for each operation, one at a time, and a look at the table after it."""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Iterator

import dagster as dg

from pinot_assets.assets.keys import TABLE_TAG, pool_of, tag_of
from pinot_assets.assets.operations import TAGS
from pinot_assets.assets.realtime.assets import job_name, observations
from pinot_assets.assets.realtime.confirmed import CONFIRMED
from pinot_assets.assets.realtime.operations import OPERATIONS, Operation, OperationInputs
from pinot_assets.realtime.health.checks import look
from pinot_assets.resources import PinotResource
from pinot_assets.table_spec import RealtimeTableSpec


def realtime_jobs(spec: RealtimeTableSpec) -> tuple[dg.JobDefinition, ...]:
    """`<name>_realtime_preflight`, and so forth."""
    return tuple(_job(spec, operation) for operation in (*OPERATIONS, *CONFIRMED))


def _job(spec: RealtimeTableSpec, operation: Operation) -> dg.JobDefinition:
    name = job_name(spec, operation.name)

    @dg.op(
        name=f"{name}_op",
        out={},
        pool=pool_of(spec),
        description=operation.description,
        config_schema=dict(operation.config) or None,
    )
    def act(context: dg.OpExecutionContext, pinot: PinotResource) -> Iterator[dg.AssetObservation]:
        run = f"run {context.run.run_id}"
        work = OperationInputs(spec, pinot.settings(), run, context.op_config or {}, context.log)
        context.log.info(operation.act(work))
        yield from observations(spec, look(spec.name, pinot.settings))

    @dg.job(
        name=name,
        tags={TABLE_TAG: tag_of(spec), **TAGS},
        executor_def=dg.in_process_executor,
        description=operation.description,
    )
    def job() -> None:
        act()

    return job
