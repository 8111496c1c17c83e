"""Progress of a driver, in the log of a Dagster run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import dagster as dg

from pinot_assets.core.text import plural
from pinot_assets.session.values.report import Pace
from pinot_assets.snapshot.receipt import Failure, Receipt

QUIET_S = 60.0
"""How long a build that goes on may be silent: every line of a run's log is a row of Dagster's database."""


class RunLog:
    """Tells a run's log how a driver gets on."""

    def __init__(self, log: dg.DagsterLogManager, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._pace = Pace({})
        self._told = clock()

    def note(self, text: str) -> None:
        """One step."""
        self._log.info(text)

    def building(self, sizes: Mapping[int, int]) -> None:
        """Files are about to be built."""
        self._pace = Pace(sizes, self._clock)
        self._log.info(f"building {plural(len(sizes), 'file')} of {sum(sizes.values()):,} bytes on Spark")
        self._told = self._clock()

    def moving(self, rows: int) -> None:
        """Tasks came further."""
        self._pace.moving(rows)
        if self._clock() - self._told >= QUIET_S:
            self._tell()

    def built(self, outcome: Receipt | Failure) -> None:
        """One of them is through."""
        pace = self._pace
        pace.built(outcome)
        if isinstance(outcome, Failure):
            self._log.warning(f"{outcome.uri} failed: {outcome.code}: {outcome.reason}")
        elif pace.done == pace.files or pace.done % max(1, pace.files // 10) == 0:
            self._tell()

    def _tell(self) -> None:
        self._log.info(f"built {self._pace}")
        self._told = self._clock()


class BuildLog(RunLog):
    """As `RunLog`, and lets somebody know that a build begins: the session stands by then."""

    def __init__(self, log: dg.DagsterLogManager, on_building: Callable[[], None]) -> None:
        super().__init__(log)
        self._on_building = on_building

    def building(self, sizes: Mapping[int, int]) -> None:
        """Files are about to be built."""
        self._on_building()
        super().building(sizes)
