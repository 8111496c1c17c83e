"""The code location: tables/*.yaml in, Definitions out."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from pinot_assets.realtime_definitions import build_realtime_definitions
from pinot_assets.resources import profile_resources, with_object_store
from pinot_assets.sensors import failure_sensor
from pinot_assets.settings import tables_directory
from pinot_assets.spec import load_tables
from pinot_assets.table_definitions import build_table_definitions


def build_definitions(directory: Path) -> dg.Definitions:
    """The whole code location: every table of one directory, and the resources of the profile.

    :raises SpecError: a table spec is wrong; lists every problem of every file.
    """
    resources = profile_resources()
    tables = load_tables(directory)
    specs = [with_object_store(spec, resources["s3"]) for spec in tables.values()]
    failures = failure_sensor([*specs, *tables.realtime.values()])
    own = dg.Definitions(
        sensors=[failures] if failures is not None else [],
        resources=resources,
        executor=dg.in_process_executor,
    )
    return dg.Definitions.merge(
        own,
        *(build_table_definitions(spec) for spec in specs),
        *(build_realtime_definitions(spec) for spec in tables.realtime.values()),
    )


defs = build_definitions(tables_directory())
