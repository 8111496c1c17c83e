"""What only a person, or time, ends: servers that are starting, replicas that Helix has forgotten, segments
that a server has on its disk and does not look for there.

A restart is advised of one server at a time, and of none that has the only copy of anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, Replica, SegmentStatus
from pinot_assets.realtime.repair.facts import held, in_error, is_up, only_copy, young
from pinot_assets.realtime.repair.model import Means, Memory, Step, StepKind, Waiting

RESTART_S = 900.0


def starting(state: RealtimeState) -> Iterator[Waiting]:
    """Live servers that are not ready: they serve no table until every segment is loaded, or given up."""
    longest = max(state.cluster.startup_timeout_s, state.settings.download_timeout_s)
    for server in state.servers.values():
        if server.alive and server.ready is False:
            until = None if server.since_ms is None else server.since_ms + longest * 1000
            yield Waiting(
                server.name,
                f"it is starting, and serves no table until all is loaded or {longest} s are over",
                until,
            )


def restarts(state: RealtimeState, memory: Memory) -> Iterator[Step | Waiting]:
    """The one server whose restart would mend most.

    :param memory: resets that were in vain.
    """
    found = _most(_forgotten(state)), _most(_on_a_disk(state, memory))
    whys = (
        "it should have {} segments that it has not loaded, and no message about them waits",
        "{} segments are in ERROR everywhere and a reset did not help: whichever server built them has them "
        "on its disk, and with completionMode DOWNLOAD looks there only when it starts",
    )
    for one, why in zip(found, whys, strict=True):
        if one is None:
            continue
        server, names = one
        step = Step(
            StepKind.RESTART, Means.PERSON, why.format(len(names)), names, server, deadline_s=RESTART_S
        )
        hindrance = _hindrance(state, server)
        if hindrance is None:
            yield step
            return
        yield Waiting(server, f"{step.why}; it is not restarted {hindrance}")


def _most(found: Iterable[tuple[str, str]]) -> tuple[str, tuple[str, ...]] | None:
    """Of pairs of server and segment, the server with the most segments."""
    by_server: dict[str, list[str]] = {}
    for server, name in found:
        by_server.setdefault(server, []).append(name)
    if not by_server:
        return None
    server = max(by_server, key=lambda name: (len(by_server[name]), name))
    return server, tuple(by_server[server])


def _hindrance(state: RealtimeState, server: str) -> str | None:
    away = [other.name for other in state.servers.values() if other.name != server and not other.serves]
    if away:
        return f"while {', '.join(away)} does not serve"
    # What a restart could lose: only copies, and what it builds in memory.
    alone = [
        segment.name
        for segment in state.segments
        if (only_copy(state, segment) and state.live_copies(segment) == (server,))
        or (
            segment.status is SegmentStatus.COMMITTING
            and not state.live_copies(segment)
            and any(r.server == server and r.external == "CONSUMING" for r in segment.replicas)
        )
    ]
    if alone:
        more = f" and {len(alone) - 1} more" if len(alone) > 1 else ""
        return f"before others, or the deep store, have what only it has: {alone[0]}{more}"
    return None


# --- replicas that Helix has forgotten ---------------------------------------------------------------


def _forgotten(state: RealtimeState) -> Iterator[tuple[str, str]]:
    """Wanted, not loaded, no message pending: a reset passes such a replica over, and so does a rebalance.

    What helped on a real 1.5.1 was the restart of one server.
    """
    for segment in state.segments:
        if (
            not segment.stored
            or segment.status is SegmentStatus.COMMITTING
            or young(state, segment) is not None
        ):
            continue
        for replica in held(segment):
            unseen = replica.external in (None, "OFFLINE") and not replica.pending
            if unseen and _settled(state, replica.server):
                yield replica.server, segment.name


def _settled(state: RealtimeState, server: str) -> bool:
    if not is_up(state, server) or not state.servers[server].serves:
        return False
    since = state.servers[server].since_ms
    return since is None or state.read_ms - since >= COMPLETION_WINDOW_MS


# --- segments that only a disk has -------------------------------------------------------------------


def _on_a_disk(state: RealtimeState, memory: Memory) -> Iterator[tuple[str, str]]:
    """Committed past the deep store by a server that was never told so, as the controller died: found by the
    simulation (docs/simulate.md).

    With completionMode DOWNLOAD and a peer scheme every replica then loads from the others, of whom none has
    it, and so it does at each reset; rows in memory are not built from any more (`goOnlineFromConsuming`), so
    that a restart gives nothing up. A server that has started since the commit has looked at its disk.
    """
    if state.settings.completion_mode != "DOWNLOAD" or not state.settings.bypasses:
        return
    for segment in state.segments:
        broken = in_error(state, segment)
        done = segment.completed and segment.copy is Copy.PEERS_ONLY
        nowhere = broken and broken == held(segment) and not state.live_copies(segment)
        if done and nowhere and all(_reset_in_vain(state, memory, segment, one) for one in broken):
            for replica in broken:
                since_ms, written_ms = state.servers[replica.server].since_ms, segment.modified_ms
                if since_ms is None or written_ms is None or since_ms <= written_ms:
                    yield replica.server, segment.name


def _reset_in_vain(state: RealtimeState, memory: Memory, segment: LlcSegment, replica: Replica) -> bool:
    reset = Step(StepKind.RESET, Means.CONTROLLER_RESET, "", (segment.name,), replica.server)
    return not replica.pending and memory.in_vain(reset, state.read_ms)
