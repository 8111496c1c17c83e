"""Replicas that Helix has forgotten, and servers that are starting: what only a person, or time, ends."""

from __future__ import annotations

from collections.abc import Iterator

from pinot_assets.realtime.repair.facts import held, is_up, only_copy, young
from pinot_assets.realtime.repair.model import Kind, Means, Step, Waiting
from pinot_assets.realtime.settings import COMPLETION_WINDOW_MS
from pinot_assets.realtime.state import RealtimeState, Segment, Status

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


def forgotten(state: RealtimeState) -> Iterator[Step | Waiting]:
    """The one server whose restart would mend most.

    Wanted, not loaded, no message pending: a reset passes such a replica over, and so does a rebalance. What
    helped on a real 1.5.1 was the restart of one server. Advised for one at a time, and for none that has
    the only copy of anything.
    """
    by_server: dict[str, list[str]] = {}
    for segment in state.segments:
        for server in _forgotten_replicas(state, segment):
            by_server.setdefault(server, []).append(segment.name)
    if not by_server:
        return
    server = max(by_server, key=lambda name: (len(by_server[name]), name))
    names = by_server[server]
    why = f"it should have {len(names)} segments that it has not loaded, and no message about them waits"
    away = [s.name for s in state.servers.values() if s.name != server and not s.serves]
    alone = _alone_on(state, server)
    if away:
        yield Waiting(server, f"{why}; it is not restarted while {', '.join(away)} does not serve")
    elif alone:
        yield Waiting(
            server,
            f"{why}; it is not restarted before others, or the deep store, have what only it has: {alone[0]}"
            + (f" and {len(alone) - 1} more" if len(alone) > 1 else ""),
        )
    else:
        yield Step(Kind.RESTART, Means.PERSON, why, tuple(names), server, deadline_s=RESTART_S)


def _forgotten_replicas(state: RealtimeState, segment: Segment) -> Iterator[str]:
    if not segment.stored or segment.status is Status.COMMITTING or young(state, segment) is not None:
        return
    for replica in held(segment):
        if replica.external in (None, "OFFLINE") and not replica.pending and _settled(state, replica.server):
            yield replica.server


def _settled(state: RealtimeState, server: str) -> bool:
    if not is_up(state, server) or not state.servers[server].serves:
        return False
    since = state.servers[server].since_ms
    return since is None or state.read_ms - since >= COMPLETION_WINDOW_MS


def _alone_on(state: RealtimeState, server: str) -> list[str]:
    """Segments that a restart of it could lose: its only copies, and what it builds in memory."""
    return [
        segment.name
        for segment in state.segments
        if (only_copy(state, segment) and state.live_copies(segment) == (server,))
        or (
            segment.status is Status.COMMITTING
            and not state.live_copies(segment)
            and any(r.server == server and r.external == "CONSUMING" for r in segment.replicas)
        )
    ]
