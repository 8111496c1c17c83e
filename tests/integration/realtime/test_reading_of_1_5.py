"""The reading of a pauseless table as a real controller of 1.5.1 and its Helix tell it."""

from __future__ import annotations

import time

import pytest
from fakes.pauseless.laid_table import lay_table
from fakes.pinot.controller import ControllerCluster
from kazoo.client import KazooClient

from pinot_assets.core.connections import PinotConnection
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.model.state import Copy, PauseReason, RealtimeState, SegmentStatus, StreamPartition
from pinot_assets.realtime.read.reading import read_state

pytestmark = pytest.mark.integration


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
    assert [s.status for s in state.segments] == [
        SegmentStatus.DONE,
        SegmentStatus.COMMITTING,
        SegmentStatus.IN_PROGRESS,
    ]
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
    answers = {answer.name: answer for answer in examine_state(state)}
    assert "in it, but not COMMITTING: 1 name" in answers["committing_list"].message
    assert "storage quota is used up" in answers["consumption"].message
    assert answers["error_segments"].numbers["segments_in_error"] == 2
