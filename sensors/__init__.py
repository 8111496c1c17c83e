"""Dagster sensors: what starts a table's job without a person."""

from pinot_assets.sensors.files import files_sensor

__all__ = ["files_sensor"]
