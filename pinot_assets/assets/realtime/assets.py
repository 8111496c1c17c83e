"""A REALTIME table in Dagster: an external asset, observations of its segments, its checks and its jobs.

Nothing here makes the table: its servers do, without a run. What a look finds becomes one observation with
numbers to plot and one evaluation of each check, whoever looked: a run, or `sensors/health.py`. There is
one job for each operation, one at a time, with a look at the table after it.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Iterable, Iterator

import dagster as dg

from pinot_assets.assets.health import health_checks
from pinot_assets.assets.keys import asset_attributes, table_key
from pinot_assets.assets.metadata import Metadata, cell, first_rows
from pinot_assets.assets.operations import operation_job
from pinot_assets.assets.realtime.operations import OPERATIONS, Operation, OperationInputs
from pinot_assets.core.check_result import CheckResult
from pinot_assets.realtime.health.checks import CHECKS, RealtimeView, look
from pinot_assets.realtime.health.metrics import numbers, segment_rows
from pinot_assets.realtime.model.settings import table_settings
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.resources import PinotResource
from pinot_assets.table_spec import RealtimeTableSpec


def realtime_asset(spec: RealtimeTableSpec) -> dg.AssetSpec:
    """The table as queries see it."""
    settings = table_settings(spec.table_json)
    stream = settings.streams[0].get("streamType", "") if settings.streams else ""
    return dg.AssetSpec(
        table_key(spec),
        metadata={
            "replication": settings.replication,
            "pauseless": settings.pauseless,
            "peer_scheme": settings.peer_scheme or "none",
            "streams": len(settings.streams),
        },
        **asset_attributes(
            spec,
            spec.dagster.description or f"The Pinot table {spec.name_with_type}, as queries see it.",
            *("pinot", "table", *([stream.lower()] if stream else [])),
        ),
    )


def realtime_health(spec: RealtimeTableSpec) -> dg.AssetChecksDefinition:
    """The health of the table."""

    def look_at(
        _: dg.DagsterInstance, pinot: PinotResource
    ) -> tuple[Iterable[dg.AssetObservation], Iterable[CheckResult]]:
        looked = look(spec.name, pinot.settings)
        return observations(spec, looked), looked.answers

    what = f"What should hold of {spec.name_with_type} at any time. Reads only."
    return health_checks(spec, CHECKS, what, look_at)


def observations(spec: RealtimeTableSpec, looked: RealtimeView) -> list[dg.AssetObservation]:
    """The look as an observation of the table; none where it could not be read."""
    if looked.state is None:
        return []
    return [dg.AssetObservation(table_key(spec), metadata=observed(looked.state))]


def observed(state: RealtimeState) -> Metadata:
    """Numbers to plot, the segments that something is wrong with, and what was not read."""
    values: dict[str, dg.MetadataValue | str | int | float] = {**numbers(state)}
    rows = [(r.segment, r.status, r.copy, cell(r.note)) for r in segment_rows(state) if r.note]
    if rows:
        values["troubled_segments"] = first_rows(("segment", "status", "copy", "note"), rows)
    if state.unread:
        lines = [f"- {part}: {why}" for part, why in sorted(state.unread.items())]
        values["not_read"] = dg.MetadataValue.md("\n".join(lines))
    return values


def realtime_jobs(spec: RealtimeTableSpec) -> tuple[dg.JobDefinition, ...]:
    """`<name>_realtime_preflight`, and so forth."""
    return tuple(_job(spec, operation) for operation in OPERATIONS)


def _job(spec: RealtimeTableSpec, operation: Operation) -> dg.JobDefinition:
    def act(context: dg.OpExecutionContext, pinot: PinotResource) -> Iterator[dg.AssetObservation]:
        run = f"run {context.run.run_id}"
        work = OperationInputs(spec, pinot.settings(), run, context.op_config or {}, context.log)
        context.log.info(operation.act(work))
        yield from observations(spec, look(spec.name, pinot.settings))

    return operation_job(spec, operation.name, operation.description, operation.config, act)
