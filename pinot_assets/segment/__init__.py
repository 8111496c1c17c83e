"""Build Pinot v3 segments from Arrow tables, column by column. Imports neither Dagster nor Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pinot_assets.core.late_names import late_names

if TYPE_CHECKING:
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
_HOMES = {
    "Column": "pinot_assets.segment.column.types",
    "DataType": "pinot_assets.segment.column.types",
    "FieldType": "pinot_assets.segment.column.types",
    "Segment": "pinot_assets.segment.write.segment",
    "SegmentSpec": "pinot_assets.segment.config.segment_spec",
    "build_segment": "pinot_assets.segment.write.segment",
    "metadata_tar": "pinot_assets.segment.write.archive",
    "rename_tar": "pinot_assets.segment.write.archive",
    "write_tar": "pinot_assets.segment.write.archive",
}

__getattr__ = late_names(__name__, _HOMES)
