"""Dagster sensors and schedules, which watch tables and start their runs without a person."""
