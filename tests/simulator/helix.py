"""Helix: tells servers what the ideal state asks of them, and shows with a lag what they have become."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

import simpy

from simulator.timing import Hardware
from simulator.zookeeper import Placement, Steps, ZooKeeper

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
            wanted, has = ideal.get(segment, {}), self.current.get(segment, {})
            for server in sorted(wanted.keys() | has.keys()):
                pair = (segment, server)
                if server not in self._sessions or pair in self.pending or pair in self.forgotten:
                    continue
                state, target = has.get(server, OFFLINE), wanted.get(server, DROPPED)
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
    if target == DROPPED and state != OFFLINE:
        return OFFLINE
    if state == ONLINE and target == CONSUMING:
        return OFFLINE
    return target
