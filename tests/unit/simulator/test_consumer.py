"""Replicas that stopped at different offsets."""

from __future__ import annotations

from dataclasses import replace

from fakes.realtime.simulated_truth import always
from simulator.faults import BadNetwork, Fate, Point, Strike
from simulator.protocol import CompletionStatus, MessageKind
from simulator.tables import BYPASS, MINUTE, Hardware, SimulatedTable, first, talk
from simulator.world import SimulatedWorld

from pinot_assets.realtime.model.state import SegmentStatus


def behind(server: str) -> SimulatedTable:
    """That server gets every message five seconds later than the other; Helix is slow."""
    stream = replace(BYPASS.stream, late_ms={server: 5_000})
    return replace(BYPASS, stream=stream, hardware=Hardware(helix_ms=20_000))


def told(world: SimulatedWorld, server: str) -> list[CompletionStatus]:
    """What a server that asked about the first segment was told."""
    heard = talk(world, first(world))
    return [r.answer for _, m, r in heard if m.kind is MessageKind.CONSUMED and m.server == server]


def test_one_that_is_behind_catches_up_and_commits_when_the_winner_dies() -> None:
    world = SimulatedWorld(behind("server-1"), [Strike(Point.DURING_BUILD, back_after_ms=None)])
    world.run(40_000)
    world.force_commit()
    world.run(5 * MINUTE)
    assert CompletionStatus.CATCH_UP in told(world, "server-1")
    node = world.zookeeper.nodes[first(world)]
    assert (node.status, node.end) == (SegmentStatus.DONE, 40_000), "as far as the winner was"
    always(world)


def test_one_that_is_ahead_of_what_was_committed_discards_its_rows_and_downloads() -> None:
    """It is not heard when the winner is chosen."""
    lost = BadNetwork(39_000, 2_000, Fate(lost=True), frozenset({MessageKind.CONSUMED}), every=2)
    world = SimulatedWorld(behind("server-0"), [lost])
    world.run(40_000)
    world.force_commit()
    world.run(20_000)
    assert told(world, "server-1") == [CompletionStatus.DISCARD]
    assert first(world) not in world.servers["server-1"].disk, "nothing is built of them"
    world.run(2 * MINUTE)
    assert world.helix.external[first(world)] == {"server-0": "ONLINE", "server-1": "ONLINE"}
    always(world)


def test_one_that_does_not_reach_the_end_within_31_s_downloads() -> None:
    world = SimulatedWorld(replace(BYPASS, stream=replace(BYPASS.stream, late_ms={"server-1": 45_000})))
    world.run(3 * MINUTE)
    assert world.servers["server-1"].loaded[first(world)].docs == 60_000
    always(world)
