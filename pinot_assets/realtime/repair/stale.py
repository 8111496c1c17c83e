"""What was left behind and harms nobody, but hides what does: listed names, uploads that nobody moved."""

from __future__ import annotations

from collections.abc import Iterator

from pinot_assets.core.text import counted, plural
from pinot_assets.realtime.model.names import files_named, upload_of
from pinot_assets.realtime.model.state import Copy, RealtimeState, SegmentStatus, TmpUpload
from pinot_assets.realtime.repair.facts import young
from pinot_assets.realtime.repair.means import keeps_committing_list
from pinot_assets.realtime.repair.model import Means, Step, StepKind, Unrepairable

LEFT_OVER_MS = 3_600_000
"""`tmpFileRetentionInSeconds`: when Pinot itself takes a `.tmp.` file for left over."""

MORE = 1.1
"""By how much larger than its segment a left-over has to be to hold more: gzip and clocks make small odds."""


def stale(state: RealtimeState) -> Iterator[Step | Unrepairable]:
    """At most one step of each kind, and a word on each left-over that may hold what its segment lacks."""
    listed = _finished_but_listed(state)
    if listed and keeps_committing_list(state):
        yield Step(
            StepKind.UNLIST,
            Means.SEGMENT_VALIDATION,
            f"{counted(len(listed), 'segment stands', 'segments stand')} in the list of "
            "committing ones without being so",
            names=listed,
        )
    sizes = {segment.name: segment.size_bytes for segment in state.segments}
    swept = []
    for upload in _left_over(state):
        name = str(upload_of(upload.name))
        size = sizes[name]
        if size is None or upload.size_bytes <= size * MORE:
            swept.append(upload.name)
            continue
        # Seen in the simulation: a commit that never ended, then read again from a stream that had forgotten
        # its rows. Pinot calls the empty segment DONE; the upload is the last that has them.
        yield Unrepairable(
            name,
            f"its left-over upload {upload.name} has {upload.size_bytes:,} bytes, it has {size:,}: "
            "the upload may have rows that it lacks",
            "compare their rows; upload it in the segment's place, or delete it by hand",
        )
    if swept:
        yield Step(
            StepKind.SWEEP,
            Means.STORE,
            f"{plural(len(swept), 'upload')} never moved into place, of what is stored whole",
            names=tuple(swept),
        )


def _finished_but_listed(state: RealtimeState) -> tuple[str, ...]:
    by_name = {segment.name: segment for segment in state.segments}
    return tuple(
        name
        for name in sorted(state.committing_listed)
        if (segment := by_name.get(name)) is None
        or (segment.status is not SegmentStatus.COMMITTING and young(state, segment) is None)
    )


def _left_over(state: RealtimeState) -> list[TmpUpload]:
    """Only files of segments that are stored elsewhere: one may be all that there is of any other."""
    stored = {
        s.name: s
        for s in state.segments
        if s.status is not None
        and s.status.completed
        and s.copy is Copy.DEEP_STORE
        and young(state, s) is None
    }
    used = files_named(segment.url for segment in state.segments)
    return [
        upload
        for upload in sorted(state.tmp_uploads, key=lambda upload: upload.name)
        if state.read_ms - upload.modified_ms > LEFT_OVER_MS
        and upload_of(upload.name) in stored
        and upload.name not in used
    ]
