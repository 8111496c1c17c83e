"""What brings a segment in ERROR back, and whether Pinot does it by itself. Pure.

Pinot's own rule is in its validation manager (docs/design/realtime.md#v4), and uses only states. Our rule
also checks whether a copy is left, and whether the stream still holds the offsets: re-ingesting offsets that
have expired commits a shorter segment without an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pinot_assets.core.untrusted import whole_number
from pinot_assets.realtime.model.settings import reingests, resets_errors
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, SegmentStatus

ERROR = "ERROR"


class RecoveryWay(StrEnum):
    """How a segment comes back."""

    RESET = "reset"
    """Its bad replicas load it again: from the deep store, from a peer, or from the stream."""
    UPLOAD_THEN_RESET = "upload, then reset"
    """A copy exists, but the other servers can get it only from the deep store."""
    REINGEST = "re-ingest"
    """A server reads the closed range of offsets again."""
    BRING_BACK = "start a server again"
    """Only servers that are away have copies."""
    CONSUME_AGAIN = "delete and consume again"
    """By hand: everything from this segment on is deleted and read again in order."""
    NONE = "none"
    """Its rows are lost."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """How one segment with a replica in ERROR comes back.

    :ivar by_pinot: whether Pinot's validation manager acts on it.
    :ivar complete: whether every row comes back; False where offsets have left the stream.
    """

    segment: LlcSegment
    way: RecoveryWay
    why: str
    by_pinot: bool
    complete: bool = True

    @property
    def recoverable(self) -> bool:
        """Return whether it comes back complete without a person deciding what to give up."""
        return self.complete and self.way not in (RecoveryWay.CONSUME_AGAIN, RecoveryWay.NONE)


def recoveries(state: RealtimeState) -> Iterator[Recovery]:
    """Yield the recovery of every segment that has a replica in ERROR."""
    return (recovery(state, segment) for segment in state.segments if segment.in_state(ERROR))


def recovery(state: RealtimeState, segment: LlcSegment) -> Recovery:
    """Return what brings a segment in ERROR back."""
    way, why, complete = _way(state, segment)
    # Whether the validation manager resets or re-ingests it, not whether that helps.
    by_pinot = (
        resets_errors(state.settings, state.cluster)
        and segment.in_ideal_state
        and segment.stored
        and (segment.status is not SegmentStatus.IN_PROGRESS or all_in_error(segment))
    )
    return Recovery(segment, way, why, by_pinot, complete)


def all_in_error(segment: LlcSegment) -> bool:
    """Return whether every replica in the external view is in ERROR; Pinot counts the same way."""
    shown = [replica for replica in segment.replicas if replica.external is not None]
    return bool(shown) and all(replica.external == ERROR for replica in shown)


def stream_holds(state: RealtimeState, segment: LlcSegment) -> bool | None:
    """Return whether the stream still holds the segment's first offset; None where that is not known."""
    held = state.stream.get(segment.partition)
    start = offset(segment.start_offset)
    return None if held is None or start is None else held.earliest <= start


def offset(text: str | None) -> int | None:
    """Return an offset as a number; None if it is not one (not every stream uses numbers)."""
    return None if text is None else whole_number(text)


def _way(state: RealtimeState, segment: LlcSegment) -> tuple[RecoveryWay, str, bool]:
    holds = stream_holds(state, segment)
    if segment.status is SegmentStatus.IN_PROGRESS:
        if holds is not False:
            return RecoveryWay.RESET, "its rows are consumed from the stream again", True
        begins, lost = state.stream[segment.partition].earliest, segment.start_offset
        return (
            RecoveryWay.RESET,
            f"consumption continues at offset {begins}, and the rows from {lost} on are lost",
            False,
        )
    if segment.copy is Copy.DEEP_STORE:
        return RecoveryWay.RESET, "the deep store has it", True
    if copies := state.live_copies(segment):
        if state.settings.bypasses:
            return RecoveryWay.RESET, f"{copies[0]} has it", True
        return RecoveryWay.UPLOAD_THEN_RESET, f"{copies[0]} has it, and the table has no peer scheme", True
    alive = {name for name, server in state.servers.items() if server.alive}
    away = [r.server for r in segment.replicas if r.ideal is not None and r.server not in alive]
    only_away = f"only {' and '.join(away)} may still have it"
    if segment.status is SegmentStatus.COMMITTING:
        if holds is False and away:
            return RecoveryWay.BRING_BACK, f"{only_away}: the stream no longer has its rows", True
        return _committing(state, segment)
    if away:
        return RecoveryWay.BRING_BACK, only_away, True
    # A reset may still find it on a disk, where only loading failed and the copy is intact.
    return _from_the_stream(state, segment, "neither the deep store nor a server serves it")


def _committing(state: RealtimeState, segment: LlcSegment) -> tuple[RecoveryWay, str, bool]:
    if stream_holds(state, segment) is False:
        return RecoveryWay.NONE, "no server has it, and its offsets are no longer in the stream", False
    if not reingests(state.settings, state.cluster):
        return _from_the_stream(state, segment, "rows of this table must be read in order")
    why = "the stream does"
    if not all_in_error(segment):
        why = "and Pinot re-ingests only while all of them are in ERROR at once"
    return RecoveryWay.REINGEST, f"no replica has it, {why}", True


def _from_the_stream(state: RealtimeState, segment: LlcSegment, why: str) -> tuple[RecoveryWay, str, bool]:
    holds = stream_holds(state, segment)
    if holds is False:
        return RecoveryWay.NONE, f"{why}, and its offsets are no longer in the stream", False
    note = "the stream does" if holds else "whether the stream does is not known"
    return RecoveryWay.CONSUME_AGAIN, f"{why}; {note}", True
