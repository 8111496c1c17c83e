"""The type of a check of a REALTIME table, and the next steps that several checks name."""

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
    """Return a decorator that makes a function a check with the function's name.

    :param needs: parts of the state (keys of `RealtimeState.unread`) without which the check is "not known".
    """

    def made(judge: Callable[[RealtimeState], CheckResult]) -> RealtimeCheck:
        def judged(state: RealtimeState) -> CheckResult:
            if why := state.why_unread(*needs):
                return unknown(judge.__name__, why, "look again when it answers")
            return judge(state)

        return HealthCheck(judge.__name__, promise, judged)

    return made


def repair_plan(state: RealtimeState) -> str:
    """Return the command that shows what a repair would do, and how."""
    return f"pinot-assets realtime repair {state.table.removesuffix('_REALTIME')} --plan"


def next_one(state: RealtimeState) -> str:
    """Return how a closed partition gets its next segment: before 1.3 the validation makes none, unless
    `resumeConsumption` calls it."""
    if release(state.cluster.version) >= _RECREATES:
        return validation(state)
    raw = state.table.removesuffix("_REALTIME")
    return f"POST /tables/{raw}/resumeConsumption: before Pinot 1.3 nothing else repairs it"


def validation(state: RealtimeState) -> str:
    """Return the next step where Pinot's validation manager repairs it: wait for it, or call it."""
    minutes = state.cluster.validation_period_s // 60
    return (
        f"Pinot's validation repairs it within {minutes} min; at once: "
        "/periodictask/run?taskname=RealtimeSegmentValidationManager"
    )
