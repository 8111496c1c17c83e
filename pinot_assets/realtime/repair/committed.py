"""Rules for segments whose end is fixed (COMMITTING, DONE, UPLOADED) and for what their commits left behind.

For a segment that no live server has loaded, the repair waits, or reads it again. Stale names in the list of
committing segments and left-over uploads do no harm, but they hide what does.

Steps of one segment are alternatives: the planner takes the most urgent one that is allowed now.
"""

from __future__ import annotations

from collections.abc import Iterator

from pinot_assets.core.text import counted
from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS, reingests
from pinot_assets.realtime.model.state import (
    Copy,
    LlcSegment,
    RealtimeState,
    SegmentStatus,
    files_named,
    upload_of,
)
from pinot_assets.realtime.repair import facts
from pinot_assets.realtime.repair.model import Means, RepairItem, Step, StepKind, Unrepairable, Waiting

RESET_DEADLINE_S = 180.0
SPARE_S = 60.0
"""Seconds that a step may take beyond Pinot's own time-outs: queues, the external view's delay."""


def completed(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    """Yield what a completed segment needs: its tar in the deep store, and its replicas out of ERROR."""
    if segment.copy is not Copy.DEEP_STORE:
        if state.live_copies(segment):
            yield from _upload(state, segment)
        else:
            yield from _nowhere(state, segment)
    yield from _resets(state, segment)


def committing(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    """Yield what a pauseless commit needs that did not end (docs/design/realtime.md#s5 and #v3)."""
    if (wait := facts.young(state, segment)) is not None:
        # Every pauseless commit is COMMITTING for a while; that is trouble only if a replica is in ERROR.
        if facts.in_error(state, segment):
            yield wait
    elif not state.live_copies(segment):
        yield from lost(state, segment)
    else:
        minutes = (state.age_ms(segment) or 0) / 60_000
        why = f"COMMITTING for {minutes:.0f} min although {_servers(state, segment)} has it"
        yield _stored_by(state, segment, StepKind.FINISH, facts.finish_means(state), why)
        yield from _resets(state, segment)


def _upload(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    # Its commit may still write the node. A blocking commit is over once the ideal state has the segment
    # ONLINE; Pinot itself then uploads it at any age. Of a pauseless table Pinot uploads nothing younger
    # than 300 s (`shouldSkipForPauselessMode`).
    over = all(replica.ideal != "CONSUMING" for replica in segment.replicas)
    wait = None if over and not state.settings.pauseless else facts.young(state, segment)
    if wait is not None:
        yield wait
    elif facts.expires_soon(state, segment):
        yield Waiting(segment.name, "only servers have it, and retention deletes it within the hour")
    else:
        means = facts.upload_means(state)
        # An upload without force takes only DONE segments whose URL is empty, and passes over those that
        # never had one.
        if segment.copy is Copy.NEVER_SET or segment.status is not SegmentStatus.DONE:
            means = Means.FORCED if means is Means.CONTROLLER else Means.SERVER
        why = f"only servers have it ({_servers(state, segment)})"
        yield _stored_by(state, segment, StepKind.UPLOAD, means, why)


def _stored_by(
    state: RealtimeState, segment: LlcSegment, kind: StepKind, means: Means, why: str
) -> Step | Unrepairable:
    able = [server for server in state.live_copies(segment) if facts.has_store(state, server)]
    if not able:
        return Unrepairable(
            segment.name, f"{why}; none of these has a segment store to upload it to", facts.SET_A_STORE
        )
    server = None
    if means is Means.SERVER:
        reached = [s for s in able if facts.admin_url(state, s)]
        server = min(reached, key=lambda s: facts.by_readiness(state, s), default=None)
        if server is None:
            return Unrepairable(
                segment.name,
                f"{why}; the admin address of none of these is known",
                "make sure that the instance configs name adminPort, and that this machine can connect to it",
            )
    size = state.largest_bytes if segment.size_bytes is None else segment.size_bytes
    deadline = state.cluster.upload_timeout_ms / 1000 + SPARE_S
    return Step(kind, means, why, (segment.name,), server, size_bytes=size, deadline_s=deadline)


def _nowhere(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    """Yield what a segment needs that has no tar and that no live server has loaded."""
    dead = facts.on_dead_servers(state, segment)
    coming = [r.server for r in segment.replicas if r.external != "ERROR" and r.server not in dead]
    if dead:
        yield Unrepairable(
            segment.name,
            f"it is not in the deep store, and the servers that may have it are down: {', '.join(dead)}",
            "start one of them with its disk; until then do not rebalance, drop the server or "
            "delete the segment",
        )
    elif coming:
        yield Waiting(segment.name, f"{', '.join(coming)} may still load it from its own disk")


def _resets(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    """Yield a reset for each replica in ERROR: resetting the whole segment would take healthy ones down."""
    load_s = RESET_DEADLINE_S
    if segment.copy is not Copy.DEEP_STORE:
        # A server waits so long for a COMMITTING one: `realtime.segment.pauseless.download.timeoutSeconds`.
        load_s = max(RESET_DEADLINE_S, state.settings.download_timeout_s) + SPARE_S
    for replica in facts.in_error(state, segment):
        if replica.pending:
            yield Waiting(
                segment.name,
                f"{replica.server} has a message about it, and resets nothing before it has handled that",
            )
            continue
        if segment.copy is Copy.DEEP_STORE:
            source = "the deep store has it"
        elif state.live_copies(segment) and state.settings.peer_scheme is not None:
            source = f"{_servers(state, segment)} has it"
        elif state.live_copies(segment):
            # It has no place to load from, and holds nothing that the live copy lacks.
            continue
        else:
            source = "its own disk may have it"
        yield Step(
            StepKind.RESET,
            Means.CONTROLLER_RESET,
            f"ERROR on {replica.server}, and {source}",
            (segment.name,),
            replica.server,
            deadline_s=load_s,
        )


def _servers(state: RealtimeState, segment: LlcSegment) -> str:
    return ", ".join(state.live_copies(segment))


LONGEST_COMMIT_MS = 1_800_000
"""`MAX_COMMIT_TIME_FOR_ALL_SEGMENTS_SECONDS`: Pinot extends no lease of a build beyond this."""

REINGESTION_S = 1_800.0
"""Seconds for which a server reads (`CONSUMPTION_END_TIMEOUT_MS`); it builds and uploads after that."""


def lost(state: RealtimeState, segment: LlcSegment) -> Iterator[Step | Unrepairable | Waiting]:
    """Yield what a COMMITTING segment needs that no live server has, once its completion window is over."""
    up = [r for r in facts.held(segment) if facts.is_up(state, r.server)]
    if building := [r.server for r in up if r.external == "CONSUMING"]:
        yield _building(state, segment, building)
    elif segment.url is not None:
        yield Unrepairable(
            segment.name,
            "it is COMMITTING, no live server has it, and its node has a URL all the same "
            f"({segment.url or 'empty'}): Pinot consumes no segment again that has a URL",
            "check whether the deep store has that file; the node must have status DONE with it, or no URL",
        )
    elif not up:
        yield Unrepairable(
            segment.name,
            "it was being committed, and all its servers are down: "
            + ", ".join(facts.on_dead_servers(state, segment)),
            "start one of them; if none can be started, rebalance the table: then it is consumed "
            "from the stream",
        )
    elif coming := [
        r.server
        for r in up
        if r.pending
        and (since := state.servers[r.server].since_ms) is not None
        and state.read_ms - since < COMPLETION_WINDOW_MS
    ]:
        yield Waiting(segment.name, f"{', '.join(coming)} has just started and may have it on its disk")
    elif not reingests(state.settings, state.cluster):
        yield _out_of_order(state, segment)
    # The stream must still have the first row. It must also have the last: the topic may be a new one.
    elif gone := (
        facts.lost_from_stream(state, segment, segment.start_offset)
        or facts.lost_from_stream(state, segment, segment.end_offset)
    ):
        yield Unrepairable(
            segment.name,
            f"no live server has it, and it cannot be consumed again: {gone}",
            "start a server that may have it on its disk; otherwise its rows are lost: delete the segment",
        )
    else:
        yield _reingest(state, segment)


def _building(state: RealtimeState, segment: LlcSegment, building: list[str]) -> Unrepairable | Waiting:
    servers = ", ".join(building)
    age = state.age_ms(segment) or 0
    if age < LONGEST_COMMIT_MS:
        end = state.read_ms - age + LONGEST_COMMIT_MS
        return Waiting(segment.name, f"{servers} has its rows in memory and is still building it", end)
    return Unrepairable(
        segment.name,
        f"{servers} has had its rows in memory for {age / 60_000:.0f} min and has not built it",
        "read that server's log for the build; a restart of the server drops the rows, and then "
        "they are consumed from the stream, if it still has them",
    )


def _out_of_order(state: RealtimeState, segment: LlcSegment) -> Unrepairable:
    kind = "dedup" if state.settings.dedup else "partial upsert"
    dead = facts.on_dead_servers(state, segment)
    first = f"start {', '.join(dead)}, which may have it on its disk; or " if dead else ""
    return Unrepairable(
        segment.name,
        f"no live server has it, and rows of a {kind} table must be consumed in order, so Pinot "
        "consumes none again",
        f"{first}delete it with all later ones of its partition and consume them again in order: "
        "`pinot-assets realtime restart-from`; or set disasterRecoveryMode to ALWAYS and accept "
        "wrong rows for a while",
    )


def _reingest(state: RealtimeState, segment: LlcSegment) -> Step | Unrepairable:
    """Let a server of our choice read it: validation may take a dead one and waits until all are in ERROR."""
    why = "no live server has it; the stream still has its rows"
    deadline = REINGESTION_S + state.cluster.upload_timeout_ms / 1000
    replicas = facts.held(segment)
    if able := [
        r
        for r in replicas
        if facts.admin_url(state, r.server) is not None and facts.has_store(state, r.server)
    ]:
        # A replica in ERROR has given up; another may still wait for a peer and load what this one stores.
        chosen = min(
            able, key=lambda r: (r.external != "ERROR", facts.by_readiness(state, r.server), r.server)
        )
        return Step(StepKind.REINGEST, Means.SERVER, why, (segment.name,), chosen.server, deadline_s=deadline)
    if without_store := [r.server for r in replicas if facts.admin_url(state, r.server) is not None]:
        return Unrepairable(
            segment.name,
            f"it could be consumed again, but {', '.join(without_store)} has no segment store to "
            "upload it to",
            facts.SET_A_STORE,
        )
    if all(r.external == "ERROR" and facts.is_up(state, r.server) for r in replicas):
        return Step(StepKind.REINGEST, Means.VALIDATION, why, (segment.name,), deadline_s=deadline)
    return Unrepairable(
        segment.name,
        "it could be consumed again, but no live server's admin address is known, and Pinot's "
        "validation does so only when every replica is in ERROR",
        "make sure that the instance configs name adminPort, and that this machine can connect to it",
    )


LEFT_OVER_MS = 3_600_000
"""`tmpFileRetentionInSeconds`: the age at which Pinot itself treats a `.tmp.` file as left over."""

MORE = 1.1
"""A left-over this much larger than its segment may hold more; gzip and clocks make smaller differences."""


def stale(state: RealtimeState) -> Iterator[Step | Unrepairable]:
    """Yield at most one step of each kind, and report each left-over that may hold rows its segment lacks."""
    listed = tuple(
        name
        for name in sorted(state.committing_listed)
        if (segment := state.by_name.get(name)) is None
        or (segment.status is not SegmentStatus.COMMITTING and facts.young(state, segment) is None)
    )
    if listed and facts.keeps_committing_list(state):
        yield Step(
            StepKind.UNLIST,
            Means.SEGMENT_VALIDATION,
            f"{counted(len(listed), 'segment is', 'segments are')} in the list of committing "
            "segments, but not COMMITTING",
            names=listed,
        )
    used = files_named(segment.url for segment in state.segments)
    swept = []
    for upload in sorted(state.tmp_uploads, key=lambda upload: upload.name):
        segment = state.by_name.get(upload_of(upload.name) or "")
        # Delete only if the segment is stored elsewhere: otherwise the upload may be the only copy.
        is_stored = segment is not None and segment.completed and segment.copy is Copy.DEEP_STORE
        if segment is None or not is_stored or facts.young(state, segment) is not None or upload.name in used:
            continue
        if state.read_ms - upload.modified_ms <= LEFT_OVER_MS:
            continue
        if segment.size_bytes is None or upload.size_bytes <= segment.size_bytes * MORE:
            swept.append(upload.name)
            continue
        # Seen in the simulation: a commit never ended, and the segment was read again from a stream that had
        # dropped its rows. Pinot calls the empty segment DONE; only the upload still has the rows.
        yield Unrepairable(
            segment.name,
            f"its left-over upload {upload.name} has {upload.size_bytes:,} bytes, and the stored "
            f"segment has {segment.size_bytes:,}: the upload may have rows that the segment lacks",
            "compare their rows; upload it in place of the segment, or delete it by hand",
        )
    if swept:
        yield Step(
            StepKind.SWEEP,
            Means.STORE,
            f"{counted(len(swept), 'upload was', 'uploads were')} never moved into place, of "
            "segments that are stored completely",
            names=tuple(swept),
        )
