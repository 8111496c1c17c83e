"""Definitions of one table: assets, checks, jobs, sensors."""
