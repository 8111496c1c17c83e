"""A REALTIME table's numbers at one look, for plots: the same names at every look. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pinot_assets.realtime.health.consuming import by_server, lags_ms
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, SegmentStatus


def numbers(state: RealtimeState) -> Mapping[str, int | float]:
    """What a look found, as far as it was read: a number that is not known is left out, for zeros would lie.

    `committed_…`: segments that never change any more; `only_with_peers` of them the deep store has no copy
    of; `oldest_commit_s` is the age of the oldest COMMITTING one, 0 where there is none. `lag_s` is that of
    the slowest consumer (`lags_ms`).
    """
    found: dict[str, int | float] = {}
    if "segments" not in state.unread:
        found |= _of_segments(state)
    if "external" not in state.unread:
        found["replicas_in_error"] = sum(len(segment.in_state("ERROR")) for segment in state.segments)
    if "servers" not in state.unread:
        found["servers"] = len(state.servers)
        found["servers_that_serve"] = sum(server.serves for server in state.servers.values())
    if lags := [late for each in by_server(state).values() for late in lags_ms(state, each).values()]:
        found["lag_s"] = max(lags) / 1000
    unread = _unread_messages(state)
    if unread is not None:
        found["messages_to_consume"] = unread
    if state.queryable:
        found["rows_queryable"] = min(state.queryable.values())
    return found


def _of_segments(state: RealtimeState) -> dict[str, int | float]:
    by_status = Counter(segment.status for segment in state.segments)
    committed = [one for one in state.segments if one.status is not None and one.status.completed]
    ages = [state.age_ms(one) for one in state.segments if one.status is SegmentStatus.COMMITTING]
    return {
        "segments": len(state.segments),
        "consuming_segments": by_status[SegmentStatus.IN_PROGRESS],
        "committing_segments": by_status[SegmentStatus.COMMITTING],
        "oldest_commit_s": max((age for age in ages if age is not None), default=0) / 1000,
        "committed_segments": len(committed),
        **_sum("committed_rows", [one.total_docs for one in committed]),
        **_sum("committed_bytes", [one.size_bytes for one in committed]),  # not told before 1.0
        "only_with_peers": sum(one.copy is not Copy.DEEP_STORE for one in committed),
        "paused": int(state.pause.whole),
    }


def _sum(name: str, values: Sequence[int | None]) -> Mapping[str, int]:
    """Nothing where one of them is not known."""
    known = [value for value in values if value is not None]
    return {name: sum(known)} if len(known) == len(values) else {}


def _unread_messages(state: RealtimeState) -> int | None:
    """Messages between what was consumed, by the server that is furthest, and the stream's end."""
    behind = 0
    for partition, segment in state.latest().items():
        end = state.stream.get(partition)
        furthest = _consumed(state, segment)
        if end is None or furthest is None:
            return None
        behind += max(0, end.latest - furthest)
    return behind if state.stream else None


def _consumed(state: RealtimeState, segment: LlcSegment) -> int | None:
    offsets = [one.offset for one in state.consumption if one.segment == segment.name]
    return max((offset for offset in offsets if offset is not None), default=None)
