"""Files become staged segments, one Spark task per file.

`SparkBuilder` is imported from `pinot_assets.ingest.spark.builder`, so that an executor's task, and whoever
only checks settings, does not pay for PySpark's driver side.
"""

from pinot_assets.core.file_errors import FileRejected
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, Quarantine, TargetSchema
from pinot_assets.ingest.contract.build_spec import Builder, BuildSpec, FileTask, nobody, segment_name
from pinot_assets.ingest.contract.task_outputs import (
    bad_rows_key,
    file_id,
    receipt_key,
    version_from_text,
    version_text,
)
from pinot_assets.ingest.formats.read import check_reader, read_batches
from pinot_assets.ingest.task.worker import build_file

__all__ = [
    "BadRowPolicy",
    "BuildSpec",
    "Builder",
    "FileRejected",
    "FileTask",
    "Quarantine",
    "TargetSchema",
    "bad_rows_key",
    "build_file",
    "check_reader",
    "file_id",
    "nobody",
    "read_batches",
    "receipt_key",
    "segment_name",
    "version_from_text",
    "version_text",
]
