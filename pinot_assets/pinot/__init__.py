"""The only package that talks to Pinot: controller, brokers and servers over HTTP, lineage, push."""

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
