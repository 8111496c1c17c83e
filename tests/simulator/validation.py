"""What Pinot mends by itself, every hour and every day, and when it is asked to.

A missing deep-store copy is uploaded by a server that has the segment; a segment that nobody has any more is
read from the stream again, by one server. Where the stream has forgotten offsets, reading jumps behind them:
the segment comes out short, without an error.

Source: `RealtimeSegmentValidationManager`, `PinotLLCRealtimeSegmentManager.uploadToDeepStoreIfMissing`,
`ReingestionResource` and `StatelessRealtimeSegmentWriter` of release-1.5.1;
docs/design/realtime.md#s6-backfill, #s7.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS, reingests
from pinot_assets.realtime.model.state import NOT_PAUSED, Pause, PauseReason, SegmentStatus
from simulator.commit import begin_next, first_node, next_node
from simulator.consumer import to_store
from simulator.faults import Point
from simulator.store import StoreFailed
from simulator.stream import Built, Reader
from simulator.zookeeper import CONSUMING, ERROR, OFFLINE, ONLINE, Node, Placement, Refused, Steps

if TYPE_CHECKING:
    from simulator.controller import Controller
    from simulator.server import Server
    from simulator.world import SimulatedWorld


def lacks_copy(controller: Controller, name: str) -> bool:
    """Whether Pinot uploads it unless it is forced to (`shouldSkipSegmentForDeepStoreUpload`)."""
    world = controller.world
    node, pauseless = world.zookeeper.nodes.get(name), world.table.settings.pauseless
    if node is None or (pauseless and world.zookeeper.age_ms(name) <= COMPLETION_WINDOW_MS):
        return False
    return (node.status is SegmentStatus.DONE and node.url == "") or (
        pauseless and node.status is SegmentStatus.COMMITTING
    )


def upload_missing(controller: Controller, names: Iterable[str]) -> None:
    """Queue uploads; one runs at a time, and a segment that is queued is not queued again."""
    for name in names:
        if name not in controller.uploading:
            controller.uploading.add(name)
            controller.spawn(_upload(controller, name))


def _upload(controller: Controller, name: str) -> Steps[None]:
    with controller.upload_slot.request() as turn:
        yield turn
        try:
            yield from _upload_one(controller, name)
        except (Refused, StoreFailed) as error:
            controller.world.trace(controller.name, f"upload of {name}: {error}")
        finally:
            controller.uploading.discard(name)


def _upload_one(controller: Controller, name: str) -> Steps[None]:
    world = controller.world
    node = world.zookeeper.nodes[name]
    online = sorted(s for s, state in world.helix.external.get(name, {}).items() if state == ONLINE)
    if not online:
        raise Refused("no replica is ONLINE")
    server = world.servers[world.chance.choice(online)]
    yield controller.env.timeout(world.table.hardware.network_ms)
    tar = server.loaded.get(name) if server.alive else None
    if tar is None:
        raise Refused(f"{server.name} does not have it")
    location = yield from to_store(server, tar, world.table.cluster.upload_timeout_ms)
    if location is None:
        raise Refused("the deep store did not take it")
    url = yield from world.store.move(location, name)
    world.faults.reached(Point.AFTER_MOVE, controller)
    if node.status is SegmentStatus.COMMITTING:
        # All simple fields are the server's, the status with them; the list of committing segments stays.
        node = replace(
            node,
            status=SegmentStatus.DONE,
            crc=tar.crc,
            size_bytes=tar.size_bytes,
            docs=tar.docs,
            end=tar.end,
        )
    # Whatever the node is by now: Pinot does not check its version here.
    yield from world.zookeeper.write(replace(node, url=url, crc=tar.crc), None)


LONGEST_MS: Final = 1_800_000
POLL_MS: Final = 5_000


def ask_to_reingest(world: SimulatedWorld, server: str, name: str) -> bool:
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
    current = world.zookeeper.nodes.get(name)
    if current is None or current.status is not SegmentStatus.COMMITTING:
        raise Refused("it is not COMMITTING any more")
    url = yield from world.store.move(location, name)
    done = replace(
        current, status=SegmentStatus.DONE, url=url, crc=tar.crc, size_bytes=tar.size_bytes, docs=tar.docs
    )
    yield from world.zookeeper.write(done, current.version)
    world.helix.reset(name, world.zookeeper.ideal.get(name, {}))


def validate_for_ever(controller: Controller) -> Steps[None]:
    """The periodic task; its clocks are this controller's memory."""
    table = controller.world.table
    yield controller.env.timeout(table.first_validation_ms)
    while True:
        yield from validate(controller)
        yield controller.env.timeout(table.cluster.validation_period_s * 1000)


def validate(controller: Controller) -> Steps[None]:
    """One run, with the segment-level part when that is due; nothing where another controller leads."""
    if not controller.leads:
        return
    yield from _mind_limits(controller)
    if not controller.world.zookeeper.pause.whole:
        yield from _ensure_consuming(controller)
    period = controller.world.table.cluster.segment_level_period_s * 1000
    if controller.env.now - controller.segment_level_at >= period:
        controller.segment_level_at = controller.env.now
        yield from _segment_level(controller)
    settings, cluster = controller.world.table.settings, controller.world.table.cluster
    if settings.pauseless or cluster.error_auto_reset:
        yield from _repair_errors(controller)


def _mind_limits(controller: Controller) -> Steps[None]:
    """Pause while a resource or quota limit is exceeded; an operator's pause is left alone."""
    world, zookeeper = controller.world, controller.world.zookeeper
    if zookeeper.pause.reason is PauseReason.ADMINISTRATIVE or zookeeper.pause.reason == world.exceeded:
        return
    if world.exceeded is None:
        zookeeper.pause = NOT_PAUSED
    else:
        zookeeper.pause = Pause(world.exceeded, "limit exceeded", int(controller.env.now))
        world.force_commit()
    yield controller.env.timeout(zookeeper.write_ms)


# --- every partition consumes ------------------------------------------------------------------------


def _ensure_consuming(controller: Controller) -> Steps[None]:
    latest = controller.world.zookeeper.latest()
    for partition, stream in enumerate(controller.world.streams):
        node = latest.get(partition)
        try:
            if node is None:
                first = first_node(controller, partition, stream.earliest(controller.env.now))
                yield from _begin(controller, None, first)
            else:
                yield from _mend(controller, node)
        except Refused as error:
            controller.world.trace(controller.name, f"validation: {error}")


def _mend(controller: Controller, node: Node) -> Steps[None]:
    zookeeper, name = controller.world.zookeeper, str(node.name)
    states = zookeeper.ideal.get(name)
    old_enough = zookeeper.age_ms(name) > COMPLETION_WINDOW_MS
    if states is None:
        if old_enough and node.status is SegmentStatus.IN_PROGRESS:
            yield from _place(controller, node)
    elif CONSUMING in states.values():
        after_step_1 = (
            SegmentStatus.COMMITTING if controller.world.table.settings.pauseless else SegmentStatus.DONE
        )
        if node.status is after_step_1 and old_enough and node.end is not None:
            yield from _begin(controller, name, next_node(controller, node, node.end, None))
    elif _ended(node, set(states.values())):
        yield from _begin(controller, None, next_node(controller, node, _readable(controller, node), None))


def _ended(node: Node, states: set[str]) -> bool:
    """Whether nobody consumes the partition any more."""
    return states == {OFFLINE} or (states == {ONLINE} and node.status is not SegmentStatus.IN_PROGRESS)


def _readable(controller: Controller, node: Node) -> int:
    """Where the next segment starts: at the end, or anew; behind what the stream has forgotten."""
    earliest = controller.world.streams[node.name.partition].earliest(controller.env.now)
    offline = OFFLINE in controller.world.zookeeper.ideal[str(node.name)].values()
    offset = node.start if offline or node.end is None else node.end
    return max(offset, earliest)


def _begin(controller: Controller, name: str | None, following: Node) -> Steps[None]:
    """Create the next segment, then place it."""
    zookeeper = controller.world.zookeeper
    yield from zookeeper.create(following)

    def change(ideal: Placement) -> None:
        if not zookeeper.pause.whole:
            begin_next(controller, ideal, name, following)

    yield from zookeeper.update_ideal(change)


def _place(controller: Controller, node: Node) -> Steps[None]:
    """A segment has a node but no place: its predecessor goes ONLINE, it goes CONSUMING."""

    def change(ideal: Placement) -> None:
        nodes = controller.world.zookeeper.nodes
        former = (
            name
            for name, states in ideal.items()
            if CONSUMING in states.values() and nodes[name].name.partition == node.name.partition
        )
        begin_next(controller, ideal, next(former, None), node)

    yield from controller.world.zookeeper.update_ideal(change)


# --- segments ----------------------------------------------------------------------------------------


def _segment_level(controller: Controller) -> Steps[None]:
    world = controller.world
    if world.table.settings.pauseless:
        nodes = world.zookeeper.nodes.items()
        committing = frozenset(name for name, node in nodes if node.status is SegmentStatus.COMMITTING)
        yield from world.zookeeper.list_committing(lambda _: committing)
    if world.table.settings.pauseless or world.table.cluster.deep_store_upload_retry:
        upload_missing(controller, [name for name in world.zookeeper.nodes if lacks_copy(controller, name)])


def _repair_errors(controller: Controller) -> Steps[None]:
    world = controller.world
    table = world.table
    if table.settings.pauseless and not reingests(table.settings, table.cluster):
        # Nothing at all is reset then, not even a DONE segment with one bad replica.
        return
    for name, states in list(world.helix.external.items()):
        node = world.zookeeper.nodes.get(name)
        if ERROR not in states.values() or node is None or name not in world.zookeeper.ideal:
            continue
        everywhere = set(states.values()) == {ERROR}
        yield controller.env.timeout(table.hardware.network_ms)
        if node.status is SegmentStatus.COMMITTING and everywhere:
            # Any replica of the ideal state, alive or not: one try in a run.
            ask_to_reingest(world, world.chance.choice(sorted(world.zookeeper.ideal[name])), name)
        elif node.status is not SegmentStatus.IN_PROGRESS or everywhere:
            world.helix.reset(name, states)
