"""Progress of a driver, in the log of a Dagster run."""

from __future__ import annotations

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
