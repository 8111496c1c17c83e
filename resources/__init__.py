"""Dagster resources: Pinot with its ZooKeeper, Spark, the object store, the session machine."""

from pinot_assets.resources.consistent_push import ConsistentPushResource
from pinot_assets.resources.object_store import with_object_store
from pinot_assets.resources.pinot import PinotResource
from pinot_assets.resources.profiles import profile_resources
from pinot_assets.resources.spark import SparkResource

__all__ = [
    "ConsistentPushResource",
    "PinotResource",
    "SparkResource",
    "profile_resources",
    "with_object_store",
]
