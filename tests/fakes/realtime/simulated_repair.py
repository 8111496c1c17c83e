"""The repair planner at work on a simulated table: plan, apply, look again, as the command does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from simulator.world import SimulatedWorld, realtime_state

from pinot_assets.realtime.repair.apply import StepResult, verified
from pinot_assets.realtime.repair.model import (
    NOTHING_TRIED,
    USUAL_LIMITS,
    Means,
    Memory,
    RepairPlan,
    Step,
    StepKind,
)
from pinot_assets.realtime.repair.plan import plan

PERIOD_MS = 47_000
"""Out of step with commits."""

QUIET_MS = 1_200_000
"""Longer than a commit waits for anything."""


@dataclass
class SimulatedRepair:
    """A sensor that repairs.

    :ivar done: steps that were begun, in order.
    :ivar says: the last plan.
    :ivar meanwhile: called after every step of time: what must hold while it mends.
    """

    world: SimulatedWorld
    memory: Memory = NOTHING_TRIED
    done: list[Step] = field(default_factory=list)
    open: list[Step] = field(default_factory=list)
    says: RepairPlan = field(default_factory=RepairPlan)
    meanwhile: Callable[[], None] = lambda: None

    def run(self, for_ms: float) -> None:
        """Repair every now and then, until all has been well for a while or time is over."""
        now = self.world.env.now
        end, well_since = now + for_ms, now
        while self.world.env.now < min(end, well_since + QUIET_MS):
            self.once()
            self.world.run(PERIOD_MS)
            self.meanwhile()
            if not self.says.all_well:
                well_since = self.world.env.now

    def once(self) -> None:
        """Look, verify what was begun, plan, begin."""
        state = realtime_state(self.world)
        for step in list(self.open):
            if verified(step, state) in (StepResult.DONE, StepResult.GONE):
                self.memory = self.memory.ended(step)
                self.open.remove(step)
        self.says = plan(state, memory=self.memory)
        touched: set[str] = set()
        for step in self.says.steps:
            assert touched.isdisjoint(step.segments), f"two repairs of one segment: {self.says.steps}"
            touched |= set(step.segments)
            self._begin(step)
            self.memory = self.memory.begun(step, state.read_ms)
            self.open = [other for other in self.open if other.key != step.key] + [step]
        for step in self.says.advice:
            # A person follows it, and does not restart the same server over and over.
            again = self.memory.again_at_ms(step, USUAL_LIMITS)
            if again is None or again <= state.read_ms:
                self._begin(step)
                self.memory = self.memory.begun(step, state.read_ms)

    def _begin(self, step: Step) -> None:
        self.done.append(step)
        self.world.trace("repair", str(step))
        world, server = self.world, step.server or ""
        match step.means:
            case Means.CONTROLLER:
                world.upload(step.segments)
            case Means.FORCED:
                world.force_upload(step.segments)
            case Means.CONTROLLER_RESET:
                world.reset(step.segments[0], server)
            case Means.VALIDATION:
                world.validate()
            case Means.SEGMENT_VALIDATION:
                world.validate_segments()
            case Means.RESUME:
                world.resume()
            case Means.STORE:
                for name in step.names:
                    del world.store.files[name]
            case Means.PERSON:
                world.restart(server)
            case Means.SERVER:
                assert step.kind is StepKind.REINGEST, "Pinot 1.5 uploads through the controller"
                world.reingest(step.segments[0], server)
