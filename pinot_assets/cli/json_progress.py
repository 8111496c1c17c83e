"""Report the progress of a driver as JSON, one line for each decision, for programs that collect logs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pinot_assets.core.decision_log import LOGGER, JsonLines, log_decision
from pinot_assets.session.values.progress import RunPhase
from pinot_assets.snapshot.receipt import Failure, Receipt


class JsonProgress:
    """Log a driver's notes, phases and files on standard error. Steps and effects log themselves."""

    def __enter__(self) -> JsonProgress:
        self._handler = logging.StreamHandler(sys.stderr)
        self._handler.setFormatter(JsonLines())
        LOGGER.addHandler(self._handler)
        LOGGER.setLevel(logging.INFO)
        LOGGER.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        LOGGER.removeHandler(self._handler)
        LOGGER.propagate = True

    def note(self, text: str) -> None:
        """Log one step for people."""
        log_decision("note", {"text": text})

    def begin(self, phase: RunPhase, total: int = 0) -> None:
        """Log that a phase begins."""
        log_decision("phase", {"phase": phase, "total": total or None})

    def advance(self, done: int) -> None:
        """Log nothing: how far a phase is, is for people who wait."""

    def rest(self) -> None:
        """Log nothing: each step logs its end."""

    @contextmanager
    def starting_spark(self) -> Iterator[None]:
        """Log that Spark starts."""
        log_decision("phase", {"phase": "starting Spark"})
        yield

    def building(self, sizes: Mapping[int, int]) -> None:
        """Log that a build begins."""
        log_decision("phase", {"phase": RunPhase.BUILD, "total": len(sizes), "bytes": sum(sizes.values())})

    def moving(self, rows: int) -> None:
        """Log nothing, as in `advance`."""

    def built(self, outcome: Receipt | Failure) -> None:
        """Log a file: its rows and segments, or why it failed."""
        if isinstance(outcome, Failure):
            said: dict[str, object] = {"file": outcome.uri, "error": outcome.code, "reason": outcome.reason}
        else:
            said = {"file": outcome.uri, "rows": outcome.rows, "segments": len(outcome.outputs)}
        log_decision("file", said)
