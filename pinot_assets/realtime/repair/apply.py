"""Doing what is planned: note it, begin it, read the table until the effect is there or its time is over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from pinot_assets.errors import PinotError, SourceError, SwitchStateUnknown
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.lease import OperationsLease
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.read.api import Reader, Sweeper, Tell
from pinot_assets.realtime.repair import memory as memories
from pinot_assets.realtime.repair.doing import begin
from pinot_assets.realtime.repair.model import USUAL_LIMITS, Memory, RepairLimits, RepairPlan, Step
from pinot_assets.realtime.repair.plan import plan
from pinot_assets.realtime.repair.verified import Verification, verified
from pinot_assets.realtime.repair.words import manual

FRESH_MS = 15_000
"""How old a state may be that a step is begun from."""

FIRST_LOOK_S = 1.0
LONGEST_PAUSE_S = 15.0


class StepResult(StrEnum):
    """What became of a step."""

    DONE = "done"
    GONE = "no longer needed"
    NO_EFFECT = "no effect"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """A step that was begun, and what was read afterwards.

    :ivar text: Pinot's reason, or what to do next.
    """

    step: Step
    result: StepResult
    text: str = ""

    @property
    def helped(self) -> bool:
        """Whether the table is better now."""
        return self.result in (StepResult.DONE, StepResult.GONE)


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair works with.

    :ivar sweep: None where the deep store is not reached from here.
    :ivar clock_ms: the time; the states' own is near it.
    :ivar longest_ms: how long one round goes on; what it began and has not seen the effect of by then is
        remembered to be under way.
    """

    pinot: RealtimePinot
    read: Reader
    lease: OperationsLease
    sweep: Sweeper | None = None
    limits: RepairLimits = USUAL_LIMITS
    tell: Tell = lambda _: None
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    sleep: Callable[[float], None] = time.sleep
    longest_ms: float = math.inf

    def rounds(self, most: int) -> Iterator[tuple[RepairPlan, tuple[StepOutcome, ...]]]:
        """Plan and do, until nothing is left that can be done now.

        The last plan has no steps, unless that many rounds were not enough.

        :raises LeaseLost: another run took the table over.
        :raises PinotError: the table cannot be read.
        """
        for _ in range(most):
            found, outcomes = self.round()
            yield found, outcomes
            if not found.steps:
                return

    def round(self) -> tuple[RepairPlan, tuple[StepOutcome, ...]]:
        """One plan, its steps, and what became of them.

        :raises LeaseLost: another run took the table over.
        :raises PinotError: the table cannot be read.
        """
        state, memory, end_ms = self.read(), self._recalled(), self.clock_ms() + self.longest_ms
        found = plan(state, self.limits, memory)
        outcomes: list[StepOutcome] = []
        begun: dict[Step, int] = {}
        for step in found.steps:
            if self.clock_ms() > end_ms:
                break
            # An upload by a server is waited for, and the table goes on meanwhile.
            if self.clock_ms() - state.read_ms > FRESH_MS:
                state = self.read()
                now = {other.key: other for other in plan(state, self.limits, memory).steps}
                if step.key not in now:
                    continue
                # As it is planned now, by another server, say; but behind what was begun before it.
                longest = max(step.deadline_s, now[step.key].deadline_s)
                step = replace(now[step.key], deadline_s=longest)
            self.lease.assert_held()
            memory = memory.begun(step, self.clock_ms())
            self._remember(memory)
            self.tell(f"{step}: {step.why}")
            refusal = self._begin(step, state)
            if refusal is None:
                begun[step] = self.clock_ms() + int(step.deadline_s * 1000)
            else:
                memory = memory.stopped(step, self.clock_ms())
                self._remember(memory)
                outcomes.append(refusal)
        outcomes += self._seen(begun, memory, end_ms)
        return found, tuple(outcomes)

    def _begin(self, step: Step, state: RealtimeState) -> StepOutcome | None:
        try:
            begin(step, state, self.pinot, self.sweep)
        except SwitchStateUnknown as error:
            self.tell(f"{step}: {error.what}; looking whether it happened")
        except (PinotError, SourceError) as error:
            self.tell(f"{step}: {error}")
            return StepOutcome(step, StepResult.REFUSED, str(error))
        return None

    def _seen(self, begun: dict[Step, int], memory: Memory, end_ms: float) -> Iterator[StepOutcome]:
        """Read the table until every step has had its effect, or its time is over, or the round's."""
        waits, pause = dict(begun), FIRST_LOOK_S
        while waits and self.clock_ms() < end_ms:
            self.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_S)
            state = self._look()
            for step, until in tuple(waits.items()):
                verdict = Verification.UNKNOWN if state is None else verified(step, state)
                if verdict in (Verification.DONE, Verification.GONE):
                    memory = memory.ended(step)
                    self._remember(memory)
                    yield self._told(
                        step, StepResult.DONE if verdict is Verification.DONE else StepResult.GONE, ""
                    )
                elif self.clock_ms() >= until:
                    yield self._told(step, StepResult.NO_EFFECT, manual(step).if_it_fails)
                else:
                    continue
                del waits[step]

    def _look(self) -> RealtimeState | None:
        try:
            return self.read()
        except PinotError as error:
            self.tell(f"the table could not be read just now: {error.what}")
            return None

    def _told(self, step: Step, result: StepResult, text: str) -> StepOutcome:
        self.tell(f"{step}: {result}" + (f"; {text}" if text else ""))
        return StepOutcome(step, result, text)

    def _recalled(self) -> Memory:
        text = self.lease.recall(memories.SUBJECT)
        return memories.recalled(text, self.lease.table, self.clock_ms(), self.limits)

    def _remember(self, memory: Memory) -> None:
        self.lease.remember(memories.SUBJECT, memories.to_text(memory))


def preview(state: RealtimeState, remembered: str, limits: RepairLimits) -> RepairPlan:
    """What a repair would do now; takes no lease and changes nothing.

    :param remembered: what the last repair remembers (`OperationsStore.recall`).
    :raises SessionError: that cannot be read.
    """
    return plan(state, limits, memories.recalled(remembered, state.table, state.read_ms, limits))
