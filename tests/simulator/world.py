"""A REALTIME table's cluster: controllers, servers, ZooKeeper, Helix, stream, deep store, network; and what
an operator may do to it.

One table, its real protocol, its real clocks; what is simulated is the time that work takes. The modules
beside this one are its parts. Same table, faults and seed: same story, to the millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import partial

import simpy

from pinot_assets.realtime.model.state import (
    NOT_PAUSED,
    Consumption,
    LlcSegment,
    Pause,
    PauseReason,
    RealtimeState,
    Replica,
    SegmentStatus,
    TmpUpload,
)
from pinot_assets.realtime.model.state import Server as SeenServer
from pinot_assets.realtime.model.state import StreamPartition as SeenPartition
from simulator import faults as trouble
from simulator.commit import first_node
from simulator.consumer import State
from simulator.controller import Controller
from simulator.faults import Actor, Fault, Faults, Message, Network
from simulator.server import Server
from simulator.store import TMP, DeepStore
from simulator.stream import StreamPartition
from simulator.tables import BEGAN_MS, SimulatedTable
from simulator.validation import ask_to_reingest, lacks_copy, upload_missing, validate
from simulator.zookeeper import CONSUMING, Helix, Node, Placement, Steps, ZooKeeper


class SimulatedWorld:
    """A table and its cluster, from the table's creation on.

    :param troubles: what goes wrong.
    :param seed: decides what Pinot leaves to chance: which peer, which replica is asked.
    :param race_ms: how long a consumer's thread is held up, COMMITTING still, after a failed commitStart. In
        the source that is an instant; a busy server loses the race of apache/pinot#17885 there.
    :ivar exceeded: the limit that is exceeded now: RESOURCE or QUOTA.
    :ivar controller_bytes: segment bytes that went through controllers.
    :ivar peer_bytes: segment bytes that servers gave to one another.
    :ivar story: what happened: time, who, what.
    """

    def __init__(
        self, table: SimulatedTable, troubles: Iterable[Fault] = (), *, seed: int = 0, race_ms: int = 0
    ) -> None:
        self.table, self.race_ms = table, race_ms
        self.chance = random.Random(seed)
        self.env = simpy.Environment(initial_time=BEGAN_MS)
        self.controller_bytes = self.peer_bytes = 0
        self.story: list[tuple[int, str, str]] = []
        self.exceeded: PauseReason | None = None
        settings, hardware = table.settings, table.hardware
        self.releases_at_build = settings.pauseless or not settings.must_be_read_in_order
        self.releases_at_download = not settings.must_be_read_in_order
        self.streams = [StreamPartition(table.stream, BEGAN_MS) for _ in range(table.stream.partitions)]
        self.zookeeper = ZooKeeper(self.env, hardware.zookeeper_ms)
        self.store = DeepStore(self.env, hardware)
        self.helix = Helix(self.env, self.zookeeper, hardware, lambda: self.lead is not None)
        self.zookeeper.changed = self.helix.wake
        self.network = Network(self.env, hardware.network_ms, self._deliver)
        self.lead: Controller | None = None
        troubles = tuple(troubles)
        strikes = [fault for fault in troubles if isinstance(fault, trouble.Strike)]
        self.faults = Faults(self.env, strikes, self.start_later)
        self.servers = {name: Server(self, name) for name in map("server-{}".format, range(table.servers))}
        names = map("controller-{}".format, range(table.controllers))
        self.controllers = {name: Controller(self, name) for name in names}
        self.lead = next(iter(self.controllers.values()))
        self._arrange(troubles)
        self.env.process(self._create())

    # --- the table ---------------------------------------------------------------------------------

    @property
    def partitions_per_server(self) -> int:
        """Most partitions that one server consumes: what `flush.rows` is divided by."""
        return -(-self.table.stream.partitions * self.table.settings.replication // self.table.servers)

    def assigned(self, partition: int) -> list[str]:
        """Servers that consume a partition."""
        names = list(self.servers)
        replication = self.table.settings.replication
        return [names[(partition * replication + nth) % len(names)] for nth in range(replication)]

    def _create(self) -> Steps[None]:
        """What the table's creation does: the first segment of every partition."""
        lead = next(iter(self.controllers.values()))
        nodes = [first_node(lead, partition, 0) for partition in range(len(self.streams))]
        for node in nodes:
            yield from self.zookeeper.create(node)

        def change(ideal: Placement) -> None:
            for node in nodes:
                ideal[str(node.name)] = dict.fromkeys(self.assigned(node.name.partition), CONSUMING)

        yield from self.zookeeper.update_ideal(change)

    def run(self, for_ms: float) -> None:
        """Let time pass."""
        self.env.run(until=self.env.now + for_ms)

    @property
    def elapsed_ms(self) -> int:
        """Time since the world's beginning."""
        return int(self.env.now) - BEGAN_MS

    def trace(self, who: str, what: str) -> None:
        """Note what happened."""
        self.story.append((self.elapsed_ms, who, what))

    # --- life and death ----------------------------------------------------------------------------

    def _arrange(self, troubles: tuple[Fault, ...]) -> None:
        networks = [fault for fault in troubles if isinstance(fault, trouble.BadNetwork)]
        self.network.fate = trouble.bad_luck(self.env, networks, BEGAN_MS)
        for fault in troubles:
            match fault:
                case trouble.Death():
                    self.env.process(self._die(fault))
                case trouble.ReaderFails():
                    self.env.process(self._fail_readers(fault))
                case trouble.StoreOutage(at, lasts, how):
                    fail = partial(self.store.fail, how)
                    self.env.process(trouble.for_a_while(self.env, at, lasts, fail, self.store.restore))
                case trouble.SlowZooKeeper(at, lasts, write_ms):
                    begin = partial(setattr, self.zookeeper, "write_ms", write_ms)
                    end = partial(setattr, self.zookeeper, "write_ms", self.zookeeper.write_ms)
                    self.env.process(trouble.for_a_while(self.env, at, lasts, begin, end))

    def _die(self, death: trouble.Death) -> Steps[None]:
        yield self.env.timeout(death.at_ms)
        actor = self.actor(death.actor)
        if actor.alive:
            actor.kill()
            self.start_later(actor, death.back_after_ms)

    def _fail_readers(self, fault: trouble.ReaderFails) -> Steps[None]:
        yield self.env.timeout(fault.at_ms)
        for consumer in list(self.servers[fault.server].consumers.values()):
            if not consumer.failing.triggered:
                consumer.failing.succeed()

    def actor(self, name: str) -> Server | Controller:
        """A server or controller by its name."""
        return self.servers[name] if name in self.servers else self.controllers[name]

    def start_later(self, actor: Actor, after_ms: int | None) -> None:
        """Start a dead actor again, after a while; None: not at all."""
        self.trace(actor.name, "dies")
        if after_ms is not None:
            self.env.process(self._start(self.actor(actor.name), after_ms))

    def _start(self, actor: Server | Controller, after_ms: int) -> Steps[None]:
        yield self.env.timeout(after_ms)
        if not actor.alive:
            self.trace(actor.name, "starts")
            actor.start()

    def elect(self) -> None:
        """Where no controller leads, one does when ZooKeeper has noticed; until then nobody answers."""
        if self.lead is None or not self.lead.alive:
            self.lead = None
            self.env.process(self._elect())

    def _elect(self) -> Steps[None]:
        yield self.env.timeout(self.table.hardware.session_ms)
        if self.lead is None:
            self.lead = next((c for c in self.controllers.values() if c.alive), None)
            self.helix.wake(self.zookeeper.ideal)

    def _deliver(self, message: Message) -> simpy.Event | None:
        return None if self.lead is None else self.lead.spawn(self.lead.handle(message))

    # --- what an operator does ---------------------------------------------------------------------

    def pause(self) -> None:
        """`POST /tables/{t}/pauseConsumption`."""
        self.zookeeper.pause = Pause(PauseReason.ADMINISTRATIVE, "by an operator", int(self.env.now))
        self.force_commit()

    def resume(self) -> None:
        """`POST /tables/{t}/resumeConsumption`."""
        self.zookeeper.pause = NOT_PAUSED
        self.validate()

    def force_commit(self) -> None:
        """`POST /tables/{t}/forceCommit`: a message to every server that lives."""
        for server in self.servers.values():
            for consumer in server.consumers.values():
                if not consumer.forced.triggered:
                    consumer.forced.succeed()

    def validate(self) -> None:
        """`POST /periodictask/run` of the validation manager, without the segment-level part."""
        if self.lead is not None:
            self.lead.spawn(validate(self.lead))

    def validate_segments(self) -> None:
        """The same with `runSegmentLevelValidation`."""
        if self.lead is not None:
            self.lead.segment_level_at = float("-inf")
            self.validate()

    def upload(self, names: Iterable[str]) -> None:
        """`POST /segments/{t}/uploadFromServerToDeepstore?segmentNames=…`: young segments are passed over."""
        if self.lead is not None:
            upload_missing(self.lead, [name for name in names if lacks_copy(self.lead, name)])

    def force_upload(self, names: Iterable[str]) -> None:
        """The same with `forceMode=true`: whatever is named."""
        if self.lead is not None:
            upload_missing(self.lead, names)

    def reset(self, segment: str, server: str) -> None:
        """`POST /segments/{t}/{s}/reset?targetInstance=…`."""
        self.helix.reset(segment, [server])

    def reingest(self, segment: str, server: str) -> bool:
        """`POST <server>/reingestSegment/{s}`; whether the server has taken it up."""
        return ask_to_reingest(self, server, segment)

    def restart(self, server: str) -> None:
        """Restart a server, dead or alive."""
        actor = self.servers[server]
        if actor.alive:
            actor.kill()
        self.start_later(actor, 1)

    def delete_from(self, partition: int, sequence: int) -> None:
        """`DELETE /deleteSegmentsFromSequenceNum/…` of one partition, which is to be paused."""
        self.env.process(self._delete_from(partition, sequence))

    def _delete_from(self, partition: int, sequence: int) -> Steps[None]:
        of_it = (node.name for node in self.zookeeper.nodes.values() if node.name.partition == partition)
        names = [str(name) for name in of_it if name.sequence >= sequence]

        def change(ideal: Placement) -> None:
            for name in names:
                ideal.pop(name, None)

        yield from self.zookeeper.update_ideal(change)
        for name in names:
            yield from self.zookeeper.remove(name)
            self.store.files.pop(name, None)


def realtime_state(world: SimulatedWorld) -> RealtimeState:
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
        committing_listed=zookeeper.committing,
        stream={
            number: SeenPartition(number, stream.earliest(now), stream.latest(now))
            for number, stream in enumerate(world.streams)
        },
        consumption=tuple(_consumption(world)),
        tmp_uploads=tuple(
            TmpUpload(location, tar.size_bytes, came)
            for location, (tar, came) in world.store.files.items()
            if TMP in location
        ),
    )


def _segment(world: SimulatedWorld, name: str, node: Node) -> LlcSegment:
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


def _lost(world: SimulatedWorld, name: str) -> LlcSegment:
    """A segment of the ideal state without a node."""
    _, partition, sequence, _ = name.rsplit("__", 3)
    return LlcSegment(
        name, int(partition), int(sequence), 0, None, replicas=_replicas(world, name), stored=False
    )


def _replicas(world: SimulatedWorld, name: str) -> tuple[Replica, ...]:
    ideal, external = world.zookeeper.ideal.get(name, {}), world.helix.external.get(name, {})
    return tuple(
        Replica(server, ideal.get(server), external.get(server), (name, server) in world.helix.pending)
        for server in sorted(ideal.keys() | external.keys())
    )


def _server(world: SimulatedWorld, server: Server) -> SeenServer:
    return SeenServer(
        name=server.name,
        alive=world.helix.has_session(server.name),
        ready=server.ready if server.alive else None,
        since_ms=server.since,
        admin_url=f"http://{server.name}:8097",
    )


def _consumption(world: SimulatedWorld) -> Iterator[Consumption]:
    for server in world.servers.values():
        if server.alive and server.ready:
            for name, consumer in sorted(server.consumers.items()):
                stopped = consumer.state is State.ERROR
                yield Consumption(
                    name, server.name, "NOT_CONSUMING" if stopped else "CONSUMING", consumer.reader.position()
                )
