"""The condition of a REALTIME table in a word, for an overview of tables; the checks say more."""

from __future__ import annotations

from enum import StrEnum

from pinot_assets.realtime.health.consuming import next_segment
from pinot_assets.realtime.health.copies import error_segments
from pinot_assets.realtime.model.state import RealtimeState


class Condition(StrEnum):
    """The condition; the first that fits."""

    UNKNOWN = "not known"
    """A part of the state that decides could not be read."""
    PAUSED = "paused"
    IN_ERROR = "in error"
    """A replica is in ERROR."""
    STOPPED = "stopped"
    """A partition has no consuming segment."""
    CONSUMING = "consuming"


def condition(state: RealtimeState) -> Condition:
    """Return the condition of a table."""
    chain, errors = next_segment(state), error_segments(state)
    if not (chain.known and errors.known):
        return Condition.UNKNOWN
    if state.pause.whole:
        return Condition.PAUSED
    if not errors.passed:
        return Condition.IN_ERROR
    return Condition.CONSUMING if chain.passed and state.segments else Condition.STOPPED
