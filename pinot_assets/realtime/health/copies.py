"""Where the copies of the segments are: deep store, servers, and those that have only one. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pinot_assets.core.check_result import (
    CheckProblem,
    CheckResult,
    Severity,
    check_result_of,
    megabytes,
    some,
)
from pinot_assets.core.text import plural_are
from pinot_assets.realtime.health.advice import repair_plan
from pinot_assets.realtime.health.age import past_window, settled
from pinot_assets.realtime.health.recovery import stream_holds
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, Replica, SegmentStatus

URLS = "download_urls"
ONLY_COPIES = "only_copies"
REPLICAS = "replicas"

_SERVING = {"ONLINE": ("ONLINE",), "CONSUMING": ("CONSUMING", "ONLINE")}


def download_urls(state: RealtimeState) -> CheckResult:
    """Every committed segment is in the deep store, past Pinot's 300 s."""
    of = {copy: [s for s in _committed(state) if s.copy is copy] for copy in Copy}
    old = [s.name for s in of[Copy.PEERS_ONLY] if past_window(state, s)]
    nowhere = [s.name for s in of[Copy.NEVER_SET] if s.status is not SegmentStatus.COMMITTING]
    problems = []
    if nowhere:
        problems.append(
            CheckProblem(
                f"{len(nowhere)} committed segments have no URL at all ({some(nowhere)})",
                f"look at GET /segments/{state.table}/{nowhere[0]}/metadata: Pinot itself never writes this",
                Severity.ERROR,
            )
        )
    if old:
        size = sum(s.size_bytes or 0 for s in of[Copy.PEERS_ONLY])
        problems.append(
            CheckProblem(
                f"{len(old)} committed segments are on servers only, {megabytes(size)} ({some(old)})",
                repair_plan(state),
            )
        )
    return check_result_of(
        URLS,
        problems,
        expected=len(_committed(state)),
        found=len(of[Copy.DEEP_STORE]),
        good=f"{len(of[Copy.DEEP_STORE])} committed segments are in the deep store"
        + (f", {len(of[Copy.PEERS_ONLY])} were committed past it just now" if of[Copy.PEERS_ONLY] else ""),
        numbers={
            "deep_store": len(of[Copy.DEEP_STORE]),
            "peers_only": len(of[Copy.PEERS_ONLY]),
            "never_set": len(of[Copy.NEVER_SET]),
        },
    )


def only_copies(state: RealtimeState) -> Mapping[str, tuple[str, ...]]:
    """Segments in no deep store and on at most one server that lives: segment → that server, or none.

    Those that are still being consumed are left out: the stream has them.
    """
    return {
        segment.name: copies
        for segment in _committed(state)
        if segment.copy is not Copy.DEEP_STORE and len(copies := state.live_copies(segment)) <= 1
    }


def only_copy(state: RealtimeState) -> CheckResult:
    """No committed segment hangs on a single server."""
    by_name = {segment.name: segment for segment in state.segments}
    found = {name: on for name, on in only_copies(state).items() if _judged(state, by_name[name])}
    gone = [name for name, copies in found.items() if not copies]
    single = {name: copies[0] for name, copies in found.items() if copies}
    past = [name for name in single if stream_holds(state, by_name[name]) is False]
    problems = []
    if gone:
        problems.append(
            CheckProblem(
                f"{len(gone)} committed segments have no copy that lives ({some(gone)})",
                "bring the servers back that had them; do not delete their data",
                Severity.ERROR,
            )
        )
    if single:
        servers = sorted(set(single.values()))
        problems.append(
            CheckProblem(
                f"{len(single)} committed segments are on one server only ({some(list(single))}; "
                f"{some(servers)}), {len(past)} of them are no longer in the stream",
                f"{repair_plan(state)}; keep {some(servers)} running",
                Severity.ERROR if past else Severity.WARN,
            )
        )
    return check_result_of(
        ONLY_COPIES,
        problems,
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
    """What a commit that runs has not built yet is no copy that went: it may take longer than its 300 s."""
    if segment.status is not SegmentStatus.COMMITTING:
        return settled(state, segment)
    building = segment.in_state("CONSUMING")
    return past_window(state, segment) and not any(_lives(state, replica) for replica in building)


def _lives(state: RealtimeState, replica: Replica) -> bool:
    server = state.servers.get(replica.server)
    return server is None or server.alive


def replicas(state: RealtimeState) -> CheckResult:
    """Every replica that the ideal state wants is served."""
    wanted = serving = 0
    young = sum(not settled(state, segment) for segment in state.segments)
    unserved: list[str] = []
    down: list[str] = []
    for segment in state.segments:
        good = 0
        asked = [r for r in segment.replicas if r.ideal in _SERVING and settled(state, segment)]
        for replica in asked:
            if _lives(state, replica) and replica.external in _SERVING[replica.ideal or ""]:
                good += 1
            else:
                down.append(f"{segment.name} on {replica.server}: {replica.external or 'no state'}")
        wanted += len(asked)
        serving += good
        if asked and not good:
            unserved.append(segment.name)
    problems = []
    if unserved:
        problems.append(
            CheckProblem(
                f"{plural_are(len(unserved), 'segment')} served by no replica ({some(unserved)})",
                repair_plan(state),
                Severity.ERROR,
            )
        )
    if down:
        problems.append(
            CheckProblem(
                f"{plural_are(len(down), 'replica')} down: {some(down)}",
                "look at the servers that are away or in ERROR; see the other checks",
            )
        )
    return check_result_of(
        REPLICAS,
        problems,
        expected=wanted,
        found=serving,
        good=f"{plural_are(serving, 'replica')} served"
        + (f"; {plural_are(young, 'segment')} just being made" if young else ""),
        numbers={"segments": len(state.segments), "unserved": len(unserved), "replicas_down": len(down)},
    )


def _committed(state: RealtimeState) -> list[LlcSegment]:
    """What is closed and should have a copy somewhere."""
    return [
        segment
        for segment in state.segments
        if segment.in_ideal_state
        and segment.status is not None
        and (segment.status.completed or segment.status is SegmentStatus.COMMITTING)
    ]
