"""Actors and the messages between them, and what goes wrong: at a time, or at a point of the protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import simpy

from pinot_assets.sizing.load import Outage
from simulator.protocol import NOT_SENT, REQUEST_TIMEOUT_MS, MessageKind, Reason, Reply
from simulator.stream import Built
from simulator.zookeeper import Steps, T


class Died(Exception):
    """The actor died of its own step (a fault at that very point)."""


class Actor:
    """A process of the cluster: a server or a controller. What it does ends when it is killed.

    :ivar since: when it came or went last.
    """

    def __init__(self, env: simpy.Environment, name: str) -> None:
        self.env = env
        self.name = name
        self.alive = True
        self.since = int(env.now)
        self._running: set[simpy.Process] = set()

    def spawn(self, steps: Steps[T]) -> simpy.Process:
        """Do something beside; the value is None when the actor is killed before its end."""
        assert self.alive, f"{self.name} is dead, and the dead do nothing"
        process = self.env.process(self._until_killed(steps))
        self._running.add(process)
        return process

    def _until_killed(self, steps: Steps[T]) -> Steps[T | None]:
        process = self.env.active_process
        try:
            return (yield from steps)
        except (Died, simpy.Interrupt):  # killed, or ended by another step
            return None
        finally:
            if process is not None:
                self._running.discard(process)

    def kill(self) -> None:
        """Die as by kill -9: everything it does ends here."""
        self.alive = False
        self.since = int(self.env.now)
        for process in list(self._running):
            if process.is_alive and process is not self.env.active_process:
                process.interrupt()
        self._running.clear()


@dataclass(frozen=True, slots=True)
class Message:
    """What a server says.

    :ivar tar: with the upload, and as metadata with the commit's end.
    :ivar location: with the commit's end: where the tar lies, `peer://…` where only servers have it.
    """

    kind: MessageKind
    segment: str
    server: str
    offset: int
    reason: Reason | None = None
    rows: int = 0
    tar: Built | None = None
    location: str | None = None
    extra_ms: int = 0
    timeout_ms: int = REQUEST_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a message.

    :ivar late_ms: how much later than usual it arrives; past the sender's time-out it is still carried out.
    """

    lost: bool = False
    reply_lost: bool = False
    late_ms: int = 0


ARRIVES = Fate()


@dataclass
class Network:
    """Carries messages to the lead controller.

    :ivar deliver: hands a message to whom servers take for the lead; its value is None where nobody answers.
    :ivar fate: decides what becomes of each message; faults replace it.
    :ivar carried: what came through, in order, for the tests and the trace.
    """

    env: simpy.Environment
    delay_ms: int
    deliver: Callable[[Message], simpy.Event | None]
    fate: Callable[[Message], Fate] = lambda _message: ARRIVES
    carried: list[tuple[int, Message, Reply]] = field(default_factory=list)

    def ask(self, message: Message) -> Steps[Reply]:
        """Send a message and wait for the answer, not longer than its time-out."""
        answer = self.env.process(self._carry(message))
        yield answer | self.env.timeout(message.timeout_ms)
        reply = answer.value if answer.processed else None
        return reply if isinstance(reply, Reply) else NOT_SENT

    def _carry(self, message: Message) -> Steps[Reply]:
        fate = self.fate(message)
        yield self.env.timeout(self.delay_ms + fate.late_ms)
        if fate.lost:
            yield self.env.timeout(message.timeout_ms)
            return NOT_SENT
        handled = self.deliver(message)
        reply = (yield handled) if handled is not None else None
        if not isinstance(reply, Reply):
            # Refused, or reset when the controller died.
            return NOT_SENT
        self.carried.append((int(self.env.now), message, reply))
        yield self.env.timeout(message.timeout_ms if fate.reply_lost else self.delay_ms)
        return NOT_SENT if fate.reply_lost else reply


class Point(StrEnum):
    """Points at which an actor may die: the crash matrix of docs/design/realtime.md#s11."""

    BEFORE_START = "server, before commitStart"
    DURING_BUILD = "server, at the build's begin"
    DURING_UPLOAD = "server, at the upload's begin"
    BEFORE_END = "server, before commitEnd"
    AFTER_END = "server, after a successful commitEnd"
    AFTER_START = "controller, before its answer to commitStart"
    AFTER_STEP_1 = "controller, after the segment's node"
    AFTER_STEP_2 = "controller, after the next segment's node"
    AFTER_STEP_3 = "controller, after the ideal state"
    AFTER_MOVE = "controller, after the tar's move"


@dataclass(frozen=True, slots=True)
class Strike:
    """Whoever comes to that point for the `nth` time dies there.

    :ivar back_after_ms: when it starts again; None: never.
    """

    point: Point
    nth: int = 1
    back_after_ms: int | None = 60_000


@dataclass(frozen=True, slots=True)
class Death:
    """A server or controller dies at a time, counted from the world's beginning."""

    at_ms: int
    actor: str
    back_after_ms: int | None = 60_000


@dataclass(frozen=True, slots=True)
class StoreOutage:
    """The deep store is down from `at_ms` on."""

    at_ms: int
    lasts_ms: int
    how: Outage = Outage.REFUSES


@dataclass(frozen=True, slots=True)
class BadNetwork:
    """What becomes of messages in that time.

    :ivar kinds: which messages; all when empty.
    :ivar every: of these, every how manieth.
    """

    at_ms: int
    lasts_ms: int
    fate: Fate
    kinds: frozenset[MessageKind] = frozenset()
    every: int = 2


@dataclass(frozen=True, slots=True)
class SlowZooKeeper:
    """Each write takes so long in that time."""

    at_ms: int
    lasts_ms: int
    write_ms: int


@dataclass(frozen=True, slots=True)
class ReaderFails:
    """A server's readers get an exception from the stream."""

    at_ms: int
    server: str


Fault = Strike | Death | StoreOutage | BadNetwork | SlowZooKeeper | ReaderFails


@dataclass
class Faults:
    """The strikes that are still to come.

    :ivar back: starts an actor again after so many milliseconds.
    """

    env: simpy.Environment
    strikes: list[Strike]
    back: Callable[[Actor, int | None], None]
    counts: Counter[Point] = field(default_factory=Counter)

    def reached(self, point: Point, actor: Actor) -> None:
        """The actor is at that point.

        :raises Died: when it dies there.
        """
        self.counts[point] += 1
        for strike in self.strikes:
            if strike.point is point and strike.nth == self.counts[point]:
                actor.kill()
                self.back(actor, strike.back_after_ms)
                raise Died(point)


def bad_luck(env: simpy.Environment, troubles: list[BadNetwork], began: int) -> Callable[[Message], Fate]:
    """What becomes of each message, by all troubles of the network."""
    counts: Counter[int] = Counter()

    def fate(message: Message) -> Fate:
        for number, trouble in enumerate(troubles):
            now = env.now - began
            if not trouble.at_ms <= now < trouble.at_ms + trouble.lasts_ms:
                continue
            if trouble.kinds and message.kind not in trouble.kinds:
                continue
            counts[number] += 1
            if counts[number] % trouble.every == 0:
                return trouble.fate
        return ARRIVES

    return fate


def for_a_while(
    env: simpy.Environment, at_ms: int, lasts_ms: int, begin: Callable[[], None], end: Callable[[], None]
) -> Steps[None]:
    """Something begins and ends."""
    yield env.timeout(at_ms)
    begin()
    yield env.timeout(lasts_ms)
    end()
