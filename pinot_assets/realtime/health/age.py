"""When a segment is old enough to be judged: a commit that runs looks like trouble for a moment. Pure."""

from __future__ import annotations

from typing import Final

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS
from pinot_assets.realtime.model.state import LlcSegment, RealtimeState

SETTLED_MS: Final = 60_000
"""Helix has sent its messages by then, if it ever does, and the external view has followed."""

ROUTED_MS: Final = 10_000
"""Brokers have followed the external view by then."""


def past_window(state: RealtimeState, segment: LlcSegment) -> bool:
    """Whether its node was written more than Pinot's 300 s ago, or nobody knows when."""
    return _older(state, segment, COMPLETION_WINDOW_MS)


def settled(state: RealtimeState, segment: LlcSegment) -> bool:
    """Whether its node was written so long ago that servers should show it."""
    return _older(state, segment, SETTLED_MS)


def routed(state: RealtimeState, segment: LlcSegment) -> bool:
    """Whether its node was written so long ago that brokers should ask for it."""
    return _older(state, segment, ROUTED_MS)


def _older(state: RealtimeState, segment: LlcSegment, ms: int) -> bool:
    age = state.age_ms(segment)
    return age is None or age > ms
