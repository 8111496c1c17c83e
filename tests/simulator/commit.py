"""What a commit writes: the segment's node, the next segment's node, the ideal state; in this order.

A controller that dies between two of them leaves what validation has to mend. Source:
`PinotLLCRealtimeSegmentManager` of release-1.5.1; docs/design/realtime.md#s4 and #s5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS
from pinot_assets.realtime.model.state import SegmentStatus
from pinot_assets.sizing.load import Flushed
from simulator.building import PEER
from simulator.faults import Point
from simulator.helix import CONSUMING, ONLINE
from simulator.network import Message
from simulator.protocol import Reason
from simulator.zookeeper import Node, Placement, Refused, SegmentName, Steps

if TYPE_CHECKING:
    from simulator.controller import Controller


def take_place(controller: Controller, message: Message) -> Steps[str]:
    """Move the uploaded tar to its final place, and remove the segment's other uploads.

    :returns: the download URL: empty where only servers have it.
    :raises StoreFailed: when the store refuses.
    """
    location = message.location
    if location is None:
        raise Refused("a commit's end names a location")
    if location.startswith(PEER):
        return ""
    url = yield from controller.world.store.move(location, message.segment)
    controller.world.store.remove_strays(message.segment)
    return url


def commit_done(controller: Controller, message: Message, url: str) -> Steps[None]:
    """A blocking commit: IN_PROGRESS to DONE, and the next segment begins.

    :raises Refused: wrong status, another writer, or a step that came too late.
    """
    node = _node(controller, message.segment)
    if node.status is not SegmentStatus.IN_PROGRESS:
        raise Refused(f"{message.segment} is {node.status}, not IN_PROGRESS")
    yield from _three_steps(controller, _done(node, message, url), node.version, message)


def commit_start(controller: Controller, message: Message) -> Steps[None]:
    """A pauseless commitStart: IN_PROGRESS to COMMITTING, and the next segment begins.

    :raises Refused: wrong status or another writer.
    """
    yield from controller.world.zookeeper.list_committing(lambda names: names.add(message.segment))
    node = _node(controller, message.segment)
    if node.status is not SegmentStatus.IN_PROGRESS:
        raise Refused(f"{message.segment} is {node.status}, not IN_PROGRESS")
    committing = replace(node, status=SegmentStatus.COMMITTING, end=message.offset)
    yield from _three_steps(controller, committing, node.version, message)


def finish_pauseless(controller: Controller, message: Message, url: str) -> Steps[None]:
    """A pauseless commitEnd: COMMITTING to DONE.

    :raises Refused: after 300 s, wrong status, or another writer.
    """
    if controller.world.zookeeper.age_ms(message.segment) > COMPLETION_WINDOW_MS:
        raise Refused("the commit took longer than 300 s")
    node = _node(controller, message.segment)
    if node.status is not SegmentStatus.COMMITTING:
        raise Refused(f"{message.segment} is {node.status}, not COMMITTING")
    done = _done(node, message, url)
    yield from controller.world.zookeeper.write(done, node.version)
    yield from controller.world.zookeeper.list_committing(lambda names: names.discard(message.segment))
    controller.row_limit.learn(_flushed(controller, done, message))


def _three_steps(controller: Controller, node: Node, version: int, message: Message) -> Steps[None]:
    zookeeper, faults = controller.world.zookeeper, controller.world.faults
    yield from zookeeper.write(node, version)
    faults.reached(Point.AFTER_STEP_1, controller)
    following: Node | None = None
    if not zookeeper.pause.whole:
        following = next_node(controller, node, message.offset, _flushed(controller, node, message))
        yield from zookeeper.create(following)
    faults.reached(Point.AFTER_STEP_2, controller)
    try:
        yield from zookeeper.update_ideal(_completion(controller, str(node.name), following))
    except Refused:
        if following is not None:
            yield from zookeeper.remove(str(following.name))
        raise
    faults.reached(Point.AFTER_STEP_3, controller)
    if following is not None and str(following.name) not in zookeeper.ideal:
        yield from zookeeper.remove(str(following.name))


def _completion(controller: Controller, name: str, following: Node | None) -> Callable[[Placement], None]:
    def change(ideal: Placement) -> None:
        # The limit of 300 s is checked under the ideal state's lock.
        if controller.world.zookeeper.age_ms(name) > COMPLETION_WINDOW_MS:
            raise Refused("the ideal state would be changed later than 300 s after the segment's node")
        begin_next(controller, ideal, name, None if controller.world.zookeeper.pause.whole else following)

    return change


def begin_next(controller: Controller, ideal: Placement, name: str | None, following: Node | None) -> None:
    """In the ideal state: the committed segment goes ONLINE, the next one CONSUMING.

    :raises Refused: when the committed one is not CONSUMING, or another segment has that number already.
    """
    if name is not None:
        states = ideal.get(name, {})
        if CONSUMING not in states.values():
            raise Refused(f"no replica of {name} is CONSUMING in the ideal state")
        ideal[name] = dict.fromkeys(states, ONLINE)
    if following is not None:
        number = following.name.number
        if any(name.startswith(number) for name in ideal):
            raise Refused(f"{following.name} is a duplicate")
        servers = controller.world.assigned(following.name.partition)
        ideal[str(following.name)] = dict.fromkeys(servers, CONSUMING)


def next_node(controller: Controller, node: Node, start: int, flushed: Flushed | None) -> Node:
    """Metadata of the segment that follows; its row limit takes in what is known of the former."""
    if flushed is not None:
        controller.row_limit.learn(flushed)
    name = replace(node.name, sequence=node.name.sequence + 1, created_ms=int(controller.env.now))
    return Node(name, start, controller.row_limit.next())


def first_node(controller: Controller, partition: int, start: int) -> Node:
    """Metadata of a partition's first segment."""
    name = SegmentName(controller.world.table.name, partition, 0, int(controller.env.now))
    return Node(name, start, controller.row_limit.next())


def _done(node: Node, message: Message, url: str) -> Node:
    tar = message.tar
    if tar is None:
        raise Refused("a commit's end carries the segment's metadata")
    return replace(
        node,
        status=SegmentStatus.DONE,
        end=message.offset,
        url=url,
        crc=tar.crc,
        size_bytes=tar.size_bytes,
        docs=tar.docs,
    )


def _flushed(controller: Controller, node: Node, message: Message) -> Flushed:
    return Flushed(
        node.limit,
        controller.env.now - node.name.created_ms,
        node.docs,
        node.size_bytes,
        forced=message.reason is Reason.FORCE_COMMIT,
    )


def _node(controller: Controller, name: str) -> Node:
    node = controller.world.zookeeper.nodes.get(name)
    if node is None:
        raise Refused(f"{name} has no metadata")
    return node
