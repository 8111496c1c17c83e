"""Dagster sensors and schedules: what works on a table without a person."""
