"""Where every effect of a driver process passes by, is counted, and can go wrong once.

An *effect* is a request that may change something outside the process. Proxies hand each one to the gate,
which lets it through unless it is the one that a crash point names.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")

LEASE_TAKEN = "zk create lease, set pointer"
"""The effect by which a run becomes the owner of its table."""


class Fate(StrEnum):
    """What happens to an effect."""

    BEFORE = "before"
    """The process is killed before the effect is carried out."""

    AFTER = "after"
    """The process is killed after it was carried out; nobody reads the reply."""

    LOST = "lost"
    """It is carried out, its reply gets lost, the process lives."""

    LATE = "late"
    """The process is killed before, and the effect is carried out when the next owner has the lease: what a
    network or a busy server does to a request that was on its way."""

    FROZEN = "frozen"
    """It is carried out, and the process stands still before it hears of that."""

    OUTAGE = "outage"
    """Something dies as it comes, not the process; then it takes its chance."""


def fates_of(effect: str) -> tuple[Fate, ...]:
    """What the matrix does to an effect. ZooKeeper carries nothing out for a session that is over."""
    usual = (Fate.BEFORE, Fate.AFTER, Fate.LOST)
    return usual if effect.startswith("zk ") else (*usual, Fate.LATE)


@dataclass(frozen=True, slots=True)
class Point:
    """One way in which one run goes wrong.

    :ivar effect: what it is, as its proxy names it.
    :ivar number: the how-manieth of that name in the run, from 1.
    """

    effect: str
    number: int
    fate: Fate

    def __str__(self) -> str:
        return f"{self.effect} #{self.number} {self.fate}"


class Gate:
    """Counts the effects of one run after the other.

    :param land_s: how long after the next owner took the lease a LATE effect is carried out.
    :ivar struck_after: the effects up to the one that went wrong, itself included; empty before that.
    """

    def __init__(self, land_s: float) -> None:
        self._land_s = land_s
        self._lock = threading.Lock()
        self._effects: list[str] = []
        self._counts: Counter[str] = Counter()
        self._point: Point | None = None
        self._strike: Callable[[], None] = lambda: None
        self._owned = threading.Event()
        self._landed = threading.Event()
        self.struck_after: tuple[str, ...] = ()

    def begin(self, point: Point | None, strike: Callable[[], None]) -> None:
        """A new run begins.

        :param strike: what the point does: ends the process at once and returns when it has ended; stops it;
            ends a server.
        """
        with self._lock:
            self._effects, self._counts, self._point, self._strike = [], Counter(), point, strike
            if point is not None:
                self.struck_after = ()
                self._owned.clear()
                self._landed.clear()
                if point.fate is not Fate.LATE:
                    self._landed.set()

    @property
    def effects(self) -> list[str]:
        """Those of the run so far, in their order."""
        with self._lock:
            return list(self._effects)

    def wait_landed(self, seconds: float) -> bool:
        """Wait until nothing of a killed run is on its way any more; whether that came true."""
        return self._landed.wait(seconds)

    def land(self) -> None:
        """Nobody took the lease: what is on its way lands now."""
        self._owned.set()

    def pass_by(self, effect: str, carry_out: Callable[[], T]) -> T | None:
        """Carry an effect out, or not.

        :returns: the reply; None when the connection is to be cut.
        """
        fate = self._fate_of(effect)
        if fate is None:
            reply = carry_out()
            if effect == LEASE_TAKEN:
                self._owned.set()
            return reply
        match fate:
            case Fate.BEFORE:
                self._strike()
            case Fate.AFTER:
                carry_out()
                self._strike()
            case Fate.LOST:
                carry_out()
            case Fate.FROZEN:
                reply = carry_out()
                self._strike()
                return reply
            case Fate.OUTAGE:
                self._strike()
                return carry_out()
            case Fate.LATE:
                self._strike()
                self._owned.clear()
                threading.Thread(target=self._carry_out_late, args=(carry_out,)).start()
        return None

    def _fate_of(self, effect: str) -> Fate | None:
        with self._lock:
            self._effects.append(effect)
            self._counts[effect] += 1
            point = self._point
            if point is None or (point.effect, point.number) != (effect, self._counts[effect]):
                return None
            self._point = None
            self.struck_after = tuple(self._effects)
            return point.fate

    def _carry_out_late(self, carry_out: Callable[[], object]) -> None:
        try:
            if self._owned.wait(120):
                threading.Event().wait(self._land_s)
            carry_out()
        finally:
            self._landed.set()


def point_from(text: str) -> Point:
    """Inverse of `str(point)`."""
    rest, _, fate = text.rpartition(" ")
    effect, _, number = rest.rpartition(" #")
    return Point(effect, int(number), Fate(fate))
