"""Build Pinot v3 segments from Arrow tables, column by column. Imports neither Dagster nor Spark."""

from pinot_assets.segment.column.types import Column, DataType, FieldType
from pinot_assets.segment.config.segment_spec import SegmentSpec
from pinot_assets.segment.write.archive import metadata_tar, rename_tar, write_tar
from pinot_assets.segment.write.segment import Segment, build_segment

__all__ = [
    "Column",
    "DataType",
    "FieldType",
    "Segment",
    "SegmentSpec",
    "build_segment",
    "metadata_tar",
    "rename_tar",
    "write_tar",
]
