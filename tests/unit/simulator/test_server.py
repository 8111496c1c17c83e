"""A server has the very segment that was committed, or gets it."""

from __future__ import annotations

from dataclasses import replace

from simulator.stream import Built
from simulator.tables import BYPASS, MINUTE, first
from simulator.world import SimulatedWorld

from pinot_assets.realtime.model.state import SegmentStatus


def committed(world: SimulatedWorld) -> str:
    """The first segment, which every server has loaded."""
    world.run(90_000)
    name = first(world)
    assert world.zookeeper.nodes[name].status is SegmentStatus.DONE
    assert all(name in server.loaded for server in world.servers.values())
    return name


def other_than(built: Built) -> Built:
    """A copy of that segment with a row less."""
    return replace(built, rows=((built.start, built.end - 1),))


def test_another_copy_on_the_disk_is_replaced_at_the_start() -> None:
    world = SimulatedWorld(BYPASS)
    name = committed(world)
    server = world.servers["server-1"]
    server.disk[name] = other_than(server.disk[name])
    world.restart("server-1")
    world.run(2 * MINUTE)
    assert server.loaded[name].crc == world.zookeeper.nodes[name].crc


def test_another_copy_that_is_loaded_is_replaced_when_helix_says_online() -> None:
    world = SimulatedWorld(BYPASS)
    name = committed(world)
    server = world.servers["server-1"]
    server.load(other_than(server.loaded[name]))
    server.transit(name, "CONSUMING", "ONLINE")
    world.run(MINUTE)
    assert server.loaded[name].crc == world.zookeeper.nodes[name].crc
