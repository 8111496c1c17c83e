"""The code location: tables/*.yaml in, Definitions out."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from pinot_assets.assets.health import health_job, table_health
from pinot_assets.assets.table import table_assets
from pinot_assets.resources import profile_resources, with_object_store
from pinot_assets.sensors import (
    failure_sensor,
    files_sensor,
    health_sensor,
    session_sensor,
    table_schedule,
)
from pinot_assets.settings import tables_directory
from pinot_assets.spec import TableSpec, load_tables


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
        jobs=[table.job, *table.operations, health_job(spec)],
        sensors=[files_sensor(table), session_sensor(table), health_sensor(spec)],
        schedules=[schedule] if schedule is not None else [],
    )


def build_definitions(directory: Path) -> dg.Definitions:
    """The whole code location: every table of one directory, and the resources of the profile.

    :raises SpecError: a table spec is wrong; lists every problem of every file.
    """
    resources = profile_resources()
    specs = [with_object_store(spec, resources["s3"]) for spec in load_tables(directory).values()]
    failures = failure_sensor(specs)
    own = dg.Definitions(
        sensors=[failures] if failures is not None else [],
        resources=resources,
        executor=dg.in_process_executor,
    )
    return dg.Definitions.merge(own, *(build_table_definitions(spec) for spec in specs))


defs = build_definitions(tables_directory())
