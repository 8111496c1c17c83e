"""What must hold of a simulated table, whatever went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from simulator.protocol import CompletionStatus, MessageKind
from simulator.stream import Ranges, joined, missing
from simulator.world import SimulatedWorld, realtime_state
from simulator.zookeeper import Node, Placement

from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS
from pinot_assets.realtime.model.state import SegmentStatus


def on_disks(world: SimulatedWorld, name: str) -> Ranges:
    """Rows of a segment that the deep store or some server's disk has, a dead server's included."""
    copies = [server.disk[name] for server in world.servers.values() if name in server.disk]
    copies += [tar for tar, _ in world.store.files.values() if tar.name == name]
    return joined(piece for copy in copies for piece in copy.rows)


def held_somewhere(world: SimulatedWorld, name: str) -> Ranges:
    """The same, and rows that live consumers have in memory."""
    memories = (server.consumers.get(name) for server in world.servers.values())
    read = [piece for consumer in memories if consumer is not None for piece in consumer.reader.rows]
    return joined([*on_disks(world, name), *read])


def lost_rows(world: SimulatedWorld, node: Node) -> Ranges:
    """Rows of a segment whose end is fixed that neither store, servers nor stream have."""
    if node.end is None:
        return ()
    earliest = world.streams[node.name.partition].earliest(world.env.now)
    gone = missing(held_somewhere(world, str(node.name)), node.start, node.end)
    return joined((first, min(end, earliest)) for first, end in gone)


def always(world: SimulatedWorld) -> None:
    """At any moment, with a stream that forgets nothing in the world's time."""
    ordered = sorted(world.zookeeper.nodes.values(), key=lambda n: (n.name.partition, n.name.sequence))
    for node in ordered:
        assert not lost_rows(world, node), f"{node} has lost rows"
        if node.status.completed:
            assert node.docs == (node.end or 0) - node.start, f"{node} is short"
    for before, after in pairwise(ordered):
        if before.name.partition == after.name.partition:
            assert after.name.sequence == before.name.sequence + 1, f"two or none after {before}"
            assert before.end is None or after.start == before.end, f"a gap after {before}"
    ends = [m.segment for _, m, r in world.network.carried if (m.kind, r.answer) == COMMITTED]
    assert len(ends) == len(set(ends)), "a segment was committed twice"
    one_committers_data(world)


@dataclass
class Kept:
    """What disks and the deep store have of committed segments: no step of anybody's makes it less.

    That is what is left of a row when the stream has forgotten it.
    """

    world: SimulatedWorld
    before: dict[str, Ranges] = field(default_factory=dict)

    def look(self) -> None:
        """Compare with the last look."""
        for name, node in self.world.zookeeper.nodes.items():
            if not node.status.completed:
                continue
            held = on_disks(self.world, name)
            for first, end in self.before.get(name, ()):
                gone = missing(held, first, end)
                assert not gone, f"{gone} of {name} had a copy, and have none"
            self.before[name] = held


COMMITTED = (MessageKind.END, CompletionStatus.COMMIT_SUCCESS)


def one_committers_data(world: SimulatedWorld) -> None:
    """What servers answer from is what was committed: the very rows, on every replica."""
    for server in world.servers.values():
        for name, copy in server.loaded.items():
            node = world.zookeeper.nodes[name]
            settled = world.helix.current.get(name, {}).get(server.name) == "ONLINE"
            if settled and node.status is not SegmentStatus.IN_PROGRESS:
                assert copy.rows == ((node.start, node.end),), f"{server.name} has other rows of {node}"
            if settled and node.status.completed:
                assert copy.crc == node.crc, f"{server.name} has another file than {node}"


def found_by_health(world: SimulatedWorld) -> None:
    """Every segment that is stuck is counted by the check that ought to, and nothing else is."""
    answers = {health.name: health for health in examine_state(realtime_state(world))}
    zookeeper = world.zookeeper
    old = [n for name, n in zookeeper.nodes.items() if zookeeper.age_ms(name) > COMPLETION_WINDOW_MS]
    committing = sum(node.status is SegmentStatus.COMMITTING for node in old)
    assert answers["segment_status"].numbers["stuck_committing"] == committing
    peers_only = sum(node.url == "" for node in old)
    assert answers["download_urls"].passed == (not peers_only)
    assert (
        not peers_only
        or f"{peers_only} committed segments are only on servers" in answers["download_urls"].message
    )
    errors = [name for name, states in world.helix.external.items() if "ERROR" in states.values()]
    assert answers["error_segments"].numbers["segments_in_error"] == len(errors)
    for partition, node in zookeeper.latest().items():
        states = zookeeper.ideal.get(str(node.name), {}).values()
        consumed = "CONSUMING" in states and node.status is SegmentStatus.IN_PROGRESS
        if node in old and not consumed:
            assert not answers["next_segment"].passed, f"nobody consumes partition {partition}"


OLD_MS = 1_200_000
"""Longer than a commit, its build and what it waits for."""


def all_well(world: SimulatedWorld) -> list[str]:
    """What has not been as it should be for a while; empty when all is well."""
    wrong: list[str] = []
    for name, node in world.zookeeper.nodes.items():
        if world.zookeeper.age_ms(name) <= OLD_MS:
            continue
        ideal, external = _states_of(world.zookeeper.ideal, name), _states_of(world.helix.external, name)
        if ideal != external:
            wrong.append(f"{name} is {external}, and should be {ideal}")
        if node.status is SegmentStatus.COMMITTING or node.url == "":
            wrong.append(f"{name} is not in the deep store: {node}")
    for partition, node in world.zookeeper.latest().items():
        states = world.zookeeper.ideal.get(str(node.name), {})
        if world.zookeeper.age_ms(str(node.name)) > OLD_MS and "CONSUMING" not in states.values():
            wrong.append(f"nobody consumes partition {partition}")
    return wrong


def _states_of(placement: Placement, name: str) -> dict[str, str]:
    """Without OFFLINE, which a server that has started again need not even say."""
    return {server: state for server, state in placement.get(name, {}).items() if state != "OFFLINE"}


def lag_rows(world: SimulatedWorld) -> int:
    """How far the best reader of the slowest partition is behind the stream, in rows."""
    best = [0] * len(world.streams)
    for server in world.servers.values():
        for consumer in server.consumers.values():
            partition = consumer.node.name.partition
            best[partition] = max(best[partition], consumer.reader.position())
    latest = world.streams[0].latest(world.env.now)
    return max(latest - reached for reached in best)
