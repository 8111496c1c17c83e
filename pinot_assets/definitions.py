"""The code location: reads tables/*.yaml and builds the Dagster definitions."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from pinot_assets.code_location import (
    build_left_out_definitions,
    build_location_definitions,
    built_or_left_out,
    with_stores,
)
from pinot_assets.resources import profile_resources
from pinot_assets.sensors.failure import failure_sensor
from pinot_assets.settings.environment import tables_directory
from pinot_assets.table_spec import AnyTableSpec, LeftOut, read_tables


def build_definitions(directory: Path) -> dg.Definitions:
    """Return the definitions of every table of one directory, and the resources of the profile.

    A table is left out and shown in red when its spec is wrong or its definitions cannot be built.

    :raises SpecError: there is no such directory.
    """
    resources = profile_resources()
    tables = read_tables(directory)
    specs: list[AnyTableSpec] = [*tables.values(), *tables.realtime.values()]
    tried = [(spec, built_or_left_out(spec, resources["s3"])) for spec in specs]
    good = [(spec, built) for spec, built in tried if not isinstance(built, LeftOut)]
    left_out = [*tables.left_out, *(built for _, built in tried if isinstance(built, LeftOut))]
    failures = failure_sensor([spec for spec, _ in good])
    own = dg.Definitions(
        sensors=[failures] if failures is not None else [],
        resources=resources,
        executor=dg.in_process_executor,
    )
    taken = {spec.asset_name for spec, _ in good}
    return dg.Definitions.merge(
        own,
        *(built for _, built in good),
        build_location_definitions([with_stores(spec, resources["s3"]) for spec, _ in good], left_out),
        build_left_out_definitions(left_out, taken),
    )


defs = build_definitions(tables_directory())
