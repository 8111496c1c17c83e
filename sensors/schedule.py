"""The schedule of a table: Pinot's `schedule`, as Dagster runs it."""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import dagster as dg

from pinot_assets.assets.runs import runs_under_way, trigger_of
from pinot_assets.assets.table import TableAssets


def table_schedule(table: TableAssets) -> dg.ScheduleDefinition | None:
    """Starts the table's job at the times of `schedule`, in `scheduleTimezone`; None without a `schedule`.

    A tick always triggers, whatever the sensors may not do (spec/session.md section 3). One that meets a run
    of its table starts nothing: that run lists the files, too.
    """
    spec = table.spec
    if spec.ingestion.cron is None:
        return None

    @dg.schedule(
        name=f"{spec.asset_name}_schedule",
        job=table.job,
        cron_schedule=spec.ingestion.cron,
        execution_timezone=spec.ingestion.schedule_timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"`schedule: {spec.ingestion.schedule}` of {spec.name}.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        running = runs_under_way(context.instance, spec)
        if running:
            first = running[-1]
            state = first.status.value.lower().replace("_", " ")
            return dg.SkipReason(f"run {first.run_id} of {spec.name} is {state}")
        return trigger_of(context.instance, spec, f"schedule {spec.ingestion.schedule}")

    return schedule
