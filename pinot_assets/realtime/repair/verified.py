"""Whether a step's effect has come, from a state read after it. Pinot's answer to the call proves nothing."""

from __future__ import annotations

from enum import Enum

from pinot_assets.realtime.model.state import Copy, RealtimeState, Segment, Status
from pinot_assets.realtime.repair.model import Kind, Step


class Verdict(Enum):
    """What the new state says of a step."""

    DONE = "done"
    NOT_YET = "not yet"
    UNKNOWN = "not known"
    """What it is seen by could not be read."""
    GONE = "gone"
    """Its segment or replica is no longer there: retention, a delete or a rebalance took it."""


_SEEN_BY = {
    Kind.UNLIST: {"committing_listed"},
    Kind.SWEEP: {"tmp_uploads"},
    Kind.RESET: {"segments", "external"},
    Kind.RESTART: {"segments", "external"},
}


def verified(step: Step, state: RealtimeState) -> Verdict:
    """What that state says of the step.

    :param state: read after the step was begun.
    """
    if _SEEN_BY.get(step.kind, {"segments"}) & state.unread.keys():
        return Verdict.UNKNOWN
    match step.kind:
        case Kind.UNLIST:
            return _verdict(state.committing_listed.isdisjoint(step.names))
        case Kind.SWEEP:
            return _verdict({upload.name for upload in state.tmp_uploads}.isdisjoint(step.names))
        case Kind.VALIDATE:
            latest = state.latest()
            return _verdict(all(_is_consumed(latest.get(partition)) for partition in step.partitions))
        case _:
            return _of_segments(step, state)


def _of_segments(step: Step, state: RealtimeState) -> Verdict:
    named = set(step.segments)
    there = [segment for segment in state.segments if segment.name in named and segment.stored]
    if not there:
        return Verdict.GONE
    if step.kind in (Kind.RESET, Kind.RESTART):
        assert step.server is not None
        verdicts = {_loaded(segment, step.server) for segment in there}
        if Verdict.NOT_YET in verdicts:
            return Verdict.NOT_YET
        return Verdict.DONE if Verdict.DONE in verdicts else Verdict.GONE
    return _verdict(all(_is_stored(segment) for segment in there))


def _is_stored(segment: Segment) -> bool:
    return segment.status is not None and segment.status.completed and segment.copy is Copy.DEEP_STORE


def _loaded(segment: Segment, server: str) -> Verdict:
    replica = next((r for r in segment.replicas if r.server == server), None)
    if replica is None or replica.ideal not in ("ONLINE", "CONSUMING"):
        return Verdict.GONE
    return _verdict(replica.external == replica.ideal)


def _is_consumed(segment: Segment | None) -> bool:
    return (
        segment is not None
        and segment.status is Status.IN_PROGRESS
        and any(replica.ideal == "CONSUMING" for replica in segment.replicas)
    )


def _verdict(done: bool) -> Verdict:
    return Verdict.DONE if done else Verdict.NOT_YET
