"""The segments of a REALTIME table as rows: for people, for other programs, for a table in Dagster. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pinot_assets.realtime.health.recovery import recoveries
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """One segment.

    :ivar status: IN_PROGRESS, COMMITTING, DONE, UPLOADED, or empty where its node says none.
    :ivar age_s: since its node was written, None where that is not known.
    :ivar copy: where its tar is.
    :ivar replicas: server → state in the external view; `none` where it reports none.
    :ivar live_copies: servers that live and have loaded it.
    :ivar rows: committed ones.
    :ivar note: what is wrong with it, if anything.
    """

    segment: str
    partition: int
    sequence: int
    status: str
    age_s: float | None
    copy: Copy
    replicas: Mapping[str, str]
    live_copies: int
    rows: int | None
    size_bytes: int | None
    start_offset: str | None
    end_offset: str | None
    note: str = ""


def segment_rows(state: RealtimeState) -> tuple[SegmentRow, ...]:
    """A row for each segment, by partition and sequence."""
    broken = {one.segment.name: f"{one.way}: {one.why}" for one in recoveries(state)}
    return tuple(
        SegmentRow(
            segment=segment.name,
            partition=segment.partition,
            sequence=segment.sequence,
            status=segment.status or "",
            age_s=None if (age := state.age_ms(segment)) is None else age / 1000,
            copy=segment.copy,
            replicas={r.server: r.external or "none" for r in segment.replicas},
            live_copies=len(state.live_copies(segment)),
            rows=segment.total_docs,
            size_bytes=segment.size_bytes,
            start_offset=segment.start_offset,
            end_offset=segment.end_offset,
            note=broken.get(segment.name) or _note(segment),
        )
        for segment in state.segments
    )


def _note(segment: LlcSegment) -> str:
    if not segment.stored:
        return "it has no node"
    return "" if segment.in_ideal_state else "not in the ideal state"
