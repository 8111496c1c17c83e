"""The repair planner: plans from one state of a table what to do now. Pure.

It keeps to four rules. No two steps of a plan touch the same segment, nor a segment of a step that may still
be under way. No step takes down or gives up the only copy of anything. No step touches what is younger than
Pinot's own 300 s unless Pinot would. A step without effect is tried again later and later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from pinot_assets.core.text import plural, plural_are
from pinot_assets.realtime.model.state import LlcSegment, RealtimeState, SegmentStatus
from pinot_assets.realtime.repair.committed import committing, completed, stale
from pinot_assets.realtime.repair.consuming import in_progress, restarts, starting, unconsumed
from pinot_assets.realtime.repair.facts import not_known, only_copy, validation_resets, without_tar
from pinot_assets.realtime.repair.model import (
    NOTHING_TRIED,
    USUAL_LIMITS,
    VALIDATIONS,
    Means,
    Memory,
    RepairItem,
    RepairLimits,
    RepairPlan,
    Step,
    StepKind,
    Try,
    Unrepairable,
    Waiting,
    manual,
)

_URGENCY = {
    StepKind.VALIDATE: 1,  # a partition that no server consumes falls behind further and further
    StepKind.REINGEST: 2,  # queries lack rows, and the stream will drop them
    StepKind.RESET: 3,
    StepKind.FINISH: 4,
    StepKind.UPLOAD: 5,
    StepKind.UNLIST: 6,
    StepKind.SWEEP: 6,
}
LONGEST_WAIT_S = 3600.0
NAMED_AT_ONCE = 1_000
"""Segments of one step at most: one node of ZooKeeper remembers their names, and holds less than 1 MB."""
SLOW_UPLOAD_BYTES_PER_S = 20_000_000
"""Assumed rate of an upload. The controller uploads one segment after the other
(`deepStoreUploadRetry.parallelism`), and so do we: a step waits for those before it at this rate."""
_UPLOADS = frozenset({StepKind.UPLOAD, StepKind.FINISH})


def plan(
    state: RealtimeState, limits: RepairLimits = USUAL_LIMITS, memory: Memory = NOTHING_TRIED
) -> RepairPlan:
    """Return what to do now, what a person must do, what cannot be repaired, and what waits.

    :param memory: tries of earlier repairs that are not known to have helped.
    """
    if (unknown := not_known(state)) is not None:
        return RepairPlan(waiting=(Waiting(state.table, f"it could not be read completely: {unknown}"),))
    items = list(chain(*(_of_segment(state, s) for s in state.segments), unconsumed(state), stale(state)))
    items += [*starting(state), *restarts(state, memory)]
    steps = _together([item for item in items if isinstance(item, Step) and item.means is not Means.PERSON])
    waiting = [item for item in items if isinstance(item, Waiting)]
    refusals = [item for item in items if isinstance(item, Unrepairable)]
    refusals += [
        Unrepairable(
            _subject(step),
            f"{step.kind} was started {plural(memory.times(step), 'time')} without effect",
            manual(step).if_it_fails,
        )
        for step in steps
        if memory.times(step) >= limits.tries
    ]
    chosen, held = _chosen(state, steps, limits, memory)
    return RepairPlan(
        steps=tuple(chosen),
        advice=tuple(item for item in items if isinstance(item, Step) and item.means is Means.PERSON),
        refusals=tuple(refusals),
        waiting=tuple(waiting + held),
    )


def _of_segment(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    if not segment.stored:
        return
    if segment.status is None:
        yield Unrepairable(
            segment.name, "its node has no status", "look at the node in Pinot's ZooKeeper browser"
        )
    elif not segment.in_ideal_state and segment.status is not SegmentStatus.IN_PROGRESS:
        yield Unrepairable(
            segment.name,
            f"it is {segment.status} and not in the ideal state, so no server loads it; Pinot "
            "only reports it",
            "search the controller's log for that commit; delete the segment if other segments have its rows",
        )
    elif segment.status.completed:
        yield from completed(state, segment)
    elif segment.status is SegmentStatus.COMMITTING:
        yield from committing(state, segment)
    else:
        yield from in_progress(state, segment)


def _together(steps: list[Step]) -> list[Step]:
    """Merge uploads by segment-level validation into one step, as one validation uploads all that is missing.
    Later plans check the segments that the step does not name.
    """
    at_once = [one for one in steps if one.means is Means.SEGMENT_VALIDATION and one.kind in _UPLOADS]
    if len(at_once) < 2:
        return steps
    named = at_once[:NAMED_AT_ONCE]
    whole = replace(
        at_once[0],
        kind=StepKind.UPLOAD,
        why=f"{plural_are(len(at_once), 'segment')} not in the deep store; for one, {at_once[0].why}",
        segments=tuple(name for step in named for name in step.segments),
        size_bytes=sum(step.size_bytes for step in named),
        # The controller uploads one after the other; the next plan takes what is left then.
        deadline_s=min(sum(step.deadline_s for step in named), LONGEST_WAIT_S),
    )
    together = set(at_once)
    return [whole, *(one for one in steps if one not in together)]


def _chosen(
    state: RealtimeState, steps: list[Step], limits: RepairLimits, memory: Memory
) -> tuple[list[Step], list[Waiting]]:
    """Return the steps that fit together, by urgency, and why the others wait."""
    alone = {segment.name for segment in state.segments if only_copy(state, segment)}
    chosen: list[Step] = []
    held: list[Waiting] = []
    touched: set[str] = set()
    uploaded = 0

    def urgency(step: Step) -> int:
        return 0 if step.kind in _UPLOADS and alone & set(step.segments) else _URGENCY[step.kind]

    for step in sorted(steps, key=urgency):
        if touched & set(step.segments):
            continue  # a more urgent one of the same segment was taken
        too_much = uploaded + step.size_bytes > limits.upload_bytes
        why: str | None = None
        if step.kind in _UPLOADS and uploaded and too_much:
            why = f"no more than {limits.upload_bytes:,} bytes are uploaded at once"
        elif len(chosen) >= limits.steps:
            why = f"no more than {plural(limits.steps, 'step')} at once"
        elif (other := next((c for c in chosen if _disturb(state, c, step)), None)) is not None:
            why = f"{other.kind} is done first: one of the two works on the whole table"
        wait = _tried(state, step, limits, memory) or _risky(state, step)
        if wait is None and why is not None:
            wait = Waiting(_subject(step), why)
        if wait is not None:
            held.append(wait)
            continue
        if step.kind in _UPLOADS:
            step = replace(step, deadline_s=step.deadline_s + uploaded / SLOW_UPLOAD_BYTES_PER_S)
        chosen.append(step)
        touched |= set(step.segments)
        uploaded += step.size_bytes
    return chosen, held


def _tried(state: RealtimeState, step: Step, limits: RepairLimits, memory: Memory) -> Waiting | None:
    """Return why a step waits for an earlier try, its own or another's; None when it need not."""
    now = state.read_ms
    busy = [
        tried.until_ms
        for tried in memory.tried.values()
        if tried.until_ms > now
        and (not set(tried.segments).isdisjoint(step.segments) or _disturb(state, tried, step))
    ]
    if busy:
        return Waiting(_subject(step), "an earlier start may still be in progress", max(busy))
    again = memory.again_at_ms(step, limits)
    if again is not None and again > now:
        times = memory.times(step)
        return Waiting(
            _subject(step),
            f"{step.kind} was started {plural(times, 'time')} and has had no effect yet",
            again,
        )
    return None


def _disturb(state: RealtimeState, one: Step | Try, other: Step | Try) -> bool:
    """Return whether one of the two is a validation of the whole table that would do the other's repair."""
    return _meddles(state, one, other) or _meddles(state, other, one)


def _meddles(state: RealtimeState, one: Step | Try, other: Step | Try) -> bool:
    if one.means not in VALIDATIONS:
        return False
    if other.means in VALIDATIONS or (one.means is Means.SEGMENT_VALIDATION and other.kind in _UPLOADS):
        return True
    return other.kind in (StepKind.RESET, StepKind.REINGEST) and validation_resets(state)


def _risky(state: RealtimeState, step: Step) -> Waiting | None:
    """Return a wait where a validation would reset replicas that have rows which only servers have."""
    if step.means not in VALIDATIONS or not validation_resets(state):
        return None
    for segment in state.segments:
        broken = any(replica.external == "ERROR" for replica in segment.replicas)
        if broken and without_tar(segment) and state.live_copies(segment):
            return Waiting(
                _subject(step),
                f"a validation would take down every replica of {segment.name}, which only "
                "servers have; Pinot's own next validation does so all the same",
            )
    return None


def _subject(step: Step) -> str:
    if step.segments:
        return step.segments[0] if len(step.segments) == 1 else plural(len(step.segments), "segment")
    return ", ".join(f"partition {p}" for p in step.partitions) or str(step.kind)
