"""One table in Dagster, OFFLINE or REALTIME: for the code location of this project and for those of others.

Apart from `definitions`, which loads a whole directory when it is imported.
"""

from __future__ import annotations

import dagster as dg

from pinot_assets.assets.health import health_job, table_health
from pinot_assets.assets.operations import plan_job
from pinot_assets.assets.realtime.assets import (
    realtime_asset,
    realtime_health,
    realtime_health_job,
    realtime_jobs,
)
from pinot_assets.assets.table import table_assets
from pinot_assets.sensors import files_sensor, health_sensor, session_sensor, table_schedule
from pinot_assets.sensors.realtime import realtime_sensor
from pinot_assets.table_spec import RealtimeTableSpec, TableSpec


def build_table_definitions(spec: TableSpec) -> dg.Definitions:
    """Everything that Dagster needs of one table, but for resources: for a code location of your own.

    It asks for the resources `pinot` and `push` (`profile_resources` has both) and wants the in-process
    executor for its assets: the steps of one trigger share a process, which holds the table's lease.
    """
    table = table_assets(spec)
    schedule = table_schedule(table)
    return dg.Definitions(
        assets=table.assets,
        asset_checks=[table.check, table_health(spec)],
        jobs=[table.job, *table.operations, plan_job(spec), health_job(spec)],
        sensors=[files_sensor(table), session_sensor(table), health_sensor(spec)],
        schedules=[schedule] if schedule is not None else [],
    )


def build_realtime_definitions(spec: RealtimeTableSpec) -> dg.Definitions:
    """Everything that Dagster needs of one REALTIME table, but for the resource `pinot`."""
    return dg.Definitions(
        assets=[realtime_asset(spec)],
        asset_checks=[realtime_health(spec)],
        jobs=[*realtime_jobs(spec), realtime_health_job(spec)],
        sensors=[realtime_sensor(spec)],
    )
