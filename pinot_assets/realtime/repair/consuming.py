"""Rules for what is consumed: replicas in ERROR, and partitions that nobody reads any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pinot_assets.realtime.model.state import LlcSegment, RealtimeState, SegmentStatus
from pinot_assets.realtime.repair.facts import (
    in_error,
    is_up,
    lost_from_stream,
    recreate_means,
    young,
)
from pinot_assets.realtime.repair.model import Means, RepairItem, Step, StepKind, Unrepairable, Waiting

SAME_MOMENT_MS = 30_000
"""Nodes and ideal state are read one after the other: what looks odd may be a commit between."""


def in_progress(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    """Replicas in ERROR of a segment that is consumed.

    Pinot resets them only once all are; a single one is ours, and only while the stream still has what it
    has to read again: else it would consume fewer rows than the others and nobody would tell.
    """
    broken = in_error(state, segment)
    all_broken = all(r.external == "ERROR" for r in segment.replicas if r.ideal is not None)
    for replica in broken:
        if replica.pending:
            yield Waiting(segment.name, f"{replica.server} has a message about it, and resets nothing before")
        elif not all_broken and (wait := young(state, segment)) is not None:
            yield wait
        elif (gone := lost_from_stream(state, segment, segment.start_offset)) is not None:
            yield Unrepairable(
                segment.name,
                f"its consumer on {replica.server} is in ERROR, and would read fewer rows again: {gone}",
                "while another replica consumes, force a commit: the next segment starts on all replicas"
                if not all_broken
                else "make sure what the stream holds, then resume with `consumeFrom=smallest`",
            )
        else:
            yield Step(
                StepKind.RESET,
                Means.CONTROLLER_RESET,
                f"its consumer on {replica.server} is in ERROR",
                (segment.name,),
                replica.server,
            )
    some_consume = any(r.ideal == "CONSUMING" for r in segment.replicas)
    for replica in segment.replicas:
        if some_consume and replica.ideal == "OFFLINE" and is_up(state, replica.server):
            yield Unrepairable(
                segment.name,
                f"{replica.server} stopped consuming it (OFFLINE in the ideal state), the others go on",
                "it takes part again from the next segment on; `forceCommit` brings that about at once",
            )


@dataclass(frozen=True, slots=True)
class _Idle:
    """A partition that a validation sets going again.

    :ivar changes: the segment whose ideal state changes along; None where the next one is only added.
    """

    partition: int
    why: str
    means: Means = Means.VALIDATION
    changes: str | None = None


def unconsumed(state: RealtimeState) -> Iterator[RepairItem]:
    """Partitions that nobody consumes, as one validation of the table (docs/design/realtime.md#v2)."""
    if state.pause.whole:
        return
    idle: list[_Idle] = []
    latest = state.latest()
    for partition, segment in sorted(latest.items()):
        if state.pause.has_stream_of(partition):
            continue
        found = _stopped(state, segment)
        if isinstance(found, _Idle):
            idle.append(found)
            yield from _rows_gone(state, segment)
        elif found is not None:
            yield found
    new = sorted(p for p in set(state.stream) - set(latest) if not state.pause.has_stream_of(p))
    idle += [_Idle(partition, "the stream has it, the table does not") for partition in new]
    if idle:
        # Resuming runs the same validation, and recreates what is missing.
        resume = any(one.means is Means.RESUME for one in idle)
        yield Step(
            StepKind.VALIDATE,
            Means.RESUME if resume else Means.VALIDATION,
            "; ".join(f"partition {one.partition}: {one.why}" for one in idle[:5]),
            tuple(one.changes for one in idle if one.changes is not None),
            partitions=tuple(one.partition for one in idle),
        )


def _stopped(state: RealtimeState, segment: LlcSegment) -> _Idle | Unrepairable | Waiting | None:
    """Why nobody consumes the partition whose latest segment this is; None while somebody does, or will."""
    ideal = {r.ideal for r in segment.replicas if r.ideal is not None}
    name, partition = segment.name, segment.partition
    expected = SegmentStatus.COMMITTING if state.settings.pauseless else SegmentStatus.DONE
    if not segment.stored:
        return Unrepairable(name, "its node in the property store is gone", "delete the segment, then resume")
    if segment.status is None or (not ideal and segment.status is not SegmentStatus.IN_PROGRESS):
        return None  # refused already, as a segment
    if not ideal:
        wait = young(state, segment)
        return wait or _Idle(partition, "the next segment is not in the ideal state", changes=name)
    if "CONSUMING" in ideal:
        if segment.status is SegmentStatus.IN_PROGRESS:
            return None
        if segment.status is expected:
            wait = young(state, segment)
            return wait or _Idle(partition, f"{segment.status}, without a next segment", changes=name)
        return young(state, segment) or Unrepairable(
            name,
            f"it is {segment.status} without a next segment; Pinot mends that only of {expected} ones "
            f"while pauseless is {'on' if state.settings.pauseless else 'off'}",
            "switch pauseless back, repair, then switch it with `pinot-assets realtime pauseless`",
        )
    if ideal == {"OFFLINE"}:
        return _settled(state, segment) or _Idle(partition, "all replicas stopped")
    if ideal == {"ONLINE"} and segment.status is not SegmentStatus.IN_PROGRESS:
        wait = _settled(state, segment)
        return wait or _Idle(partition, "no segment after its last one", recreate_means(state))
    return Unrepairable(
        name,
        f"nobody consumes its partition: it is {segment.status}, and {', '.join(sorted(ideal))} in the "
        "ideal state; Pinot only reports that",
        "delete the segment if the stream still has its rows, then resume",
    )


def _settled(state: RealtimeState, segment: LlcSegment) -> Waiting | None:
    """Pinot mends these at once; we let a commit pass that went on while the state was read."""
    age = state.age_ms(segment)
    if age is not None and age < SAME_MOMENT_MS:
        return Waiting(
            segment.name, "it was written while the table was looked at", state.read_ms + SAME_MOMENT_MS
        )
    return None


def _rows_gone(state: RealtimeState, segment: LlcSegment) -> Iterator[Unrepairable]:
    """Going on loses nothing that is not lost already, but says how much that is."""
    if segment.partition not in state.stream:
        return
    again = all(r.ideal == "OFFLINE" for r in segment.replicas)
    offset = segment.start_offset if again or segment.end_offset is None else segment.end_offset
    gone = lost_from_stream(state, segment, offset)
    if gone is not None:
        yield Unrepairable(
            f"partition {segment.partition}",
            f"consumption goes on later than it stopped: {gone}",
            "those rows must come from elsewhere; raise the stream's retention above the worst repair time",
        )
