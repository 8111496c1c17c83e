"""Rules for segments whose end is fixed: COMMITTING, DONE, UPLOADED.

Steps of one segment are alternatives: the planner takes the most urgent one that may be taken now.
"""

from __future__ import annotations

from collections.abc import Iterator

from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, SegmentStatus
from pinot_assets.realtime.repair.facts import (
    SET_A_STORE,
    admin_url,
    by_readiness,
    expires_soon,
    has_store,
    in_error,
    on_dead_servers,
    size_bytes,
    young,
)
from pinot_assets.realtime.repair.lost import lost
from pinot_assets.realtime.repair.means import finish_means, upload_means
from pinot_assets.realtime.repair.model import Means, RepairItem, Step, StepKind, Unrepairable, Waiting

RESET_DEADLINE_S = 180.0
SPARE_S = 60.0
"""What a step may take beyond Pinot's own time-outs: queues, the external view's delay."""


def completed(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    """A segment that never changes any more: is its tar stored, and do its servers have it?"""
    if segment.copy is not Copy.DEEP_STORE:
        if state.live_copies(segment):
            yield from _upload(state, segment)
        else:
            yield from _nowhere(state, segment)
    yield from _resets(state, segment)


def committing(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    """A pauseless commit whose end never came (docs/design/realtime.md#s5 and #v3)."""
    wait = young(state, segment)
    if wait is not None:
        # Every pauseless commit is COMMITTING for a while; it is no trouble unless a replica says so.
        if in_error(state, segment):
            yield wait
    elif not state.live_copies(segment):
        yield from lost(state, segment)
    else:
        why = f"COMMITTING for {_minutes(state, segment)} although {_servers(state, segment)} has it"
        yield _stored_by(state, segment, StepKind.FINISH, finish_means(state), why)
        yield from _resets(state, segment)


def _upload(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    wait = _commit_goes_on(state, segment)
    if wait is not None:
        yield wait
        return
    if expires_soon(state, segment):
        yield Waiting(segment.name, "only servers have it, and retention deletes it within the hour")
        return
    means = upload_means(state)
    # An upload that is not forced heeds only DONE segments whose URL is empty, not those that never had one.
    if segment.copy is Copy.NEVER_SET or segment.status is not SegmentStatus.DONE:
        means = Means.FORCED if means is Means.CONTROLLER else Means.SERVER
    yield _stored_by(
        state, segment, StepKind.UPLOAD, means, f"only servers have it ({_servers(state, segment)})"
    )


def _commit_goes_on(state: RealtimeState, segment: LlcSegment) -> Waiting | None:
    """Why its upload waits still: its commit may write the node again, or Pinot would not upload it.

    A blocking commit is over once the ideal state has the segment ONLINE, and Pinot itself then uploads it at
    any age; nothing younger than 300 s of a pauseless table (`shouldSkipForPauselessMode`).
    """
    over = all(replica.ideal != "CONSUMING" for replica in segment.replicas)
    return None if over and not state.settings.pauseless else young(state, segment)


def _stored_by(
    state: RealtimeState, segment: LlcSegment, kind: StepKind, means: Means, why: str
) -> Step | Unrepairable:
    able = [server for server in state.live_copies(segment) if has_store(state, server)]
    if not able:
        return Unrepairable(
            segment.name, f"{why}; none of these has a segment store to put it in", SET_A_STORE
        )
    server = None
    if means is Means.SERVER:
        reached = [s for s in able if admin_url(state, s)]
        server = min(reached, key=lambda s: by_readiness(state, s), default=None)
        if server is None:
            return Unrepairable(
                segment.name,
                f"{why}; the admin address of none of these is known",
                "see that the instance configs name adminPort, and that this machine reaches it",
            )
    size = size_bytes(state, segment)
    deadline = state.cluster.upload_timeout_ms / 1000 + SPARE_S
    return Step(kind, means, why, (segment.name,), server, size_bytes=size, deadline_s=deadline)


def _nowhere(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    """No tar, and no live server has it loaded."""
    dead = on_dead_servers(state, segment)
    coming = [r.server for r in segment.replicas if r.external != "ERROR" and r.server not in dead]
    if dead:
        yield Unrepairable(
            segment.name,
            f"it is not in the deep store, and the servers that may have it are down: {', '.join(dead)}",
            "start one of them with its disk; do not rebalance, drop the server or delete the segment before",
        )
    elif coming:
        yield Waiting(segment.name, f"{', '.join(coming)} may still load it from its own disk")


def _resets(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    """Replicas in ERROR, one after the other: never the whole segment, which would take healthy ones down."""
    for replica in in_error(state, segment):
        if replica.pending:
            yield Waiting(segment.name, f"{replica.server} has a message about it, and resets nothing before")
            continue
        if segment.copy is Copy.DEEP_STORE:
            source = "the deep store has it"
        elif state.live_copies(segment) and state.settings.peer_scheme is not None:
            source = f"{_servers(state, segment)} has it"
        elif state.live_copies(segment):
            # It could load it from nowhere, and holds nothing that the live copy does not.
            continue
        else:
            source = "its own disk may have it"
        yield Step(
            StepKind.RESET,
            Means.CONTROLLER_RESET,
            f"ERROR on {replica.server}, and {source}",
            (segment.name,),
            replica.server,
            deadline_s=_load_s(state, segment),
        )


def _load_s(state: RealtimeState, segment: LlcSegment) -> float:
    """A server waits for a COMMITTING one: `realtime.segment.pauseless.download.timeoutSeconds`."""
    if segment.copy is Copy.DEEP_STORE:
        return RESET_DEADLINE_S
    return max(RESET_DEADLINE_S, state.settings.download_timeout_s) + SPARE_S


def _servers(state: RealtimeState, segment: LlcSegment) -> str:
    return ", ".join(state.live_copies(segment))


def _minutes(state: RealtimeState, segment: LlcSegment) -> str:
    age = state.age_ms(segment)
    return f"{(age or 0) / 60_000:.0f} min"
