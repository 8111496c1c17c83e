"""What a real 1.5.1 cluster did, step by step, and the simulation does as well.

Measured on two servers with replication 2 and two partitions, 15,000 rows a segment.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.realtime.simulated_truth import always
from simulator.faults import Point, StoreOutage, Strike
from simulator.tables import (
    BEGAN_MS,
    MINUTE,
    PAUSELESS,
    Hardware,
    SimulatedTable,
    Stream,
    first,
    statuses,
    with_settings,
)
from simulator.world import SimulatedWorld

from pinot_assets.realtime.model.settings import ClusterSettings
from pinot_assets.realtime.model.state import SegmentStatus
from pinot_assets.sizing.load import Flush

LIKE_IT = replace(
    PAUSELESS,
    flush=Flush(rows=30_000),
    stream=Stream(partitions=2, rows_per_s=20_000, flows_ms=5_000),
    hardware=Hardware(bytes_per_row=100, build_rows_per_s=35_000, zookeeper_ms=40),
)
"""200,000 messages in five seconds; flush rows are shared by a server's two partitions."""


def both_die_at_committing(table: SimulatedTable) -> SimulatedWorld:
    """Kill -9 of both servers when the first segment is COMMITTING, and a start ten seconds later."""
    world = SimulatedWorld(table)
    while "COMMITTING" not in statuses(world):
        world.run(10)
    for server in world.servers.values():
        server.kill()
        world.start_later(server, 10_000)
    return world


def test_the_order_in_which_states_appear() -> None:
    """COMMITTING, the next IN_PROGRESS 0.1 to 0.25 s later, DONE 0.4 to 2.6 s after COMMITTING."""
    world = SimulatedWorld(LIKE_IT)
    world.run(MINUTE)
    partition = [entry for entry in world.zookeeper.history if entry[1].partition == 0]
    seen = [(name.sequence, status) for _, name, status in partition][:4]
    assert seen == [
        (0, SegmentStatus.IN_PROGRESS),
        (0, SegmentStatus.COMMITTING),
        (1, SegmentStatus.IN_PROGRESS),
        (0, SegmentStatus.DONE),
    ]
    committing, following, done = (at for at, _, _ in partition[1:4])
    assert following - committing <= 250
    assert 400 <= done - committing <= 2_600
    limits = {node.limit for node in world.zookeeper.nodes.values()}
    assert limits == {15_000}


def test_two_hundred_thousand_rows_are_twelve_segments_done() -> None:
    world = SimulatedWorld(LIKE_IT)
    world.run(MINUTE)
    assert statuses(world).count("DONE") == 12
    assert statuses(world).count("IN_PROGRESS") == 2
    always(world)


def test_the_committer_killed_leaves_committing_though_it_is_online_on_both() -> None:
    """Until an upload is asked for when it is older than five minutes: then DONE."""
    world = SimulatedWorld(LIKE_IT, [Strike(Point.BEFORE_END, back_after_ms=10_000)])
    world.run(2 * MINUTE)
    stuck = [n for n, node in world.zookeeper.nodes.items() if node.status is SegmentStatus.COMMITTING]
    assert stuck
    assert all(set(world.helix.external[name].values()) == {"ONLINE"} for name in stuck)
    assert all(server.loaded[name].docs == 15_000 for server in world.servers.values() for name in stuck)
    world.upload(stuck)
    world.run(10_000)
    assert statuses(world).count("COMMITTING") == len(stuck), "too young: 200, and nothing happens"
    world.run(5 * MINUTE)
    world.upload(stuck)
    world.run(10_000)
    assert "COMMITTING" not in statuses(world)


def test_both_killed_serve_no_table_for_ten_minutes() -> None:
    """STARTING for `pauseless.download.timeoutSeconds`; the validation does nothing: OFFLINE, not ERROR."""
    world = both_die_at_committing(LIKE_IT)
    world.run(3 * MINUTE)
    world.validate()
    world.run(MINUTE)
    assert not any(server.ready for server in world.servers.values())
    assert world.zookeeper.nodes[first(world)].status is SegmentStatus.COMMITTING
    world.run(8 * MINUTE)
    assert all(server.ready for server in world.servers.values())


def test_both_killed_with_a_short_wait_are_in_error_and_validation_reads_the_segments_again() -> None:
    """Ready after about a minute; both segments in ERROR on both; re-ingested in seconds."""
    world = both_die_at_committing(with_settings(LIKE_IT, download_timeout_s=15))
    world.run(90_000)
    assert all(server.ready for server in world.servers.values())
    stuck = [n for n, node in world.zookeeper.nodes.items() if node.status is SegmentStatus.COMMITTING]
    assert stuck
    assert all(set(world.helix.external[name].values()) == {"ERROR"} for name in stuck)
    world.validate()
    world.run(20_000)
    assert all(world.zookeeper.nodes[name].status is SegmentStatus.DONE for name in stuck)
    assert all(set(world.helix.external[name].values()) == {"ONLINE"} for name in stuck)
    always(world)


@pytest.mark.parametrize("forced", [False, True])
def test_a_store_made_unwritable_leaves_urls_empty_until_uploads_are_asked_for(forced: bool) -> None:
    world = SimulatedWorld(LIKE_IT, [StoreOutage(0, 30_000)])
    world.run(40_000)
    done = [name for name, node in world.zookeeper.nodes.items() if node.status is SegmentStatus.DONE]
    assert len(done) == 12
    assert {world.zookeeper.nodes[name].url for name in done} == {""}
    assert "ERROR" not in {state for states in world.helix.external.values() for state in states.values()}
    (world.force_upload if forced else world.upload)(done)
    world.run(MINUTE)
    repaired = {world.zookeeper.nodes[name].url == name for name in done}
    assert repaired == {forced}, "within 300 s only forced uploads happen"


def test_a_get_of_periodictask_run_skips_the_segment_level_part() -> None:
    cluster = ClusterSettings(version="1.5.1")
    world = SimulatedWorld(replace(LIKE_IT, cluster=cluster), [StoreOutage(0, 30_000)])
    world.run(10 * MINUTE)
    world.validate()
    world.run(MINUTE)
    assert "" in {node.url for node in world.zookeeper.nodes.values()}
    world.validate_segments()
    world.run(MINUTE)
    assert "" not in {node.url for node in world.zookeeper.nodes.values()}
    assert world.env.now - BEGAN_MS == 12 * MINUTE
