"""Dagster resources: Pinot with its ZooKeeper, and the session machine that works on it."""

from pinot_assets.resources.consistent_push import ConsistentPushResource
from pinot_assets.resources.pinot import PinotResource

__all__ = ["ConsistentPushResource", "PinotResource"]
