"""The schedule of a table: Pinot's `schedule`, as Dagster runs it."""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import dagster as dg

from pinot_assets.assets.runs import trigger_of, trigger_to_come
from pinot_assets.assets.table import TableAssets


def table_schedule(table: TableAssets) -> dg.ScheduleDefinition | None:
    """Starts the table's job at the times of `schedule`, in `scheduleTimezone`; None without a `schedule`.

    A tick always triggers, whatever the sensors may not do (docs/design/session.md#retries): it is the way in
    which retries are spent. Beside a run of its table its own waits its turn in Dagster's queue. Only where
    a run like its own waits there already it starts none: that one will list the files, too.
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
        if (waiting := trigger_to_come(context.instance, spec)) is not None:
            state = waiting.status.value.lower().replace("_", " ")
            return dg.SkipReason(f"run {waiting.run_id} of {spec.name} is {state}")
        return trigger_of(context.instance, spec, f"schedule {spec.ingestion.schedule}")

    return schedule
