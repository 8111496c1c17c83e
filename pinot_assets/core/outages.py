"""Name the service that a run waits for, while it waits.

A call to a service that is away may hang for a minute, and then the wrong service gets the blame: Pinot's
controller answers nothing when ZooKeeper is down. So a thread asks each service itself as soon as the run has
made no progress for a few seconds, those first on which the others depend. It says who does not answer, and
when it answers again. Docs: docs/operations.md#a-service-that-goes-away-in-a-run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pinot_assets.core.waiting import Patience
from pinot_assets.errors import PinotAssetsError

QUIET_S: Final = 4.0
"""Seconds without progress after which the services are asked."""
ANSWER_S: Final = 3.0
"""Seconds that a service has to answer."""
AGAIN_S: Final = 60.0
"""Seconds after which a service that still does not answer is named again."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service that a run needs.

    :ivar name: what it is and where.
    :ivar ask: asks it for anything; raises if it does not answer.
    :ivar longest: seconds that the run can wait for it; None if the call that waits knows that itself.
    """

    name: str
    ask: Callable[[], object]
    longest: float | None = None


class OutageWatch:
    """Asks the services of one run whenever it makes no progress, until `stop`.

    :param services: in the order in which they are asked: those first that others depend on.
    :param tell: shows a line to people; called from this watch's thread.
    :param end: called once, with the reason, when the run has waited too long for a service.
    """

    def __init__(
        self,
        services: Sequence[Service],
        tell: Callable[[str], None],
        end: Callable[[str], None],
        quiet: float = QUIET_S,
        answer: float = ANSWER_S,
    ) -> None:
        self._services = [(service, Patience()) for service in services]
        self._tell, self._end, self._quiet, self._answer = tell, end, quiet, answer
        self._all_well = time.monotonic()
        self._out: tuple[Service, float] | None = None
        self._told = 0.0
        self._works, self._stopped = threading.Event(), threading.Event()
        if services:
            threading.Thread(target=self._watch, name="outages", daemon=True).start()

    def feed(self) -> None:
        """Record progress of the run."""
        self._all_well = time.monotonic()

    def stop(self) -> None:
        """End the watch."""
        self._stopped.set()

    @contextmanager
    def in_errors(self) -> Iterator[None]:
        """Watch one step; let its error say which service was away, because that is the cause."""
        self.feed()
        self._works.set()
        try:
            yield
        except PinotAssetsError as error:
            if (out := self._out) is not None and out[0].name not in error.reason:
                error.why = "; ".join(filter(None, (_silent(*out), error.why)))
            raise
        finally:
            self._works.clear()

    def _watch(self) -> None:
        while not self._stopped.wait(self._quiet / 4):
            is_due = self._out is not None or time.monotonic() - self._all_well >= self._quiet
            if is_due and self._works.is_set():
                self._look()

    def _look(self) -> None:
        before, since = self._out or (None, self._all_well)
        away = next(
            (service for service, patience in self._services if self._is_away(service, patience)), None
        )
        if away is None:
            self._out = None
            self.feed()
            if before is not None:
                self._tell(f"{before.name} answers again, after {time.monotonic() - since:.0f} s")
            return
        self._out = away, since
        if away is not before or time.monotonic() - self._told >= AGAIN_S:
            self._told = time.monotonic()
            self._tell(f"waiting: {_silent(away, since)}")
        if away.longest is not None and time.monotonic() - since > away.longest:
            self.stop()
            self._end(_silent(away, since))

    def _is_away(self, service: Service, patience: Patience) -> bool:
        try:
            patience.wait_for(service.ask, self._answer)
        except Exception:  # `Late`, or whatever its client raises
            return True
        return False


def _silent(service: Service, since: float) -> str:
    return f"{service.name} has not answered for {time.monotonic() - since:.0f} s"
