"""The local stack: a real ZooKeeper and Apache Pinot, with Kafka and S3 on request, on this machine."""

from pinot_assets.local.moto import moto_server
from pinot_assets.local.stack import PartStatus, Stack, StartProgress
from pinot_assets.settings.local_paths import default_cache, default_home
from pinot_assets.settings.local_stack import StackState, load_state

__all__ = [
    "PartStatus",
    "Stack",
    "StackState",
    "StartProgress",
    "default_cache",
    "default_home",
    "load_state",
    "moto_server",
]
