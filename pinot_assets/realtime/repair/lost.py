"""Rules for a COMMITTING segment that no live server has loaded: wait, read it again, or say why not."""

from __future__ import annotations

from collections.abc import Iterator

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS, reingests
from pinot_assets.realtime.model.state import LlcSegment, RealtimeState
from pinot_assets.realtime.repair.facts import (
    SET_A_STORE,
    admin_url,
    by_readiness,
    has_store,
    held,
    is_up,
    lost_from_stream,
    on_dead_servers,
)
from pinot_assets.realtime.repair.model import Means, Step, StepKind, Unrepairable, Waiting

LONGEST_COMMIT_MS = 1_800_000
"""`MAX_COMMIT_TIME_FOR_ALL_SEGMENTS_SECONDS`: no lease of a build is extended beyond."""

REINGESTION_S = 1_800.0
"""How long a server reads (`CONSUMPTION_END_TIMEOUT_MS`); building and uploading come on top."""


def lost(state: RealtimeState, segment: LlcSegment) -> Iterator[Step | Unrepairable | Waiting]:
    """What is to be done with it; older than the completion window."""
    replicas = held(segment)
    up = [r for r in replicas if is_up(state, r.server)]
    building = [r.server for r in up if r.external == "CONSUMING"]
    if building:
        yield _building(state, segment, building)
    elif segment.url is not None:
        yield Unrepairable(
            segment.name,
            f"it is COMMITTING, no live server has it, and its node has a URL all the same "
            f"({segment.url or 'empty'}): Pinot reads nothing again that has one",
            "look whether the deep store has that file; the node must say DONE with it, or lose the URL",
        )
    elif not up:
        yield Unrepairable(
            segment.name,
            "it was being committed, and all its servers are down: "
            + ", ".join(on_dead_servers(state, segment)),
            "start one of them; if none can come back, rebalance the table: then it is read from the stream",
        )
    elif coming := [r.server for r in up if r.pending and _just_came(state, r.server)]:
        yield Waiting(segment.name, f"{', '.join(coming)} has just come back and may have it on its disk")
    elif not reingests(state.settings, state.cluster):
        yield _out_of_order(state, segment)
    elif (gone := _gone(state, segment)) is not None:
        yield Unrepairable(
            segment.name,
            f"no live server has it, and it cannot be read again: {gone}",
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
        "look into that server's log for the build; a restart of it gives the rows up, and then they are "
        "read from the stream, if that still has them",
    )


def _just_came(state: RealtimeState, server: str) -> bool:
    since = state.servers[server].since_ms
    return since is not None and state.read_ms - since < COMPLETION_WINDOW_MS


def _out_of_order(state: RealtimeState, segment: LlcSegment) -> Unrepairable:
    kind = "dedup" if state.settings.dedup else "partial upsert"
    dead = on_dead_servers(state, segment)
    first = f"start {', '.join(dead)}, which may have it on its disk; or " if dead else ""
    return Unrepairable(
        segment.name,
        f"no live server has it, and rows of a {kind} table must be read in order, so Pinot reads none again",
        f"{first}delete it with all later ones of its partition and read them again in order: `pinot-assets "
        f"realtime restart-from`; or set disasterRecoveryMode to ALWAYS and accept wrong rows for a while",
    )


def _gone(state: RealtimeState, segment: LlcSegment) -> str | None:
    """Its first row must not be gone yet, its last one must be there (a topic may have been made anew)."""
    start, end = segment.start_offset, segment.end_offset
    return lost_from_stream(state, segment, start) or lost_from_stream(state, segment, end)


def _reingest(state: RealtimeState, segment: LlcSegment) -> Step | Unrepairable:
    """By a server of our choice; the validation takes any, a dead one too, and only when all are in ERROR."""
    why = "no live server has it; the stream still holds its rows"
    deadline = REINGESTION_S + state.cluster.upload_timeout_ms / 1000
    replicas = held(segment)
    able = [r for r in replicas if admin_url(state, r.server) is not None and has_store(state, r.server)]
    if able:
        # One in ERROR has given up; another may still be waiting for a peer and loads what this one stores.
        chosen = min(able, key=lambda r: (r.external != "ERROR", by_readiness(state, r.server), r.server))
        return Step(StepKind.REINGEST, Means.SERVER, why, (segment.name,), chosen.server, deadline_s=deadline)
    without_store = [r.server for r in replicas if admin_url(state, r.server) is not None]
    if without_store:
        return Unrepairable(
            segment.name,
            f"it could be read again, but {', '.join(without_store)} has no segment store to put it in",
            SET_A_STORE,
        )
    if all(r.external == "ERROR" and is_up(state, r.server) for r in replicas):
        return Step(StepKind.REINGEST, Means.VALIDATION, why, (segment.name,), deadline_s=deadline)
    return Unrepairable(
        segment.name,
        "it could be read again, but no live server's admin address is known, and Pinot's validation does so "
        "only once every replica is in ERROR",
        "see that the instance configs name adminPort, and that this machine reaches it",
    )
