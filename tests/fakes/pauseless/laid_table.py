"""A pauseless table that is laid into ZooKeeper as Pinot 1.5.1 writes it.

A controller cannot make one where the plug-in of a stream is not at hand; it tells of one that is there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from kazoo.client import KazooClient

TABLE = "clicks_REALTIME"
PAUSE = {
    "paused": True,
    "reasonCode": "STORAGE_QUOTA_EXCEEDED",
    "comment": "full",
    "timeInMillis": "7",
    "indexOfInactiveTopics": [1],
}


def lay(client: KazooClient, path: str, name: str, **fields: Mapping[str, object]) -> None:
    record = {"id": name, "simpleFields": {}, "listFields": {}, "mapFields": {}, **fields}
    full = f"/pinot/{path}/{name}"
    client.ensure_path(full)
    client.set(full, json.dumps(record).encode())


def segment(sequence: int, status: str, **fields: str) -> tuple[str, dict[str, str]]:
    start = {"segment.realtime.startOffset": str(sequence * 100), "segment.creation.time": "1770000000000"}
    return f"clicks__0__{sequence}__20260202T0240Z", {
        "segment.realtime.status": status,
        **start,
        **{f"segment.{key}": value for key, value in fields.items()},
    }


def lay_table(client: KazooClient, servers: list[str]) -> list[str]:
    stream = {
        "streamType": "kafka",
        "stream.kafka.topic.name": "t",
        "stream.kafka.broker.list": "127.0.0.1:1",
    }
    ingestion = {"streamConfigMaps": [stream], "pauselessConsumptionEnabled": True}
    config = {
        "tableName": TABLE,
        "tableType": "REALTIME",
        "segmentsConfig": {"replication": "2", "peerSegmentDownloadScheme": "http"},
        "tenants": {"broker": "DefaultTenant", "server": "DefaultTenant"},
        "tableIndexConfig": {},
        "metadata": {},
        "ingestionConfig": {"streamIngestionConfig": ingestion},
    }
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    lay(client, "PROPERTYSTORE/CONFIGS/TABLE", TABLE, simpleFields=texts)
    nodes = dict(
        [
            segment(0, "DONE", **{"realtime.endOffset": "100", "download.url": "", "total.docs": "100"}),
            segment(1, "COMMITTING", **{"realtime.endOffset": "200"}),
            segment(2, "IN_PROGRESS"),
        ]
    )
    for name, fields in nodes.items():
        lay(client, f"PROPERTYSTORE/SEGMENTS/{TABLE}", name, simpleFields=fields)
    names = list(nodes)
    listed = {"committingSegments": [names[1], "clicks__0__9__20260202T0240Z"]}
    lay(client, "PROPERTYSTORE/PAUSELESS_DEBUG_METADATA", TABLE, listFields=listed)
    model = {
        "IDEAL_STATE_MODE": "CUSTOMIZED",
        "REBALANCE_MODE": "CUSTOMIZED",
        "STATE_MODEL_DEF_REF": "SegmentOnlineOfflineStateModel",
        "NUM_PARTITIONS": "3",
        "REPLICAS": "2",
        "INSTANCE_GROUP_TAG": "",
    }
    states = {name: dict.fromkeys(servers, "CONSUMING" if name == names[2] else "ONLINE") for name in names}
    fields = {**model, "pauseState": json.dumps(PAUSE)}
    lay(client, "IDEALSTATES", TABLE, simpleFields=fields, mapFields=states)
    return names
