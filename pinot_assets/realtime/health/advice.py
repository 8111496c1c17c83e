"""Next steps that several checks name."""

from __future__ import annotations

from typing import Final

from pinot_assets.realtime.state import RealtimeState

BY_HAND: Final = "the guide on REALTIME tables (docs/guides/realtime.md) has a runbook for it"


def repair_plan(state: RealtimeState) -> str:
    """The command that says what would be mended, and how."""
    return f"pinot-assets realtime repair {state.table.removesuffix('_REALTIME')} --plan"


def validation(state: RealtimeState) -> str:
    """Waiting for Pinot's validation manager, or calling it."""
    minutes = state.cluster.validation_period_s // 60
    return (
        f"Pinot's validation mends it within {minutes} min; at once: "
        "/periodictask/run?taskname=RealtimeSegmentValidationManager"
    )
