"""Checks of the segments' copies: in the deep store, on servers, only one left, replicas in ERROR, and
replicas that Helix does not move. Pure; docs/design/realtime.md#v4.
"""

from __future__ import annotations

from collections.abc import Mapping

from pinot_assets.core.check_result import CheckResult, Severity, megabytes, problem_if, result_of, some
from pinot_assets.core.text import counted, plural, plural_are
from pinot_assets.realtime.health.check import COPIES, NODES, check, repair_plan
from pinot_assets.realtime.health.recovery import Recovery, recoveries, stream_holds
from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS
from pinot_assets.realtime.model.state import (
    SETTLED_MS,
    Copy,
    LlcSegment,
    RealtimeState,
    Replica,
    SegmentStatus,
)

_SERVING = {"ONLINE": ("ONLINE",), "CONSUMING": ("CONSUMING", "ONLINE")}


@check("Every committed segment is in the deep store after 300 s.", *NODES)
def download_urls(state: RealtimeState) -> CheckResult:
    """Every committed segment is in the deep store once Pinot's 300 s are over."""
    committed = _committed(state)
    of = {copy: [s for s in committed if s.copy is copy] for copy in Copy}
    old = [s.name for s in of[Copy.PEERS_ONLY] if state.is_older(s, COMPLETION_WINDOW_MS)]
    nowhere = [s.name for s in of[Copy.NEVER_SET] if s.status is not SegmentStatus.COMMITTING]
    size = megabytes(sum(s.size_bytes or 0 for s in of[Copy.PEERS_ONLY]))
    return result_of(
        [
            *problem_if(
                nowhere,
                f"{len(nowhere):,} committed segments have no URL at all ({some(nowhere)})",
                f"read GET /segments/{state.table}/{some(nowhere[:1])}/metadata: Pinot itself "
                "never writes this",
                Severity.ERROR,
            ),
            *problem_if(
                old,
                f"{len(old):,} committed segments are only on servers, {size} ({some(old)})",
                repair_plan(state),
            ),
        ],
        expected=len(committed),
        found=len(of[Copy.DEEP_STORE]),
        good=f"{len(of[Copy.DEEP_STORE]):,} committed segments are in the deep store"
        + (f", {len(of[Copy.PEERS_ONLY]):,} were committed past it just now" if of[Copy.PEERS_ONLY] else ""),
        numbers={
            "deep_store": len(of[Copy.DEEP_STORE]),
            "peers_only": len(of[Copy.PEERS_ONLY]),
            "never_set": len(of[Copy.NEVER_SET]),
        },
    )


def on_few_servers(state: RealtimeState) -> Mapping[str, tuple[str, ...]]:
    """Return the segments outside the deep store on at most one live server: segment → that server, or none.

    Segments that are still being consumed are left out: the stream has them.
    """
    return {
        segment.name: copies
        for segment in _committed(state)
        if segment.copy is not Copy.DEEP_STORE and len(copies := state.live_copies(segment)) <= 1
    }


@check("No committed segment depends on a single server.", *COPIES)
def only_copies(state: RealtimeState) -> CheckResult:
    """No committed segment depends on a single server."""
    holders = {name: on for name, on in on_few_servers(state).items() if _judged(state, state.by_name[name])}
    gone = [name for name, copies in holders.items() if not copies]
    single = {name: copies[0] for name, copies in holders.items() if copies}
    past = [name for name in single if stream_holds(state, state.by_name[name]) is False]
    servers = some(sorted(set(single.values())))
    return result_of(
        [
            *problem_if(
                gone,
                f"{len(gone):,} committed segments have no copy on a live server ({some(gone)})",
                "start the servers again that had them; do not delete their data",
                Severity.ERROR,
            ),
            *problem_if(
                single,
                f"{len(single):,} committed segments are only on one server "
                f"({some(list(single))}; {servers}), {len(past):,} of them are no longer in the "
                "stream",
                f"{repair_plan(state)}; keep {servers} running",
                Severity.ERROR if past else Severity.WARN,
            ),
        ],
        expected=0,
        found=len(gone) + len(single),
        good="every committed segment is in the deep store or on two servers",
        numbers={
            "only_copies": len(single),
            "only_copies_past_the_stream": len(past),
            "without_a_copy": len(gone),
        },
    )


def _judged(state: RealtimeState, segment: LlcSegment) -> bool:
    """Return whether a missing copy counts: a commit that still builds has none yet, even after its 300 s."""
    if segment.status is not SegmentStatus.COMMITTING:
        return state.is_older(segment, SETTLED_MS)
    building = any(_lives(state, replica) for replica in segment.in_state("CONSUMING"))
    return state.is_older(segment, COMPLETION_WINDOW_MS) and not building


def _lives(state: RealtimeState, replica: Replica) -> bool:
    server = state.servers.get(replica.server)
    return server is None or server.alive


@check("Every replica in the ideal state is served.", "segments", "external", "servers")
def replicas(state: RealtimeState) -> CheckResult:
    """Every replica that the ideal state wants is served."""
    expected = serving = 0
    settled = [segment for segment in state.segments if state.is_older(segment, SETTLED_MS)]
    young = len(state.segments) - len(settled)
    unserved: list[str] = []
    down: list[str] = []
    for segment in settled:
        asked = [r for r in segment.replicas if r.ideal in _SERVING]
        bad = [r for r in asked if not _lives(state, r) or r.external not in _SERVING[r.ideal or ""]]
        down += [f"{segment.name} on {r.server}: {r.external or 'no state'}" for r in bad]
        expected += len(asked)
        serving += len(asked) - len(bad)
        if asked and len(bad) == len(asked):
            unserved.append(segment.name)
    return result_of(
        [
            *problem_if(
                unserved,
                f"no replica serves {plural(len(unserved), 'segment')} ({some(unserved)})",
                repair_plan(state),
                Severity.ERROR,
            ),
            *problem_if(
                down,
                f"{plural_are(len(down), 'replica')} down: {some(down)}",
                "check the servers that are down or in ERROR; see the other checks",
            ),
        ],
        expected=expected,
        found=serving,
        good=f"{plural_are(serving, 'replica')} served"
        + (f"; {plural_are(young, 'segment')} just being made" if young else ""),
        numbers={"segments": len(state.segments), "unserved": len(unserved), "replicas_down": len(down)},
    )


def _committed(state: RealtimeState) -> list[LlcSegment]:
    """Return the segments whose end is fixed, so that a copy should exist."""
    return [
        segment
        for segment in state.segments
        if segment.in_ideal_state and (segment.completed or segment.status is SegmentStatus.COMMITTING)
    ]


@check("No replica is in ERROR.", *COPIES)
def error_segments(state: RealtimeState) -> CheckResult:
    """No replica is in ERROR. If one is, the result names what brings the segment back, and who does it."""
    in_error = list(recoveries(state))
    lost = [one for one in in_error if not one.recoverable]
    ours = [one for one in in_error if one.recoverable and not one.by_pinot]
    waits = [one for one in in_error if one.recoverable and one.by_pinot]
    repair = repair_plan(state)
    minutes = state.cluster.validation_period_s // 60
    ways = some([f"{one.segment.name}: {one.way}" for one in waits])
    return result_of(
        [
            *problem_if(
                lost,
                f"{counted(len(lost), 'segment in ERROR is', 'segments in ERROR are')} lost or "
                f"incomplete without your help ({_ways_and_whys(lost)})",
                repair,
                Severity.ERROR,
            ),
            *problem_if(
                ours,
                f"{plural(len(ours), 'segment')} in ERROR can be repaired, but not by Pinot "
                f"itself ({_ways_and_whys(ours)})",
                repair,
            ),
            *problem_if(
                waits,
                f"{plural(len(waits), 'segment')} in ERROR: Pinot tries again within {minutes} min ({ways})",
                repair,
            ),
        ],
        expected=0,
        found=len(in_error),
        good="no replica is in ERROR",
        numbers={
            "segments_in_error": len(in_error),
            "unrecoverable": len(lost),
            "left_to_us": len(ours),
            "left_to_pinot": len(waits),
        },
    )


def _ways_and_whys(in_error: list[Recovery]) -> str:
    return some([f"{one.segment.name}: {one.way}, {one.why}" for one in in_error])


@check("Every replica is where it should be, or a message about it waits.", *COPIES, "pending")
def replicas_not_moved(state: RealtimeState) -> CheckResult:
    """No replica on a serving server is OFFLINE or without a state, unless a message about it waits."""
    unmoved = [
        (segment.name, replica.server)
        for segment in state.segments
        if state.is_older(segment, SETTLED_MS)
        for replica in segment.replicas
        if replica.ideal in ("ONLINE", "CONSUMING")
        and replica.external in ("OFFLINE", None)
        and not replica.pending
        and (server := state.servers.get(replica.server)) is not None
        and server.serves
    ]
    first = min((server for _, server in unmoved), default="")
    return result_of(
        problem_if(
            unmoved,
            (f"{plural(len(unmoved), 'replica')} OFFLINE that should not be, and no message about it waits: ")
            + some([f"{name} on {server}" for name, server in unmoved]),
            # Measured on 1.5.1: neither a reset nor a rebalance moved them.
            f"restart only {first}, then look again: a reset does nothing here",
            Severity.ERROR,
        ),
        expected=0,
        found=len(unmoved),
        good="every replica is where it should be, or on its way",
        numbers={"replicas_not_moved": len(unmoved)},
    )
