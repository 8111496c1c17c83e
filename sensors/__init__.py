"""Dagster sensors and schedules: what works on a table without a person."""

from pinot_assets.sensors.failure import failure_sensor
from pinot_assets.sensors.files import files_sensor
from pinot_assets.sensors.health import health_sensor
from pinot_assets.sensors.left_out import left_out_sensor
from pinot_assets.sensors.realtime import realtime_sensor
from pinot_assets.sensors.schedule import table_schedule
from pinot_assets.sensors.session import session_sensor

__all__ = [
    "failure_sensor",
    "files_sensor",
    "health_sensor",
    "left_out_sensor",
    "realtime_sensor",
    "session_sensor",
    "table_schedule",
]
