"""The only package that talks to Pinot: controller, brokers and servers over HTTP, lineage, push."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pinot_assets.core.late_names import late_names

if TYPE_CHECKING:
    from pinot_assets.core.connections import BasicAuth, PinotConnection, Timeouts, Tls, TokenAuth
    from pinot_assets.pinot.api import PinotClient, PushMode, PushReport, ServerDisk, StagedObjects
    from pinot_assets.pinot.client.broker import Broker, QueryResult
    from pinot_assets.pinot.client.broker_answer import NoResult
    from pinot_assets.pinot.http_client import HttpPinotClient
    from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState, Replicas, SegmentMetadata
    from pinot_assets.pinot.push.upload_loop import wait_online

__all__ = [
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
_HOMES = {
    "BasicAuth": "pinot_assets.core.connections",
    "Broker": "pinot_assets.pinot.client.broker",
    "HttpPinotClient": "pinot_assets.pinot.http_client",
    "Lineage": "pinot_assets.pinot.lineage",
    "LineageEntry": "pinot_assets.pinot.lineage",
    "LineageState": "pinot_assets.pinot.lineage",
    "NoResult": "pinot_assets.pinot.client.broker_answer",
    "PinotClient": "pinot_assets.pinot.api",
    "PinotConnection": "pinot_assets.core.connections",
    "PushMode": "pinot_assets.pinot.api",
    "PushReport": "pinot_assets.pinot.api",
    "QueryResult": "pinot_assets.pinot.client.broker",
    "Replicas": "pinot_assets.pinot.lineage",
    "SegmentMetadata": "pinot_assets.pinot.lineage",
    "ServerDisk": "pinot_assets.pinot.api",
    "StagedObjects": "pinot_assets.pinot.api",
    "Timeouts": "pinot_assets.core.connections",
    "Tls": "pinot_assets.core.connections",
    "TokenAuth": "pinot_assets.core.connections",
    "wait_online": "pinot_assets.pinot.push.upload_loop",
}

__getattr__ = late_names(__name__, _HOMES)
