"""What goes wrong in a world: at a time, or at a point of the protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import simpy

from pinot_assets.sizing.load import Outage
from simulator.actor import Actor, Died
from simulator.network import ARRIVES, Fate, Message
from simulator.protocol import MessageKind
from simulator.zookeeper import Steps


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
    seen: Counter[Point] = field(default_factory=Counter)

    def reached(self, point: Point, actor: Actor) -> None:
        """The actor is at that point.

        :raises Died: when it dies there.
        """
        self.seen[point] += 1
        for strike in self.strikes:
            if strike.point is point and strike.nth == self.seen[point]:
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
