"""Segments in ERROR, and replicas that nobody moves. Pure; docs/design/realtime.md#v4."""

from __future__ import annotations

from pinot_assets.core.check_result import CheckProblem, CheckResult, Severity, check_result_of, some
from pinot_assets.core.text import counted, plural
from pinot_assets.realtime.health.advice import repair_plan
from pinot_assets.realtime.health.age import settled
from pinot_assets.realtime.health.recovery import recoveries
from pinot_assets.realtime.model.state import RealtimeState

ERRORS = "error_segments"
NOT_MOVED = "replicas_not_moved"


def error_segments(state: RealtimeState) -> CheckResult:
    """No replica is in ERROR; where one is: what brings the segment back, and who does it."""
    found = list(recoveries(state))
    lost = [one for one in found if not one.recoverable]
    ours = [one for one in found if one.recoverable and not one.by_pinot]
    waits = [one for one in found if one.recoverable and one.by_pinot]
    repair = repair_plan(state)
    problems = []
    if lost:
        told = some([f"{one.segment.name}: {one.way}, {one.why}" for one in lost])
        problems.append(
            CheckProblem(
                f"{counted(len(lost), 'segment in ERROR does', 'segments in ERROR do')} not come back "
                f"whole unaided ({told})",
                repair,
                Severity.ERROR,
            )
        )
    if ours:
        told = some([f"{one.segment.name}: {one.way}, {one.why}" for one in ours])
        problems.append(
            CheckProblem(
                f"{plural(len(ours), 'segment')} in ERROR can be mended, not by Pinot itself ({told})", repair
            )
        )
    if waits:
        told = some([f"{one.segment.name}: {one.way}" for one in waits])
        minutes = state.cluster.validation_period_s // 60
        problems.append(
            CheckProblem(
                f"{plural(len(waits), 'segment')} in ERROR: Pinot tries again within {minutes} min ({told})",
                repair,
            )
        )
    return check_result_of(
        ERRORS,
        problems,
        expected=0,
        found=len(found),
        good="no replica is in ERROR",
        numbers={
            "segments_in_error": len(found),
            "unrecoverable": len(lost),
            "left_to_us": len(ours),
            "left_to_pinot": len(waits),
        },
    )


def replicas_not_moved(state: RealtimeState) -> CheckResult:
    """No replica of a server that serves is OFFLINE, or without a state, while no message waits for it."""
    found: list[tuple[str, str]] = []
    for segment in state.segments:
        if not settled(state, segment):
            continue
        for replica in segment.replicas:
            server = state.servers.get(replica.server)
            if (
                replica.ideal in ("ONLINE", "CONSUMING")
                and replica.external in ("OFFLINE", None)
                and not replica.pending
                and server is not None
                and server.serves
            ):
                found.append((segment.name, replica.server))
    servers = sorted({server for _, server in found})
    problems = [
        CheckProblem(
            f"{plural(len(found), 'replica')} OFFLINE that should not be, with no message under way: "
            + some([f"{name} on {server}" for name, server in found]),
            # Measured on 1.5.1: neither a reset nor a rebalance moved them.
            f"restart {servers[0] if servers else ''} alone, then look again: a reset does nothing here",
            Severity.ERROR,
        )
    ]
    return check_result_of(
        NOT_MOVED,
        problems if found else [],
        expected=0,
        found=len(found),
        good="every replica is where it should be, or on its way",
        numbers={"replicas_not_moved": len(found)},
    )
