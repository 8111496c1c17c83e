"""What the cluster remembers: segments' nodes with versions and times, the ideal state, who is paused.

A write takes time, and nothing of it happens where the writer dies before. Helix tells servers what the ideal
state asks of them, and shows with a lag what they have become. Source: docs/design/realtime.md#s4, #s5 and
#s8.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Protocol, TypeVar

import simpy

from pinot_assets.realtime.model.state import NOT_PAUSED, Pause, SegmentStatus
from simulator.tables import Hardware

T = TypeVar("T")
Steps = Generator[simpy.Event, object, T]
"""What a simulated process does, step by step."""

Placement = dict[str, dict[str, str]]
"""Segment → server → state."""


class Refused(Exception):
    """The controller's code refuses: wrong status, other version, too late, duplicate."""


@dataclass(frozen=True, slots=True)
class SegmentName:
    """`table__partition__sequence__time`."""

    table: str
    partition: int
    sequence: int
    created_ms: int

    def __str__(self) -> str:
        stamp = datetime.fromtimestamp(self.created_ms / 1000, UTC).strftime("%Y%m%dT%H%MZ")
        return f"{self.number}{stamp}"

    @property
    def number(self) -> str:
        """The name without its time: no two segments may have the same."""
        return f"{self.table}__{self.partition}__{self.sequence}__"


@dataclass(frozen=True, slots=True)
class Node:
    """Metadata of a segment.

    :ivar limit: `segment.flush.threshold.size`: rows after which it is full.
    :ivar url: None never set, empty peers only.
    """

    name: SegmentName
    start: int
    limit: int
    status: SegmentStatus = SegmentStatus.IN_PROGRESS
    end: int | None = None
    url: str | None = None
    crc: str | None = None
    size_bytes: int | None = None
    docs: int | None = None
    version: int = 0
    modified_ms: int = 0


@dataclass
class ZooKeeper:
    """The table's part of ZooKeeper.

    :ivar write_ms: how long a write takes now; a fault may raise it.
    :ivar history: every write of a node: when, which, its status then.
    :ivar changed: called with the segments whose ideal state has changed.
    """

    env: simpy.Environment
    write_ms: int
    nodes: dict[str, Node] = field(default_factory=dict)
    ideal: Placement = field(default_factory=dict)
    committing: frozenset[str] = frozenset()
    pause: Pause = NOT_PAUSED
    history: list[tuple[int, SegmentName, SegmentStatus]] = field(default_factory=list)
    changed: Callable[[Iterable[str]], None] = lambda _names: None

    def create(self, node: Node) -> Steps[None]:
        """Write a new node, or over an old one of that name."""
        yield self.env.timeout(self.write_ms)
        self._keep(node, 0)

    def write(self, node: Node, version: int | None) -> Steps[None]:
        """Write a node.

        :param version: the version that was read; None writes whatever there is, as Pinot's -1 does.
        :raises Refused: when it is another one by now, or the node is gone.
        """
        yield self.env.timeout(self.write_ms)
        current = self.nodes.get(str(node.name))
        if current is None or (version is not None and current.version != version):
            raise Refused(f"{node.name} has changed meanwhile")
        self._keep(node, current.version + 1)

    def _keep(self, node: Node, version: int) -> None:
        now = int(self.env.now)
        self.nodes[str(node.name)] = replace(node, version=version, modified_ms=now)
        self.history.append((now, node.name, node.status))

    def remove(self, name: str) -> Steps[None]:
        """Remove a node."""
        yield self.env.timeout(self.write_ms)
        self.nodes.pop(name, None)

    def update_ideal(self, change: Callable[[Placement], None]) -> Steps[None]:
        """Change the ideal state as a whole, or not at all.

        :param change: puts other states in the place of a segment's, and changes none in place.
        :raises Refused: what `change` raises.
        """
        yield self.env.timeout(self.write_ms)
        former, copy = self.ideal, dict(self.ideal)
        change(copy)
        self.ideal = copy
        self.changed(name for name in {**former, **copy} if former.get(name) is not copy.get(name))

    def list_committing(self, change: Callable[[frozenset[str]], frozenset[str]]) -> Steps[None]:
        """Change the list of committing segments, `/PAUSELESS_DEBUG_METADATA/<table>`."""
        yield self.env.timeout(self.write_ms)
        self.committing = change(self.committing)

    def age_ms(self, name: str) -> float:
        """How long ago the segment's node was written.

        :raises Refused: when it is gone.
        """
        if name not in self.nodes:
            raise Refused(f"{name} has no metadata")
        return self.env.now - self.nodes[name].modified_ms

    def latest(self) -> dict[int, Node]:
        """The newest segment's node of every partition."""
        in_order = sorted(self.nodes.values(), key=lambda node: node.name.sequence)
        return {node.name.partition: node for node in in_order}


OFFLINE: Final = "OFFLINE"
CONSUMING: Final = "CONSUMING"
ONLINE: Final = "ONLINE"
ERROR: Final = "ERROR"
DROPPED: Final = "DROPPED"


class Participant(Protocol):
    """A server, as Helix sees it."""

    name: str

    def transit(self, segment: str, now: str, then: str) -> None:
        """Begin a state transition; `Helix.became` tells its end."""


@dataclass
class Helix:
    """State transitions of all servers.

    :ivar current: what servers with a live session have become.
    :ivar external: the external view, which lags behind.
    :ivar pending: transitions that are under way.
    :ivar leads: whether a controller is there to send messages.
    :ivar forgets: segment and server of resets after which no message comes any more, until that server
        starts again (seen once on a real cluster: facts/pinot-1.5.1-cluster.md, e).
    """

    env: simpy.Environment
    zookeeper: ZooKeeper
    hardware: Hardware
    leads: Callable[[], bool]
    current: Placement = field(default_factory=dict)
    external: Placement = field(default_factory=dict)
    pending: set[tuple[str, str]] = field(default_factory=set)
    forgotten: set[tuple[str, str]] = field(default_factory=set)
    forgets: bool = False
    _sessions: dict[str, Participant] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)
    _unseen: set[str] = field(default_factory=set)
    _waking: bool = False
    _publishing: bool = False

    def joins(self, server: Participant) -> None:
        """A server has a session."""
        self._sessions[server.name] = server
        self.forgotten = {pair for pair in self.forgotten if pair[1] != server.name}
        self.wake(self.zookeeper.ideal)

    def has_session(self, name: str) -> bool:
        """Whether the cluster takes that server for alive."""
        return name in self._sessions

    def leaves(self, name: str) -> None:
        """A server's session is over."""
        self._sessions.pop(name, None)
        self.pending = {pair for pair in self.pending if pair[1] != name}
        for segment, states in self.current.items():
            if states.pop(name, None) is not None:
                self._publish(segment)

    def became(self, segment: str, server: str, state: str) -> None:
        """A transition has ended."""
        self.pending.discard((segment, server))
        states = self.current.setdefault(segment, {})
        if state == DROPPED:
            states.pop(server, None)
        else:
            states[server] = state
        self._publish(segment)
        self.wake([segment])

    def reset_errors(self, segment: str, servers: Iterable[str]) -> None:
        """ERROR becomes OFFLINE; other states stay (`HelixAdmin.resetPartition`)."""
        for server in servers:
            if self.current.get(segment, {}).get(server) == ERROR and server in self._sessions:
                if self.forgets:
                    self.forgotten.add((segment, server))
                self.became(segment, server, OFFLINE)

    def reset(self, segment: str, servers: Iterable[str]) -> None:
        """Every state becomes OFFLINE, a healthy replica's too (`resetPartitionAllState`)."""
        for server in servers:
            state, pair = self.current.get(segment, {}).get(server, OFFLINE), (segment, server)
            if state == ERROR:
                self.reset_errors(segment, [server])
            elif state != OFFLINE and server in self._sessions and pair not in self.pending:
                self.pending.add(pair)
                self._sessions[server].transit(segment, state, OFFLINE)

    def wake(self, segments: Iterable[str]) -> None:
        """Compare these segments' ideal and current states soon."""
        self._changed.update(segments)
        if not self._waking:
            self._waking = True
            self.env.process(self._compare())

    def _compare(self) -> Steps[None]:
        yield self.env.timeout(self.hardware.helix_ms)
        self._waking = False
        if not self.leads():
            return
        changed, self._changed = sorted(self._changed), set()
        for segment, server, state, then in list(self._due(changed)):
            self.pending.add((segment, server))
            self._sessions[server].transit(segment, state, then)

    def _due(self, segments: Iterable[str]) -> Iterable[tuple[str, str, str, str]]:
        ideal = self.zookeeper.ideal
        for segment in segments:
            desired, has = ideal.get(segment, {}), self.current.get(segment, {})
            for server in sorted(desired.keys() | has.keys()):
                pair = (segment, server)
                if server not in self._sessions or pair in self.pending or pair in self.forgotten:
                    continue
                state, target = has.get(server, OFFLINE), desired.get(server, DROPPED)
                if state not in (target, ERROR):
                    yield segment, server, state, _next(state, target)

    def _publish(self, segment: str) -> None:
        self._unseen.add(segment)
        if not self._publishing:
            self._publishing = True
            self.env.process(self._show())

    def _show(self) -> Steps[None]:
        yield self.env.timeout(self.hardware.external_view_ms)
        self._publishing = False
        for segment in self._unseen:
            states = dict(self.current.get(segment, {}))
            self.external[segment] = states
            if not states:
                del self.external[segment]
        self._unseen.clear()


def _next(state: str, target: str) -> str:
    """The next state on the way: from ONLINE one goes everywhere over OFFLINE."""
    is_far = (state != OFFLINE and target == DROPPED) or (state == ONLINE and target == CONSUMING)
    return OFFLINE if is_far else target
