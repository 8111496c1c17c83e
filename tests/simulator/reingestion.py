"""A segment that nobody has any more is read from the stream again, by one server.

Source: `ReingestionResource`, `StatelessRealtimeSegmentWriter` of release-1.5.1;
docs/design/realtime.md#s7. Where the stream has forgotten offsets, reading jumps behind them: the segment
comes out short, without an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pinot_assets.realtime.model.state import SegmentStatus
from simulator.building import to_store
from simulator.reading import Reader
from simulator.rows import Built
from simulator.store import StoreFailed
from simulator.zookeeper import Node, Refused, Steps

if TYPE_CHECKING:
    from simulator.server import Server
    from simulator.world import World

LONGEST_MS: Final = 1_800_000
POLL_MS: Final = 5_000


def ask_to_reingest(world: World, server: str, name: str) -> bool:
    """`POST /reingestSegment/<segment>` at a server.

    :returns: whether it was taken up; refused where the server is dead, the URL is set, or it runs already.
    """
    chosen, node = world.servers[server], world.zookeeper.nodes.get(name)
    if not chosen.alive or node is None or node.url is not None or node.end is None:
        return False
    if name in chosen.reingesting:
        return False
    chosen.reingesting.add(name)
    chosen.spawn(_reingest(chosen, node))
    return True


def _reingest(server: Server, node: Node) -> Steps[None]:
    name = str(node.name)
    try:
        tar = yield from _read_again(server, node)
        yield from _deliver(server, node, tar)
    except (Refused, StoreFailed) as error:
        server.world.trace(server.name, f"re-ingestion of {name}: {error}")
    finally:
        server.reingesting.discard(name)


def _read_again(server: Server, node: Node) -> Steps[Built]:
    world, end = server.world, node.end
    if end is None:
        raise Refused("the segment has no end")
    stream = world.streams[node.name.partition]
    reader = Reader(server.env, stream, world.table.hardware.read_rows_per_s, node.start)
    began = server.env.now
    yield from reader.until(end, began + LONGEST_MS)
    if reader.offset < end:
        raise Refused("not read within half an hour")
    # The writer looks every five seconds whether the reader is through.
    yield server.env.timeout(POLL_MS - (server.env.now - began) % POLL_MS)
    rows = tuple((first, min(last, end)) for first, last in reader.rows if first < end)
    tar = Built(str(node.name), node.start, end, rows, world.table.hardware.bytes_per_row)
    with server.build_slots.request() as slot:
        yield slot
        yield server.env.timeout(50 + tar.docs * 1000 // world.table.hardware.build_rows_per_s)
    return tar


def _deliver(server: Server, node: Node, tar: Built) -> Steps[None]:
    """Upload, then `POST /segments/reingested`: a versioned write, and a reset of all replicas."""
    world, name = server.world, str(node.name)
    location = yield from to_store(server, tar, world.table.cluster.upload_timeout_ms)
    if location is None:
        raise StoreFailed("the deep store did not take it")
    found = world.zookeeper.nodes.get(name)
    if found is None or found.status is not SegmentStatus.COMMITTING:
        raise Refused("it is not COMMITTING any more")
    url = yield from world.store.move(location, name)
    done = replace(
        found, status=SegmentStatus.DONE, url=url, crc=tar.crc, size_bytes=tar.size_bytes, docs=tar.docs
    )
    yield from world.zookeeper.write(done, found.version)
    world.helix.reset(name, world.zookeeper.ideal.get(name, {}))
