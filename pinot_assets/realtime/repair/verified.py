"""Whether a step's effect has come, from a state read after it. Pinot's answer to the call proves nothing."""

from __future__ import annotations

from enum import Enum

from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, SegmentStatus
from pinot_assets.realtime.repair.model import Step, StepKind


class Verification(Enum):
    """What the new state says of a step."""

    DONE = "done"
    NOT_YET = "not yet"
    UNKNOWN = "not known"
    """What it is seen by could not be read."""
    GONE = "gone"
    """Its segment or replica is no longer there: retention, a delete or a rebalance took it."""


_SEEN_BY = {
    StepKind.UNLIST: {"committing_listed"},
    StepKind.SWEEP: {"tmp_uploads"},
    StepKind.RESET: {"segments", "external"},
    StepKind.RESTART: {"segments", "external"},
}


def verified(step: Step, state: RealtimeState) -> Verification:
    """What that state says of the step.

    :param state: read after the step was begun.
    """
    if _SEEN_BY.get(step.kind, {"segments"}) & state.unread.keys():
        return Verification.UNKNOWN
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


def _of_segments(step: Step, state: RealtimeState) -> Verification:
    named = set(step.segments)
    there = [segment for segment in state.segments if segment.name in named and segment.stored]
    if not there:
        return Verification.GONE
    if step.kind in (StepKind.RESET, StepKind.RESTART):
        assert step.server is not None
        verdicts = {_loaded(segment, step.server) for segment in there}
        if Verification.NOT_YET in verdicts:
            return Verification.NOT_YET
        return Verification.DONE if Verification.DONE in verdicts else Verification.GONE
    return _verdict(all(_is_stored(segment) for segment in there))


def _is_stored(segment: LlcSegment) -> bool:
    return segment.status is not None and segment.status.completed and segment.copy is Copy.DEEP_STORE


def _loaded(segment: LlcSegment, server: str) -> Verification:
    replica = next((r for r in segment.replicas if r.server == server), None)
    if replica is None or replica.ideal not in ("ONLINE", "CONSUMING"):
        return Verification.GONE
    return _verdict(replica.external == replica.ideal)


def _is_consumed(segment: LlcSegment | None) -> bool:
    return (
        segment is not None
        and segment.status is SegmentStatus.IN_PROGRESS
        and any(replica.ideal == "CONSUMING" for replica in segment.replicas)
    )


def _verdict(done: bool) -> Verification:
    return Verification.DONE if done else Verification.NOT_YET
