"""One REALTIME table in Dagster: for the code location of this project and for those of others."""

from __future__ import annotations

import dagster as dg

from pinot_assets.assets.realtime.assets import realtime_asset, realtime_health, realtime_health_job
from pinot_assets.assets.realtime.jobs import realtime_jobs
from pinot_assets.sensors.realtime import realtime_sensor
from pinot_assets.table_spec import RealtimeTableSpec


def build_realtime_definitions(spec: RealtimeTableSpec) -> dg.Definitions:
    """Everything that Dagster needs of one REALTIME table, but for the resource `pinot`."""
    return dg.Definitions(
        assets=[realtime_asset(spec)],
        asset_checks=[realtime_health(spec)],
        jobs=[*realtime_jobs(spec), realtime_health_job(spec)],
        sensors=[realtime_sensor(spec)],
    )
