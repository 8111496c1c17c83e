"""How long commits take, read from the times at which their nodes were written. Pure.

A commit writes the segment's own node (step 1), the next one's (step 2) and the ideal state (step 3). On a
pauseless table the segment's own node is written once more at the end: from the next one's to that, it was
built and uploaded. Source: docs/design/realtime.md#s4 and #s5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS
from pinot_assets.realtime.model.state import LlcSegment, SegmentStatus
from pinot_assets.realtime.preflight.facts import CommitStart, CommitTimes

_SAME_COMMIT_MS: Final = 60_000
"""Between two nodes of one commit; what is longer was a pause or a repair."""
NEWEST: Final = 20
"""Segments of each partition that are judged: those before were made with other settings, perhaps."""


def pauseless_times(segments: Collection[LlcSegment]) -> CommitTimes | None:
    """How long build and upload take on a pauseless table; None before the first commit."""
    finished = _newest(segments)
    gaps = [-gap for gap in _gaps_ms(finished, segments) if gap <= 0]
    within = [gap for gap in gaps if gap <= COMPLETION_WINDOW_MS]
    return (
        CommitTimes(
            seconds=max(within) / 1000 if within else None,
            late=len(gaps) - len(within),
            largest_bytes=_largest(finished),
        )
        if finished
        else None
    )


def blocking_times(segments: Iterable[LlcSegment]) -> CommitTimes | None:
    """The same of a table whose commits do not show it: the sizes alone; None before the first commit."""
    finished = _newest(segments)
    return CommitTimes(None, 0, _largest(finished)) if finished else None


def commit_start(segments: Collection[LlcSegment], round_trip_s: float, ideal_s: float) -> CommitStart:
    """How long the controller takes to answer commitStart: it adds the segment to a list, writes two segment
    nodes between which it asks the stream, then reads and writes the ideal state.

    :param round_trip_s: of one small read of ZooKeeper through the controller.
    :param ideal_s: of reading the ideal state through it.
    """
    gaps = [gap / 1000 for gap in _gaps_ms(_newest(segments), segments) if 0 < gap <= _SAME_COMMIT_MS]
    slowest = max(gaps, default=0.0)
    how = f"{1000 * round_trip_s:.0f} ms a round trip, {1000 * ideal_s:.0f} ms for the ideal state"
    if slowest:
        how += f", {slowest:.2f} s between the segments' nodes of an earlier commit"
    return CommitStart(2 * round_trip_s + max(slowest, 2 * round_trip_s) + 2 * ideal_s, how)


def _gaps_ms(of: Iterable[LlcSegment], among: Iterable[LlcSegment]) -> Iterator[int]:
    """From a segment's last write to the making of its successor; below 0 where it was written later."""
    made = {(segment.partition, segment.sequence): segment.made_ms for segment in among}
    for segment in of:
        following = made.get((segment.partition, segment.sequence + 1))
        if following is not None and segment.modified_ms is not None:
            yield following - segment.modified_ms


def _newest(segments: Iterable[LlcSegment]) -> list[LlcSegment]:
    """The last finished ones of each partition."""
    by_partition: defaultdict[int, list[LlcSegment]] = defaultdict(list)
    for segment in sorted(segments, key=lambda one: one.sequence, reverse=True):
        of_it = by_partition[segment.partition]
        if segment.status is SegmentStatus.DONE and len(of_it) < NEWEST:
            of_it.append(segment)
    return [segment for found in by_partition.values() for segment in found]


def _largest(segments: Iterable[LlcSegment]) -> int:
    return max((segment.size_bytes or 0 for segment in segments), default=0)
