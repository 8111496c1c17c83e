"""What a check of a REALTIME table is, and the next steps that several checks name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from packaging.version import Version

from pinot_assets.core.check_result import CheckResult, HealthCheck, unknown
from pinot_assets.pinot.versions import release
from pinot_assets.realtime.model.state import RealtimeState

NODES: Final = ("segments", "modified_ms")
COPIES: Final = (*NODES, "external", "servers")
"""Parts of the state that several checks need."""

BY_HAND: Final = "the guide on REALTIME tables (docs/guides/realtime.md) has a runbook for it"

_RECREATES: Final = Version("1.3")


RealtimeCheck = HealthCheck[RealtimeState]


def check(promise: str, *needs: str) -> Callable[[Callable[[RealtimeState], CheckResult]], RealtimeCheck]:
    """Make a function a check of its own name.

    :param needs: parts of the state (keys of `RealtimeState.unread`) without which it answers "not known".
    """

    def made(judge: Callable[[RealtimeState], CheckResult]) -> RealtimeCheck:
        def judged(state: RealtimeState) -> CheckResult:
            if why := state.why_unread(*needs):
                return unknown(judge.__name__, why, "look again when it answers")
            return judge(state)

        return HealthCheck(judge.__name__, promise, judged)

    return made


def repair_plan(state: RealtimeState) -> str:
    """The command that says what would be mended, and how."""
    return f"pinot-assets realtime repair {state.table.removesuffix('_REALTIME')} --plan"


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
