"""Next steps that several checks name."""

from __future__ import annotations

from typing import Final

from packaging.version import Version

from pinot_assets.pinot.versions import release
from pinot_assets.realtime.model.state import RealtimeState

BY_HAND: Final = "the guide on REALTIME tables (docs/guides/realtime.md) has a runbook for it"


def repair_plan(state: RealtimeState) -> str:
    """The command that says what would be mended, and how."""
    return f"pinot-assets realtime repair {state.table.removesuffix('_REALTIME')} --plan"


_RECREATES: Final = Version("1.3")


def next_one(state: RealtimeState) -> str:
    """How a partition that is closed gets its next segment: before 1.3 a validation leaves it alone, unless a
    resumption calls it."""
    if release(state.cluster.version) >= _RECREATES:
        return validation(state)
    raw = state.table.removesuffix("_REALTIME")
    return f"POST /tables/{raw}/resumeConsumption: before Pinot 1.3 nothing else mends it"


def validation(state: RealtimeState) -> str:
    """Waiting for Pinot's validation manager, or calling it."""
    minutes = state.cluster.validation_period_s // 60
    return (
        f"Pinot's validation mends it within {minutes} min; at once: "
        "/periodictask/run?taskname=RealtimeSegmentValidationManager"
    )
