"""RealtimeSegmentValidationManager: what Pinot mends by itself, every hour and every day.

Source: `RealtimeSegmentValidationManager` and `PinotLLCRealtimeSegmentManager` of release-1.5.1;
docs/design/realtime.md#s7.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS, reingests
from pinot_assets.realtime.model.state import NOT_PAUSED, Pause, PauseReason, SegmentStatus
from simulator.backfill import lacks_copy, upload_missing
from simulator.commit import begin_next, first_node, next_node
from simulator.helix import CONSUMING, ERROR, OFFLINE, ONLINE
from simulator.reingestion import ask_to_reingest
from simulator.zookeeper import Node, Placement, Refused, Steps

if TYPE_CHECKING:
    from simulator.controller import Controller


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
    wanted = node.start if offline or node.end is None else node.end
    return max(wanted, earliest)


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
        committing = {
            name for name, n in world.zookeeper.nodes.items() if n.status is SegmentStatus.COMMITTING
        }
        yield from world.zookeeper.list_committing(lambda names: _replace(names, committing))
    if world.table.settings.pauseless or world.table.cluster.deep_store_upload_retry:
        upload_missing(controller, [name for name in world.zookeeper.nodes if lacks_copy(controller, name)])


def _replace(names: set[str], by: Iterable[str]) -> None:
    names.clear()
    names.update(by)


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
