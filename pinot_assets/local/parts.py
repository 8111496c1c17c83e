"""All parts of the local stack, in the order in which they start."""

from pinot_assets.local.optional import KAFKA, S3
from pinot_assets.local.pinot import PINOT

ALL = (*PINOT, KAFKA, S3)

__all__ = ["ALL", "KAFKA", "PINOT", "S3"]
