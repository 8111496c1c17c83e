"""Arrow tables become Pinot v3 segments, column by column. Knows neither Dagster nor Spark."""

from pinot_assets.segment.archive import (
    Renamed,
    SegmentInfo,
    TarInfo,
    metadata_tar,
    read_segment_info,
    rename_tar,
    write_tar,
)
from pinot_assets.segment.build import ColumnStats, Segment, build_segment
from pinot_assets.segment.fields import Column
from pinot_assets.segment.spec import SegmentSpec
from pinot_assets.segment.types import DataType, FieldType

__all__ = [
    "Column",
    "ColumnStats",
    "DataType",
    "FieldType",
    "Renamed",
    "Segment",
    "SegmentInfo",
    "SegmentSpec",
    "TarInfo",
    "build_segment",
    "metadata_tar",
    "read_segment_info",
    "rename_tar",
    "write_tar",
]
