"""The local stack: a real ZooKeeper and Apache Pinot, with Kafka and S3 on request, on this machine."""

from pinot_assets.local.paths import default_cache, default_home

__all__ = ["default_cache", "default_home"]
