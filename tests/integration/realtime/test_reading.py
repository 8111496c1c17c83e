"""The reading of a REALTIME table on a real Pinot with Kafka, and what its health says."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from fakes.realtime.kafka_table import Clicks

from pinot_assets.local.stack import Stack
from pinot_assets.metrics.realtime import realtime_samples
from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.health.copies import on_few_servers
from pinot_assets.realtime.model.state import Copy, PauseReason, RealtimeState, SegmentStatus

pytestmark = pytest.mark.integration


def statuses(state: RealtimeState, status: SegmentStatus) -> int:
    return sum(segment.status is status for segment in state.segments)


def failed(state: RealtimeState) -> set[str]:
    return {answer.name for answer in examine_state(state) if not answer.passed}


def settled(state: RealtimeState, rows: int) -> bool:
    return set(state.queryable.values()) == {rows} and all(
        replica.ideal == replica.external for segment in state.segments for replica in segment.replicas
    )


def test_a_table_that_is_consumed_and_committed_past_the_deep_store(clicks: Clicks) -> None:
    with clicks.store_away():
        clicks.send(2500)
        state = clicks.until(
            lambda s: (
                statuses(s, SegmentStatus.DONE) == 4
                and settled(s, 2500)
                # Brokers count what one replica of a partition has; the other may be a moment behind.
                and {one.offset for one in s.consumption} == {1250}
            )
        )
    assert set(state.unread) == {"tmp_uploads"}
    assert state.cluster.unread == {}
    assert state.cluster.version == clicks.dialect.version
    store = clicks.stack.home / "data" / "controller"
    assert state.cluster.data_dir == str(store)
    assert state.cluster.segment_store == dict.fromkeys(state.servers, store.as_uri())
    assert (state.settings.replication, state.settings.peer_scheme, state.settings.pauseless) == (
        2, "http", False,
    )  # fmt: skip
    assert {(p.partition, p.earliest, p.latest) for p in state.stream.values()} == {
        (0, 0, 1250),
        (1, 0, 1250),
    }
    assert [(s.partition, s.sequence, s.status, s.start_offset, s.end_offset) for s in state.segments] == [
        (partition, sequence, status, start, end)
        for partition in (0, 1)
        for sequence, (status, start, end) in enumerate(
            [
                (SegmentStatus.DONE, "0", "500"),
                (SegmentStatus.DONE, "500", "1000"),
                (SegmentStatus.IN_PROGRESS, "1000", None),
            ]
        )
    ]
    done = state.segments[0]
    assert (done.copy, done.total_docs, len(state.live_copies(done))) == (Copy.PEERS_ONLY, 500, 2)
    age = state.age_ms(done)
    assert age is not None
    assert -1000 < age < 600_000
    assert {one.state for one in state.consumption} == {"CONSUMING"}
    assert all(server.alive and server.ready and server.since_ms for server in state.servers.values())
    assert {server.admin_url for server in state.servers.values()} == set(clicks.stack.server_admin_urls)
    assert failed(state) == {"tmp_uploads"}
    samples = {
        (sample.family.name.removeprefix("pinot_assets_realtime_"), *sample.labels[1:]): sample.value
        for sample in realtime_samples("clicks_REALTIME", state)
    }
    assert (samples["segments", "committed"], samples["segments", "consuming"]) == (4, 2)
    assert (samples["committed_rows",], samples["queryable_rows",]) == (2000, 2500)
    assert (samples["segments_only_with_peers",], samples["messages_to_consume",]) == (4, 0)
    assert samples["servers_serving",] == samples["servers",] == 2


def test_paused_resumed_and_committed_by_force(clicks: Clicks) -> None:
    clicks.send(200)
    clicks.until(lambda s: settled(s, 200))
    clicks.pinot.force_commit(clicks.table)
    clicks.until(
        lambda s: (statuses(s, SegmentStatus.DONE), statuses(s, SegmentStatus.IN_PROGRESS)) == (2, 2)
    )
    clicks.send(200)
    clicks.until(lambda s: settled(s, 400))
    clicks.pinot.pause(clicks.table)
    state = clicks.until(
        lambda s: statuses(s, SegmentStatus.DONE) == 4 and statuses(s, SegmentStatus.IN_PROGRESS) == 0
    )
    assert state.pause.reason is PauseReason.ADMINISTRATIVE
    by_name = {answer.name: answer for answer in examine_state(state)}
    assert by_name["consumption"].message == "an operator paused the table"
    assert by_name["next_segment"].passed
    clicks.pinot.resume(clicks.table)
    state = clicks.until(lambda s: statuses(s, SegmentStatus.IN_PROGRESS) == 2 and settled(s, 400))
    assert not state.pause.whole


def test_a_server_that_is_killed(clicks: Clicks, kafka_home: Path) -> None:
    with clicks.store_away():
        clicks.send(1200)
        clicks.until(lambda s: statuses(s, SegmentStatus.DONE) == 2 and settled(s, 1200))
    stack = Stack(kafka_home)
    (part,) = (part for part in stack.status() if part.name == "server-2")
    assert part.pid is not None
    os.kill(part.pid, signal.SIGKILL)
    try:

        def alone(state: RealtimeState) -> bool:
            done = {segment.name for segment in state.segments if segment.status is SegmentStatus.DONE}
            return set(on_few_servers(state)) == done and "servers" in failed(state)

        def noted(state: RealtimeState) -> bool:
            # The controller writes it down a moment after the server's node has gone.
            return any(not server.alive and server.since_ms is not None for server in state.servers.values())

        state = clicks.until(lambda s: noted(s) and alone(s))
        (dead,) = (server for server in state.servers.values() if not server.alive)
        assert dead.since_ms is not None
        assert abs(state.read_ms - dead.since_ms) < 120_000
    finally:
        stack.up(kafka=True)
    clicks.until(lambda s: settled(s, 1200) and all(server.serves for server in s.servers.values()), 120)


def test_one_replica_is_reset_alone(clicks: Clicks) -> None:
    clicks.send(1000)
    state = clicks.until(lambda s: statuses(s, SegmentStatus.DONE) == 2 and settled(s, 1000))
    segment = state.segments[0]
    assert segment.copy is Copy.DEEP_STORE
    clicks.pinot.reset_replica(clicks.table, segment.name, segment.replicas[0].server)
    clicks.until(lambda s: settled(s, 1000))
