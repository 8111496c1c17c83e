"""A world as health and the repair planner see it: what REST, ZooKeeper and the stream would say now."""

from __future__ import annotations

from collections.abc import Iterator

from pinot_assets.realtime.model.state import (
    Consumption,
    LlcSegment,
    RealtimeState,
    Replica,
    SegmentStatus,
    StreamPartition,
    TmpUpload,
)
from pinot_assets.realtime.model.state import Server as SeenServer
from simulator.consumer import State
from simulator.server import Server
from simulator.store import TMP
from simulator.world import World
from simulator.zookeeper import Node


def realtime_state(world: World) -> RealtimeState:
    """The world's table at this moment."""
    now, zookeeper = int(world.env.now), world.zookeeper
    stored = (_segment(world, name, node) for name, node in zookeeper.nodes.items())
    lost = (_lost(world, name) for name in zookeeper.ideal if name not in zookeeper.nodes)
    return RealtimeState(
        table=world.table.with_type,
        read_ms=now,
        settings=world.table.settings,
        cluster=world.table.cluster,
        segments=(*stored, *lost),
        servers={name: _server(world, server) for name, server in world.servers.items()},
        pause=zookeeper.pause,
        committing_listed=frozenset(zookeeper.committing),
        stream={
            number: StreamPartition(number, stream.earliest(now), stream.latest(now))
            for number, stream in enumerate(world.streams)
        },
        consumption=tuple(_consumption(world)),
        tmp_uploads=tuple(
            TmpUpload(location, tar.size_bytes, came)
            for location, (tar, came) in world.store.files.items()
            if TMP in location
        ),
    )


def _segment(world: World, name: str, node: Node) -> LlcSegment:
    return LlcSegment(
        name=name,
        partition=node.name.partition,
        sequence=node.name.sequence,
        created_ms=node.name.created_ms,
        status=node.status,
        start_offset=str(node.start),
        end_offset=None if node.end is None else str(node.end),
        url=node.url,
        crc=node.crc,
        size_bytes=node.size_bytes,
        total_docs=node.docs,
        modified_ms=node.modified_ms,
        end_time_ms=node.modified_ms if node.status is not SegmentStatus.IN_PROGRESS else None,
        replicas=_replicas(world, name),
    )


def _lost(world: World, name: str) -> LlcSegment:
    """A segment of the ideal state without a node."""
    _, partition, sequence, _ = name.rsplit("__", 3)
    return LlcSegment(
        name, int(partition), int(sequence), 0, None, replicas=_replicas(world, name), stored=False
    )


def _replicas(world: World, name: str) -> tuple[Replica, ...]:
    ideal, external = world.zookeeper.ideal.get(name, {}), world.helix.external.get(name, {})
    return tuple(
        Replica(server, ideal.get(server), external.get(server), (name, server) in world.helix.pending)
        for server in sorted(ideal.keys() | external.keys())
    )


def _server(world: World, server: Server) -> SeenServer:
    return SeenServer(
        name=server.name,
        alive=world.helix.has_session(server.name),
        ready=server.ready if server.alive else None,
        since_ms=server.since,
        admin_url=f"http://{server.name}:8097",
    )


def _consumption(world: World) -> Iterator[Consumption]:
    for server in world.servers.values():
        if server.alive and server.ready:
            for name, consumer in sorted(server.consumers.items()):
                stopped = consumer.state is State.ERROR
                yield Consumption(
                    name,
                    server.name,
                    "NOT_CONSUMING" if stopped else "CONSUMING",
                    consumer.reader.position(),
                )
