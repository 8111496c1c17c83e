"""The only door to Pinot: controller, brokers and servers over HTTP, lineage as values, push."""

from pinot_assets.core.connections import (
    Auth,
    BasicAuth,
    PinotConnection,
    Timeouts,
    Tls,
    TokenAuth,
)
from pinot_assets.pinot.api import PinotClient, PushMode, PushReport, ServerDisk, StagedObjects
from pinot_assets.pinot.client.broker import Broker, NoResult, QueryResult
from pinot_assets.pinot.http_client import HttpPinotClient
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.pinot.online import wait_online
from pinot_assets.pinot.segments import Replicas, SegmentMetadata

__all__ = [
    "Auth",
    "BasicAuth",
    "Broker",
    "HttpPinotClient",
    "Lineage",
    "LineageEntry",
    "LineageState",
    "NoResult",
    "PinotClient",
    "PinotConnection",
    "PushMode",
    "PushReport",
    "QueryResult",
    "Replicas",
    "SegmentMetadata",
    "ServerDisk",
    "StagedObjects",
    "Timeouts",
    "Tls",
    "TokenAuth",
    "wait_online",
]
