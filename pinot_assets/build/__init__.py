"""Files become staged segments, one Spark task per file.

`SparkBuilder` is imported from `pinot_assets.build.spark`, so that an executor's task, and whoever only
checks settings, does not pay for PySpark's driver side.
"""

from pinot_assets.build.keys import bad_rows_key, file_id, receipt_key, version_from_text, version_text
from pinot_assets.build.order import Builder, BuildOrder, FileTask, nobody, segment_name
from pinot_assets.build.read import check_reader, read_batches
from pinot_assets.build.task import build_file
from pinot_assets.build.verdicts import Quarantine, Verdicts
from pinot_assets.build.wanted import Wanted
from pinot_assets.core.file_errors import FileRejected

__all__ = [
    "BuildOrder",
    "Builder",
    "FileRejected",
    "FileTask",
    "Quarantine",
    "Verdicts",
    "Wanted",
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
