"""What a check of a REALTIME table is, and the next steps that several checks name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from packaging.version import Version

from pinot_assets.core.check_result import CheckResult, unknown
from pinot_assets.pinot.versions import release
from pinot_assets.realtime.model.state import RealtimeState

NODES: Final = ("segments", "modified_ms")
COPIES: Final = (*NODES, "external", "servers")
"""Parts of the state that several checks need."""

BY_HAND: Final = "the guide on REALTIME tables (docs/guides/realtime.md) has a runbook for it"

_RECREATES: Final = Version("1.3")


@dataclass(frozen=True, slots=True)
class RealtimeCheck:
    """One check.

    :ivar promise: what holds when it passes, one sentence.
    :ivar needs: parts of the state (keys of `RealtimeState.unread`) without which it answers "not known".
    """

    name: str
    promise: str
    needs: tuple[str, ...]
    judge: Callable[[RealtimeState], CheckResult]

    def __call__(self, state: RealtimeState) -> CheckResult:
        """Its answer. Never raises."""
        if why := state.why_unread(*self.needs):
            return unknown(self.name, why, "look again when it answers")
        try:
            return replace(self.judge(state), name=self.name)
        except Exception as error:
            # A check that breaks is a failed check with its reason, as those of OFFLINE tables are.
            return unknown(self.name, repr(error), "this is a fault of the check itself: please report it")


def check(promise: str, *needs: str) -> Callable[[Callable[[RealtimeState], CheckResult]], RealtimeCheck]:
    """Make a function a check of its own name."""
    return lambda judge: RealtimeCheck(judge.__name__, promise, needs, judge)


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
