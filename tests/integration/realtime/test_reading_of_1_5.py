"""The reading of a pauseless table as a real controller of 1.5.1 and its Helix tell it.

The controller cannot make a REALTIME table here, since the plug-in of a stream is not at hand: the table is
laid into ZooKeeper as 1.5.1 writes it, and everything is then told by the controller's own calls.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fakes.controller import ControllerCluster
from kazoo.client import KazooClient

from pinot_assets.pinot.connection import PinotConnection
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.health.checks import examine
from pinot_assets.realtime.reading import read_state
from pinot_assets.realtime.state import Copy, PauseReason, RealtimeState, Status, StreamPartition

pytestmark = pytest.mark.integration

TABLE = "clicks_REALTIME"
PAUSE = {
    "paused": True,
    "reasonCode": "STORAGE_QUOTA_EXCEEDED",
    "comment": "full",
    "timeInMillis": "7",
    "indexOfInactiveTopics": [1],
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerCluster]:
    with ControllerCluster(tmp_path_factory.mktemp("controller")) as cluster:
        yield cluster


@pytest.fixture
def zookeeper(cluster: ControllerCluster) -> Iterator[KazooClient]:
    client = KazooClient(cluster.zookeeper)
    client.start(timeout=15)
    yield client
    client.stop()
    client.close()


def lay(client: KazooClient, path: str, name: str, **fields: Any) -> None:
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


def test_what_a_controller_of_1_5_1_tells(cluster: ControllerCluster, zookeeper: KazooClient) -> None:
    servers = sorted(server.name for server in cluster.servers)
    with RealtimePinot(PinotConnection(cluster.controller_url)) as pinot:
        held = "clicks__0__1__20260202T0240Z"
        with max(cluster.servers, key=lambda server: server.name).hold(held):
            names = lay_table(zookeeper, servers)

            def look() -> RealtimeState:
                return read_state(pinot, "clicks", read_stream=lambda _: {0: StreamPartition(0, 0, 250)})

            def settled(state: RealtimeState) -> bool:
                # The second server may wait with anything behind what it holds.
                shown = [one.replicas[0].external for one in state.segments]
                return (
                    shown == ["ERROR", "ERROR", "CONSUMING"]
                    and state.segments[1].replicas[1].pending
                    and state.segments[1].replicas[1].external in ("OFFLINE", None)
                )

            end = time.monotonic() + 60
            while not settled(state := look()):
                assert time.monotonic() < end, state
                time.sleep(0.3)

    assert [s.name for s in state.segments] == names
    assert [s.status for s in state.segments] == [Status.DONE, Status.COMMITTING, Status.IN_PROGRESS]
    assert [s.copy for s in state.segments] == [Copy.PEERS_ONLY, Copy.NEVER_SET, Copy.NEVER_SET]
    assert [s.modified_ms is not None for s in state.segments] == [True] * 3
    assert (state.pause.reason, state.pause.comment, state.pause.topics) == (PauseReason.QUOTA, "full", {1})
    assert state.committing_listed == {names[1], "clicks__0__9__20260202T0240Z"}
    assert (state.settings.pauseless, state.settings.peer_scheme) == (True, "http")
    assert state.cluster.version == "1.5.1"
    assert (state.cluster.error_auto_reset, state.cluster.validation_period_s) == (True, 3600)
    assert str(state.cluster.data_dir).endswith("/data")
    assert state.cluster.segment_store == dict.fromkeys(servers, "file:///store")
    assert all(server.alive and server.ready for server in state.servers.values())
    assert set(state.unread) == {"tmp_uploads", "answered"}
    answers = {answer.name: answer for answer in examine(state)}
    assert "1 names in it are not COMMITTING" in answers["committing_list"].message
    assert "storage quota is used up" in answers["consumption"].message
    assert answers["error_segments"].numbers["segments_in_error"] == 2
