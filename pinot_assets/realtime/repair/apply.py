"""Does the planned steps: remember a step, begin it, read the table until its effect shows or its time is up.

Pinot's answer to a call proves nothing: `verified` looks for the effect in a state that was read afterwards.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from pinot_assets.errors import PinotError, SourceError, SwitchStateUnknown
from pinot_assets.pinot.realtime import SEGMENT_LEVEL, RealtimePinot
from pinot_assets.realtime.lease import OperationsLease
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, SegmentStatus
from pinot_assets.realtime.read.reading import DeleteUpload, Reader, Tell
from pinot_assets.realtime.repair.facts import admin_url
from pinot_assets.realtime.repair.model import (
    SUBJECT,
    USUAL_LIMITS,
    Means,
    Memory,
    RepairLimits,
    RepairPlan,
    Step,
    StepKind,
    manual,
    recalled_repair,
)
from pinot_assets.realtime.repair.plan import plan

FRESH_MS = 15_000
"""Maximum age, in milliseconds, of the state from which a step is begun."""

FIRST_LOOK_S = 1.0
LONGEST_PAUSE_S = 15.0


class StepResult(StrEnum):
    """What became of a step: what a later state shows of it, or how it ended."""

    DONE = "done"
    GONE = "no longer needed"
    """Its segment or replica no longer exists: retention, a delete or a rebalance removed it."""
    NOT_YET = "not yet"
    UNKNOWN = "not known"
    """The part of the state that would show its effect could not be read."""
    NO_EFFECT = "no effect"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """A step that was begun, and its result.

    :ivar text: Pinot's reason, or what to do next.
    """

    step: Step
    result: StepResult
    text: str = ""

    @property
    def helped(self) -> bool:
        """Return whether the table is better now."""
        return self.result in (StepResult.DONE, StepResult.GONE)


@dataclass(frozen=True, slots=True)
class Repair:
    """Plans and does the repair of one table.

    :ivar delete_upload: None where the deep store cannot be reached from here.
    :ivar clock_ms: returns the time; the states' own clock is close to it.
    :ivar longest_ms: how long one round lasts. A step begun by then without a visible effect stays remembered
        as under way.
    """

    pinot: RealtimePinot
    read: Reader
    lease: OperationsLease
    delete_upload: DeleteUpload | None = None
    limits: RepairLimits = USUAL_LIMITS
    tell: Tell = lambda _: None
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    sleep: Callable[[float], None] = time.sleep
    longest_ms: float = math.inf

    def rounds(self, most: int) -> Iterator[tuple[RepairPlan, tuple[StepOutcome, ...]]]:
        """Yield each round's plan and outcomes, until nothing is left that can be done now.

        The last plan has no steps, unless `most` rounds were not enough.

        :raises LeaseLost: another run took the lease of the table.
        :raises PinotError: the table cannot be read.
        """
        for _ in range(most):
            planned, outcomes = self.round()
            yield planned, outcomes
            if not planned.steps:
                return

    def round(self) -> tuple[RepairPlan, tuple[StepOutcome, ...]]:
        """Make one plan, do its steps, and return the plan and the outcomes.

        :raises LeaseLost: another run took the lease of the table.
        :raises PinotError: the table cannot be read.
        """
        state, now_ms = self.read(), self.clock_ms()
        memory = recalled_repair(self.lease.recall(SUBJECT), self.lease.table, now_ms, self.limits)
        end_ms = now_ms + self.longest_ms
        planned = plan(state, self.limits, memory)
        outcomes: list[StepOutcome] = []
        begun: dict[Step, int] = {}
        for step in planned.steps:
            if self.clock_ms() > end_ms:
                break
            # The table changes while a server uploads, as that call is waited for: so read it again.
            if self.clock_ms() - state.read_ms > FRESH_MS:
                state = self.read()
                now = {other.key: other for other in plan(state, self.limits, memory).steps}
                if step.key not in now:
                    continue
                # The step as planned now (perhaps by another server), waiting at least as long as before.
                step = replace(now[step.key], deadline_s=max(step.deadline_s, now[step.key].deadline_s))
            self.lease.assert_held()
            memory = memory.begun(step, self.clock_ms())
            self.lease.remember(SUBJECT, memory.to_text())
            self.tell(f"{step}: {step.why}")
            if (refusal := self._begin(step, state)) is None:
                begun[step] = self.clock_ms() + int(step.deadline_s * 1000)
            else:
                memory = memory.stopped(step, self.clock_ms())
                self.lease.remember(SUBJECT, memory.to_text())
                outcomes.append(refusal)
        outcomes += self._await_effects(begun, memory, end_ms)
        return planned, tuple(outcomes)

    def _begin(self, step: Step, state: RealtimeState) -> StepOutcome | None:
        try:
            send_step(step, state, self.pinot, self.delete_upload)
        except SwitchStateUnknown as error:
            self.tell(f"{step}: {error.what}; checking whether it happened")
        except (PinotError, SourceError) as error:
            self.tell(f"{step}: {error}")
            return StepOutcome(step, StepResult.REFUSED, str(error))
        return None

    def _await_effects(self, begun: dict[Step, int], memory: Memory, end_ms: float) -> Iterator[StepOutcome]:
        """Read the table until each step shows its effect, its time is up, or the round's time is up."""
        waits, pause = dict(begun), FIRST_LOOK_S
        while waits and self.clock_ms() < end_ms:
            self.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_S)
            state = self._look()
            for step, until in tuple(waits.items()):
                result = StepResult.UNKNOWN if state is None else verified(step, state)
                if result in (StepResult.DONE, StepResult.GONE):
                    memory = memory.ended(step)
                    self.lease.remember(SUBJECT, memory.to_text())
                    yield self._outcome(step, result, "")
                elif self.clock_ms() >= until:
                    yield self._outcome(step, StepResult.NO_EFFECT, manual(step).if_it_fails)
                else:
                    continue
                del waits[step]

    def _look(self) -> RealtimeState | None:
        try:
            return self.read()
        except PinotError as error:
            self.tell(f"the table could not be read just now: {error.what}")
            return None

    def _outcome(self, step: Step, result: StepResult, text: str) -> StepOutcome:
        self.tell(f"{step}: {result}" + (f"; {text}" if text else ""))
        return StepOutcome(step, result, text)


def preview_repair(state: RealtimeState, remembered: str, limits: RepairLimits) -> RepairPlan:
    """Return what a repair would do now, without taking the lease or changing anything.

    :param remembered: the memory of the last repair (`OperationsStore.recall`).
    :raises SessionError: the memory cannot be read.
    """
    return plan(state, limits, recalled_repair(remembered, state.table, state.read_ms, limits))


URL: Final = "segment.download.url"
CRC: Final = "segment.crc"
STATUS: Final = "segment.realtime.status"
END_OFFSET: Final = "segment.realtime.endOffset"


def send_step(step: Step, state: RealtimeState, pinot: RealtimePinot, delete: DeleteUpload | None) -> None:
    """Send the call of the step. It waits for uploads by a server; all other calls only start the work.

    :param delete: None where the deep store cannot be reached from here.
    :raises PinotError: Pinot refused it; `SwitchStateUnknown`: it may be under way all the same.
    """
    table = state.table
    match step.means:
        case Means.CONTROLLER:
            pinot.upload_to_deep_store(table, step.segments)
        case Means.FORCED:
            pinot.force_upload_to_deep_store(table, step.segments)
        case Means.CONTROLLER_RESET:
            pinot.reset_replica(table, step.segments[0], _server(step))
        case Means.VALIDATION:
            pinot.run_validation(table)
        case Means.SEGMENT_VALIDATION:
            pinot.run_validation_with(table, SEGMENT_LEVEL)
        case Means.RESUME:
            pinot.resume(table)
        case Means.STORE:
            if delete is None:
                why, hint = "this machine cannot read the deep store", "delete them by hand"
                raise PinotError(f"{step} cannot be done", why=why, hint=hint)
            for name in step.names:
                delete(name)
        case Means.SERVER:
            _by_server(step, state, pinot)
        case Means.PERSON:
            raise ValueError(f"only a person can do {step}")


def _by_server(step: Step, state: RealtimeState, pinot: RealtimePinot) -> None:
    if (address := admin_url(state, _server(step))) is None:
        raise PinotError(f"{step} cannot be done", why="the server is no longer up, or has no admin address")
    if step.kind is StepKind.REINGEST:
        pinot.reingest(address, step.segments[0])
    elif step.kind is StepKind.FINISH:
        _finish(step, state.table, pinot, address)
    else:
        _upload(step, state.table, pinot, address)


def _upload(step: Step, table: str, pinot: RealtimePinot, address: str) -> None:
    """Let the server upload, and write the node if it has no URL: Pinot's own upload may have been quicker.

    The node gets the CRC of the uploaded copy. Replicas may differ in CRC from the committer's, and a server
    whose copy has another CRC than the node loads the segment again at every start.
    """
    segment = step.segments[0]
    if not (url := pinot.server_uploads(address, table, segment, step.deadline_s)):
        raise PinotError(f"{step.server} uploaded {segment} and did not report where to")
    crc = pinot.server_crc(address, table, segment)
    node = pinot.segment_node(table, segment)
    if not node.simple.get(URL):
        pinot.write_segment(table, node.with_fields(**{URL: url, CRC: crc}))


def _finish(step: Step, table: str, pinot: RealtimePinot, address: str) -> None:
    """Let the server finish the commit, and write its fields to the node if it has the committed rows."""
    segment = step.segments[0]
    fields = pinot.server_uploads_committed(address, table, segment, step.deadline_s)
    node = pinot.segment_node(table, segment)
    if node.simple.get(STATUS) != SegmentStatus.COMMITTING:
        return
    if fields.get(STATUS) != SegmentStatus.DONE or not fields.get(URL):
        raise PinotError(f"{step.server} did not finish {segment}", why=f"it answers {fields.get(STATUS)}")
    if fields.get(END_OFFSET) != node.simple.get(END_OFFSET):
        raise PinotError(
            f"{step.server} has other rows of {segment} than were committed",
            why=f"its end offset is {fields.get(END_OFFSET)}, and the node has {node.simple.get(END_OFFSET)}",
        )
    pinot.write_segment(table, node.with_fields(**fields))


def _server(step: Step) -> str:
    assert step.server is not None
    return step.server


_SEEN_BY = {
    StepKind.UNLIST: {"committing_listed"},
    StepKind.SWEEP: {"tmp_uploads"},
    StepKind.RESET: {"segments", "external"},
    StepKind.RESTART: {"segments", "external"},
}


def verified(step: Step, state: RealtimeState) -> StepResult:
    """Return what that state shows of the step's effect.

    :param state: read after the step was begun.
    """
    if _SEEN_BY.get(step.kind, {"segments"}) & state.unread.keys():
        return StepResult.UNKNOWN
    match step.kind:
        case StepKind.UNLIST:
            return _verdict(state.committing_listed.isdisjoint(step.names))
        case StepKind.SWEEP:
            return _verdict({upload.name for upload in state.tmp_uploads}.isdisjoint(step.names))
        case StepKind.VALIDATE:
            latest = state.latest()
            return _verdict(all(_is_consumed(latest.get(partition)) for partition in step.partitions))
        case _:
            return _of_segments(step, state)


def _of_segments(step: Step, state: RealtimeState) -> StepResult:
    named = set(step.segments)
    there = [segment for segment in state.segments if segment.name in named and segment.stored]
    if not there:
        return StepResult.GONE
    if step.kind in (StepKind.RESET, StepKind.RESTART):
        assert step.server is not None
        verdicts = {_loaded(segment, step.server) for segment in there}
        by_weight = (StepResult.NOT_YET, StepResult.DONE, StepResult.GONE)
        return next(one for one in by_weight if one in verdicts)
    return _verdict(all(one.completed and one.copy is Copy.DEEP_STORE for one in there))


def _loaded(segment: LlcSegment, server: str) -> StepResult:
    replica = next((r for r in segment.replicas if r.server == server), None)
    if replica is None or replica.ideal not in ("ONLINE", "CONSUMING"):
        return StepResult.GONE
    return _verdict(replica.external == replica.ideal)


def _is_consumed(segment: LlcSegment | None) -> bool:
    return (
        segment is not None
        and segment.status is SegmentStatus.IN_PROGRESS
        and any(replica.ideal == "CONSUMING" for replica in segment.replicas)
    )


def _verdict(done: bool) -> StepResult:
    return StepResult.DONE if done else StepResult.NOT_YET
