"""The only door to Pinot: controller, brokers and servers over HTTP, lineage as values, push."""

from pinot_assets.pinot.broker import Broker, NoResult, QueryResult
from pinot_assets.pinot.cluster import PinotCluster
from pinot_assets.pinot.connection import (
    Auth,
    BasicAuth,
    PinotConnection,
    Timeouts,
    Tls,
    TokenAuth,
)
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.pinot.port import (
    Pinot,
    PushMode,
    PushReport,
    ReadObject,
    Replicas,
    SegmentMetadata,
)
from pinot_assets.pinot.push import wait_online

__all__ = [
    "Auth",
    "BasicAuth",
    "Broker",
    "Lineage",
    "LineageEntry",
    "LineageState",
    "NoResult",
    "Pinot",
    "PinotCluster",
    "PinotConnection",
    "PushMode",
    "PushReport",
    "QueryResult",
    "ReadObject",
    "Replicas",
    "SegmentMetadata",
    "Timeouts",
    "Tls",
    "TokenAuth",
    "wait_online",
]
