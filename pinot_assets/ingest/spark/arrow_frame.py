"""The rows of a file that the package's own reader reads, as a DataFrame of Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.spark.own_reader import CheckedFile, read_file, read_in_partition
from pinot_assets.ingest.spark.tasks import CORRUPT
from pinot_assets.snapshot.receipt import Fingerprint

SOURCES: Final = frozenset(("MapInArrow", "PythonMapInArrow"))
"""Names of the plan's node that is such a file: in Spark 4, and in 3.5."""
METADATA: Final = "_metadata"


def arrow_frame(
    session: SparkSession, build_spec: BuildSpec, task: FileTask, version: Fingerprint, schema: pa.Schema
) -> DataFrame:
    """Return a file's rows as one partition; the file is read when a job runs.

    :param version: the version that was checked; a job fails if the file has another one.
    :param schema: the columns to read, in types of `own_reader.spark_type`, at least one.
    """
    read = partial(read_file, build_spec, task, version, schema)
    start = session.range(0, 1, 1, 1)  # one row in one partition: one task reads the file
    return start.mapInArrow(read, from_arrow_schema(schema))


def frame_of_files(
    session: SparkSession, build_spec: BuildSpec, files: Sequence[CheckedFile], schema: pa.Schema
) -> DataFrame:
    """Return the rows of files with the same columns, a partition each, in their order.

    The column `CORRUPT` is null, except in the last row of each file: there it has the file's URI.

    :param schema: as in `arrow_frame`.
    """
    read = partial(read_in_partition, build_spec, files, schema)
    start = session.range(0, len(files), 1, len(files))
    return start.mapInArrow(read, from_arrow_schema(schema.append(pa.field(CORRUPT, pa.string()))))


def with_metadata(frame: DataFrame, uri: str, version: Fingerprint) -> DataFrame:
    """Add the column `_metadata`, which Spark's own readers have, with the members that they have."""
    path = uri.replace("s3://", "s3a://", 1) if uri.startswith("s3://") else uri
    members = {
        "file_path": F.lit(path),
        "file_name": F.lit(unquote(uri.rpartition("/")[2])),
        "file_size": F.lit(version.size).cast("bigint"),
        "file_block_start": F.lit(0).cast("bigint"),
        "file_block_length": F.lit(version.size).cast("bigint"),
        "file_modification_time": F.timestamp_micros(F.lit(version.mtime_us)),
    }
    return frame.withColumn(METADATA, F.struct(*[value.alias(name) for name, value in members.items()]))
