"""The only door to Pinot: controller, brokers and servers over HTTP, lineage as values, push."""

from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.pinot.port import (
    Pinot,
    PushMode,
    PushReport,
    ReadObject,
    Replicas,
    SegmentMetadata,
)

__all__ = [
    "Lineage",
    "LineageEntry",
    "LineageState",
    "Pinot",
    "PushMode",
    "PushReport",
    "ReadObject",
    "Replicas",
    "SegmentMetadata",
]
