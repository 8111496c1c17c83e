"""Progress of a driver, in the log of a Dagster run."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg

from pinot_assets.session.receipt import Failure, Receipt


class RunLog:
    """Tells a run's log how a driver gets on."""

    def __init__(self, log: dg.DagsterLogManager) -> None:
        self._log = log
        self._total = self._done = 0

    def note(self, text: str) -> None:
        """One step."""
        self._log.info(text)

    def building(self, files: int) -> None:
        """So many files are about to be built."""
        self._total, self._done = files, 0
        self._log.info(f"building {files} files on Spark")

    def built(self, outcome: Receipt | Failure) -> None:
        """One of them is through."""
        self._done += 1
        if isinstance(outcome, Failure):
            self._log.warning(f"{outcome.uri} failed: {outcome.code}: {outcome.reason}")
        elif self._done == self._total or self._done % max(1, self._total // 10) == 0:
            self._log.info(f"built {self._done} of {self._total} files")


class BuildLog(RunLog):
    """As `RunLog`, and lets somebody know that a build begins: the session stands by then."""

    def __init__(self, log: dg.DagsterLogManager, on_building: Callable[[], None]) -> None:
        super().__init__(log)
        self._on_building = on_building

    def building(self, files: int) -> None:
        """So many files are about to be built."""
        self._on_building()
        super().building(files)
