"""The code location: tables/*.yaml in, Definitions out."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from dagster_pyspark import LazyPySparkResource

from pinot_assets.assets.table import table_assets
from pinot_assets.resources import ConsistentPushResource, PinotResource
from pinot_assets.sensors import files_sensor
from pinot_assets.settings import tables_directory
from pinot_assets.spec import load_tables


def build_definitions(directory: Path) -> dg.Definitions:
    """Everything that Dagster needs of the tables in one directory.

    :raises SpecError: a table spec is wrong; lists every problem of every file.
    """
    tables = [table_assets(spec) for spec in load_tables(directory).values()]
    pinot = PinotResource()
    # No settings: a small Spark on this machine. A cluster's go here, spark.master first.
    spark = LazyPySparkResource(spark_config={})
    return dg.Definitions(
        assets=[asset for table in tables for asset in table.assets],
        asset_checks=[table.check for table in tables],
        jobs=[table.job for table in tables],
        sensors=[files_sensor(table) for table in tables],
        resources={"pinot": pinot, "push": ConsistentPushResource(pinot=pinot, spark=spark)},
        # The steps of one trigger share a process, which holds the table's lease.
        executor=dg.in_process_executor,
    )


defs = build_definitions(tables_directory())
