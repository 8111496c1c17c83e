"""A server: what it has loaded and on disk, what it consumes, and how it follows Helix.

Source: `RealtimeTableDataManager` and `BaseTableDataManager` of release-1.5.1; docs/design/realtime.md#s5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import simpy

from pinot_assets.realtime.model.state import SegmentStatus
from simulator import zookeeper
from simulator.consumer import BuildFailed, Consumer
from simulator.faults import Actor
from simulator.store import DownloadFailed, download
from simulator.stream import Built
from simulator.zookeeper import DROPPED, ERROR, OFFLINE, Node, Refused, Steps

if TYPE_CHECKING:
    from simulator.world import SimulatedWorld

READY_POLL_MS = 1_000


class Server(Actor):
    """One server.

    :ivar loaded: segments that it answers queries from and gives to peers.
    :ivar disk: segments on its disk, which outlive its death.
    :ivar consumers: segments that it consumes, or has consumed and not yet replaced.
    :ivar ready: whether it has passed its start-up; until then it serves no table.
    """

    def __init__(self, world: SimulatedWorld, name: str) -> None:
        super().__init__(world.env, name)
        self.world = world
        self.disk: dict[str, Built] = {}
        self._session_ends = world.env.now
        self._begin_anew()
        self.ready = True
        world.helix.joins(self)

    def _begin_anew(self) -> None:
        self.loaded: dict[str, Built] = {}
        self.consumers: dict[str, Consumer] = {}
        self.reingesting: set[str] = set()
        self.ready = False
        self.build_slots = simpy.Resource(self.env, self.world.table.hardware.build_slots)
        self._locks: dict[str, simpy.Resource] = {}
        self._turns: dict[int, simpy.Resource] = {}

    def lock(self, segment: str) -> simpy.Resource:
        """The segment's lock: Helix's thread and the consumer's take turns."""
        return self._locks.setdefault(segment, simpy.Resource(self.env))

    def turns(self, partition: int) -> simpy.Resource:
        """The partition's consumer semaphore: one segment of it is read at a time."""
        return self._turns.setdefault(partition, simpy.Resource(self.env))

    # --- life --------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Die as by kill -9. Memory is lost; ZooKeeper notices when the session times out."""
        super().kill()
        self._begin_anew()
        self._session_ends = self.env.now + self.world.table.hardware.session_ms
        self.env.process(self._end_session(self.since))

    def _end_session(self, died: int) -> Steps[None]:
        yield self.env.timeout(self._session_ends - self.env.now)
        if self.since == died or self.alive:
            self.world.helix.leaves(self.name)

    def start(self) -> None:
        """Start again. A new session begins when the old one has ended."""
        self.alive = True
        self.since = int(self.env.now)
        self.spawn(self._start_up())

    def _start_up(self) -> Steps[None]:
        hardware = self.world.table.hardware
        wait = max(hardware.startup_ms, self._session_ends - self.env.now + 1)
        yield self.env.timeout(wait)
        self.world.helix.joins(self)
        deadline = self.env.now + self.world.table.cluster.startup_timeout_s * 1000
        while self.env.now < deadline and not self._settled():
            yield self.env.timeout(READY_POLL_MS)
        self.ready = True

    def _settled(self) -> bool:
        """Whether every replica of its own is where the ideal state wants it, or has failed."""
        current, ideal = self.world.helix.current, self.world.zookeeper.ideal
        mine = ((name, states[self.name]) for name, states in ideal.items() if self.name in states)
        return all(current.get(name, {}).get(self.name, OFFLINE) in (state, ERROR) for name, state in mine)

    # --- what Helix asks ---------------------------------------------------------------------------

    def transit(self, segment: str, now: str, then: str) -> None:
        """Begin a state transition; a message to a dead server waits until its session is over."""
        if self.alive:
            self.spawn(self._transit(segment, now, then))

    def _transit(self, segment: str, now: str, then: str) -> Steps[None]:
        with self.lock(segment).request() as turn:
            yield turn
            try:
                match then:
                    case zookeeper.CONSUMING:
                        self._consume(segment)
                    case zookeeper.ONLINE:
                        yield from self._go_online(segment)
                    case _:
                        yield from self._go_offline(segment)
                became = then
            except (DownloadFailed, BuildFailed, Refused):
                became = ERROR
        if then == DROPPED:
            self.disk.pop(segment, None)
        self.world.trace(self.name, f"{segment} {now} → {became}")
        self.world.helix.became(segment, self.name, became)

    def _consume(self, segment: str) -> None:
        node = self._node(segment)
        if node.status.completed or segment in self.loaded or segment in self.consumers:
            # CONSUMING for Helix all the same; the way to ONLINE adds it.
            return
        self.disk.pop(segment, None)
        self.consumers[segment] = Consumer(self, node)

    def _go_online(self, segment: str) -> Steps[None]:
        node = self._node(segment)
        if node.status is SegmentStatus.IN_PROGRESS:
            raise Refused(f"{segment} is not committed")
        consumer, loaded = self.consumers.get(segment), self.loaded.get(segment)
        if consumer is not None:
            yield from consumer.go_online()
        elif loaded is None or (node.status.completed and node.crc != loaded.crc):
            yield from self._add(node)

    def _add(self, node: Node) -> Steps[None]:
        """Load from disk, else download. What is being committed is loaded unchecked: its CRC is unknown."""
        name = str(node.name)
        local = self.disk.get(name)
        if local is not None and (not node.status.completed or node.crc == local.crc):
            self.load(local)
        else:
            self.load((yield from download(self, name)))

    def _go_offline(self, segment: str) -> Steps[None]:
        consumer = self.consumers.pop(segment, None)
        if consumer is not None:
            yield from consumer.stop()
            consumer.release()
        self.loaded.pop(segment, None)

    def _node(self, segment: str) -> Node:
        node = self.world.zookeeper.nodes.get(segment)
        if node is None:
            raise Refused(f"{segment} has no metadata")
        return node

    def load(self, built: Built) -> None:
        """Serve a built or downloaded segment, in the place of the consuming one."""
        self.disk[built.name] = built
        self.loaded[built.name] = built
        self.consumers.pop(built.name, None)
