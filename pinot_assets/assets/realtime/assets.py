"""A REALTIME table in Dagster: an external asset, observations of its segments, its checks and its jobs.

Nothing here makes the table: its servers do, without a run. What a look finds becomes one observation with
numbers to plot and one evaluation of each check, whoever looked: a run, or `sensors/realtime.py`. There is
one job for each operation, one at a time, with a look at the table after it.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Iterator

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from pinot_assets.assets.asset_attributes import asset_attributes
from pinot_assets.assets.health import said
from pinot_assets.assets.keys import TABLE_TAG, pool_of, tag_of
from pinot_assets.assets.metadata import cell
from pinot_assets.assets.operations import TAGS
from pinot_assets.assets.realtime.operations import CONFIRMED, OPERATIONS, Operation, OperationInputs
from pinot_assets.realtime.health.checks import CHECKS, RealtimeView, look
from pinot_assets.realtime.health.metrics import numbers, segment_rows
from pinot_assets.realtime.model.settings import RealtimeSettings, table_settings
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.resources import PinotResource
from pinot_assets.table_spec import RealtimeTableSpec

SHOWN = 20
"""Segments with a note that an observation lists; `pinot-assets realtime status` lists them all."""


def key_of(spec: RealtimeTableSpec) -> dg.AssetKey:
    """The table's asset key: `<name>_realtime`."""
    return dg.AssetKey([spec.asset_name])


def job_name(spec: RealtimeTableSpec, operation: str) -> str:
    """What one of the table's jobs is called: `<name>_realtime_repair`."""
    return f"{spec.asset_name}_{operation}"


def realtime_asset(spec: RealtimeTableSpec) -> dg.AssetSpec:
    """The table as queries see it."""
    settings = table_settings(spec.table_json)
    stream = settings.streams[0].get("streamType", "") if settings.streams else ""
    return dg.AssetSpec(
        key_of(spec),
        metadata=_what_is_set(settings),
        **asset_attributes(
            spec,
            spec.dagster.description or f"The Pinot table {spec.name_with_type}, as queries see it.",
            *("pinot", "table", *([stream.lower()] if stream else [])),
        ),
    )


def realtime_health(spec: RealtimeTableSpec) -> dg.AssetChecksDefinition:
    """The health of the table: one check each, all of one look."""

    @dg.multi_asset_check(
        name=f"{spec.asset_name}_health_checks",
        specs=[
            dg.AssetCheckSpec(check.name, asset=key_of(spec), description=check.promise, blocking=False)
            for check in CHECKS
        ],
        can_subset=True,
        description=f"What should hold of {spec.name_with_type} at any time. Reads only.",
    )
    def health(
        context: dg.AssetCheckExecutionContext, pinot: PinotResource
    ) -> Iterator[dg.AssetObservation | dg.AssetCheckResult]:
        looked = look(spec.name, pinot.settings)
        yield from observations(spec, looked)
        selected = {key.name for key in context.selected_asset_check_keys}
        for answer in looked.answers:
            if answer.name in selected:
                yield dg.AssetCheckResult(asset_key=key_of(spec), check_name=answer.name, **said(answer))

    return health


def realtime_health_job(spec: RealtimeTableSpec) -> UnresolvedAssetJobDefinition:
    """The job that makes all checks by hand. Without the table's tag: it only reads."""
    checks = [dg.AssetCheckKey(key_of(spec), check.name) for check in CHECKS]
    return dg.define_asset_job(
        job_name(spec, "health"),
        selection=dg.AssetSelection.checks(*checks),
        executor_def=dg.in_process_executor,
        description=f"One look at the health of {spec.name_with_type}; changes nothing.",
    )


def observations(spec: RealtimeTableSpec, looked: RealtimeView) -> Iterator[dg.AssetObservation]:
    """The look as an observation of the table; none where it could not be read."""
    if looked.state is not None:
        yield dg.AssetObservation(key_of(spec), metadata=observed(looked.state))


def evaluations(spec: RealtimeTableSpec, looked: RealtimeView) -> Iterator[dg.AssetCheckEvaluation]:
    """The look as evaluations that no check's own step makes."""
    for answer in looked.answers:
        yield dg.AssetCheckEvaluation(
            asset_key=key_of(spec), check_name=answer.name, blocking=False, **said(answer)
        )


def observed(state: RealtimeState) -> dict[str, dg.MetadataValue]:
    """Numbers to plot, the segments that something is wrong with, and what was not read."""
    values: dict[str, dg.MetadataValue] = {
        name: dg.MetadataValue.int(n) if isinstance(n, int) else dg.MetadataValue.float(n)
        for name, n in numbers(state).items()
    }
    noted = [row for row in segment_rows(state) if row.note]
    if noted:
        lines = [f"| {row.segment} | {row.status} | {row.copy} | {cell(row.note)} |" for row in noted[:SHOWN]]
        more = f"\n\nand {len(noted) - SHOWN} more" if len(noted) > SHOWN else ""
        table = "\n".join(["| segment | status | copy | note |", "|---|---|---|---|", *lines])
        values["troubled_segments"] = dg.MetadataValue.md(table + more)
    if state.unread:
        lines = [f"- {part}: {why}" for part, why in sorted(state.unread.items())]
        values["not_read"] = dg.MetadataValue.md("\n".join(lines))
    return values


def _what_is_set(settings: RealtimeSettings) -> dict[str, str | int | bool]:
    return {
        "replication": settings.replication,
        "pauseless": settings.pauseless,
        "peer_scheme": settings.peer_scheme or "none",
        "streams": len(settings.streams),
    }


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
