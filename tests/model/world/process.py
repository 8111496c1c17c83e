"""A driver's process that can die, stand still, or lose a call at each thing that it does to the world.

It runs as a greenlet: at an effect it may hand the turn back, and go on when it is woken, hours later, when
somebody else holds its table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from greenlet import getcurrent, greenlet


class Died(BaseException):
    """The process ends here."""


class Kind(StrEnum):
    """What happens at an effect."""

    DIES_BEFORE = "dies before"
    DIES_AFTER = "dies after"
    CALL_LOST = "call lost"
    REPLY_LOST = "reply lost"
    STOPS_BEFORE = "stops before"
    STOPS_AFTER = "stops after"
    TWICE = "arrives twice"
    HALF = "arrives half"
    LATE = "arrives late, its caller knows nothing"


@dataclass(frozen=True)
class Trouble:
    """What happens where.

    :ivar at: the n-th effect of the process, or the first whose name begins so.
    """

    at: int | str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.kind} at {self.at}"


class Process:
    """One run of a driver.

    :param body: what it does; an error of the product that it raises is kept in `error`.
    :ivar effects: what it did, in order, with the trouble at it.
    """

    def __init__(self, name: str, body: Callable[[Process], None], troubles: tuple[Trouble, ...]) -> None:
        self.name = name
        self.effects: list[str] = []
        self.dead = False
        self.done = False
        self.error: Exception | None = None
        self._troubles = list(troubles)
        self._body = body
        self._greenlet = greenlet(self._run)

    @property
    def stopped(self) -> bool:
        """Whether it stands still in the middle of its work."""
        return not self.done

    def go_on(self) -> None:
        """Run until it is through, dies or stands still."""
        self._greenlet.switch()

    def kill(self) -> None:
        """It dies where it stands."""
        self.dead = True
        self.go_on()

    def _run(self) -> None:
        try:
            self._body(self)
        except Died:
            self.dead = True
        except Exception as error:
            self.error = error
        self.done = True

    def alive(self) -> None:
        """The dead do nothing, not in a `finally` either."""
        if self.dead:
            raise Died

    def trouble_at(self, what: str) -> Kind | None:
        """Count an effect; what is to happen at it."""
        self.alive()
        self.effects.append(what)
        number = len(self.effects)
        for trouble in self._troubles:
            hit = trouble.at == number if isinstance(trouble.at, int) else what.startswith(trouble.at)
            if hit:
                self._troubles.remove(trouble)
                self.effects[-1] += f" ({trouble.kind})"
                return trouble.kind
        return None

    @contextmanager
    def effect(self, what: str, lost: Callable[[], Exception]) -> Iterator[Kind | None]:
        """One effect, with what is to happen at it.

        :param lost: the error that tells its caller that no answer came.
        """
        kind = self.trouble_at(what)
        if kind is Kind.STOPS_BEFORE:
            self._stop()
        if kind is Kind.DIES_BEFORE:
            self._die()
        if kind is Kind.CALL_LOST:
            raise lost()
        yield kind
        if kind is Kind.STOPS_AFTER:
            self._stop()
        if kind is Kind.DIES_AFTER:
            self._die()
        if kind is Kind.REPLY_LOST:
            raise lost()

    def _stop(self) -> None:
        getcurrent().parent.switch()
        self.alive()

    def _die(self) -> None:
        self.dead = True
        raise Died
