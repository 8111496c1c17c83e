"""The outage drill on a real test table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pinot_assets.core.interrupts import held_off
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError, PinotError
from pinot_assets.realtime.operations.drill_plan import (
    USUAL_LENGTHS,
    DrillObservation,
    DrillSample,
    Lengths,
    Phase,
    findings,
    is_over,
    sample_of,
)
from pinot_assets.realtime.read.api import Reader, Tell
from pinot_assets.realtime.repair.apply import Repair

POLL_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Drill:
    """What a drill works with.

    :ivar break_store: makes the deep store unwritable; returns when it is.
    :ivar mend_store: undoes it; called whatever happens, also where breaking it failed half-way.
    :ivar query: one query of the table, to be timed.
    :ivar repair: of the same table; does the back-fill.
    :ivar load_from_peers: makes a server load segments from others (a new disk, say); None leaves that out.
    :ivar peer_downloads: a counter of such loads; None where it cannot be read.
    """

    read: Reader
    break_store: Callable[[], None]
    mend_store: Callable[[], None]
    query: Callable[[], object]
    repair: Repair
    load_from_peers: Callable[[], None] | None = None
    peer_downloads: Callable[[], int | None] = lambda: None
    lengths: Lengths = USUAL_LENGTHS
    tell: Tell = lambda _: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def run(self) -> tuple[DrillObservation, ...]:
        """All phases; what they show.

        :raises PinotAssetsError: the table cannot be read at the beginning, or the store not be mended.
        """
        seen: dict[Phase, Sequence[DrillSample]] = {}
        seen[Phase.BEFORE] = self._phase(Phase.BEFORE)
        try:
            self.break_store()
            seen[Phase.OUTAGE] = self._phase(Phase.OUTAGE)
            if self.load_from_peers is not None:
                self.load_from_peers()
                seen[Phase.DOWNLOADS] = self._phase(Phase.DOWNLOADS)
        finally:
            with held_off():
                self.mend_store()
        seen[Phase.BACKFILL] = self._phase(Phase.BACKFILL, self._repair)
        return findings(seen, self.lengths)

    def _phase(self, phase: Phase, work: Callable[[], None] = lambda: None) -> list[DrillSample]:
        self.tell(f"{phase}: begins")
        samples = [self._sample()]
        while not is_over(phase, samples, self.lengths):
            work()
            self.sleep(POLL_S)
            try:
                samples.append(self._sample())
            except PinotError as error:
                self.tell(f"{phase}: the table could not be read just now: {error.what}")
        last = samples[-1]
        self.tell(
            f"{phase}: over; {plural(last.consumed, 'message')}, "
            f"{plural(last.only_servers, 'segment')} only on servers"
        )
        return samples

    def _sample(self) -> DrillSample:
        began = self.clock()
        try:
            self.query()
            taken: tuple[float, ...] = (self.clock() - began,)
        except PinotAssetsError as error:
            self.tell(f"a query failed: {error.what}")
            taken = ()
        return sample_of(self.read(), taken, self.peer_downloads())

    def _repair(self) -> None:
        self.repair.round()


def told(found: Sequence[DrillObservation]) -> Mapping[str, Mapping[str, object]]:
    """The findings as JSON values."""
    return {one.name: {"passed": one.passed, "text": one.text, "value": one.value} for one in found}
