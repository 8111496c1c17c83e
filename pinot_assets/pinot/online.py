"""Waiting until servers have loaded what was pushed."""

from __future__ import annotations

from collections.abc import Collection

from pinot_assets.core.deadline import MONOTONIC, Deadline, poll_until
from pinot_assets.core.text import plural_are
from pinot_assets.errors import PinotError
from pinot_assets.pinot.api import PinotClient, Replicas

POLL_SECONDS = 0.25


def wait_online(pinot: PinotClient, table: str, names: Collection[str], *, seconds: float) -> None:
    """Wait until every replica of every segment is ONLINE.

    :raises PinotError: a replica is in ERROR, or the time is over; names segment, server and state.
    """
    behind = poll_until(
        Deadline(MONOTONIC, seconds),
        POLL_SECONDS,
        lambda: _behind(pinot.online_replicas(table, names)),
        lambda behind: not behind or _broken(behind),
    )
    if not behind:
        return
    broken = _broken(behind)
    raise PinotError(
        f"{plural_are(len(broken or behind), 'replica')} "
        + ("in ERROR" if broken else f"not ONLINE after {seconds:g} s"),
        why="; ".join(f"{segment} on {server}: {state}" for segment, server, state in (broken or behind)[:5]),
        hint="the server's log says why; `reset` the segment there, or build it anew",
    )


def _behind(states: Replicas) -> list[tuple[str, str, str]]:
    """Segment, server and state of each replica that is not ONLINE."""
    return [
        (segment, server, state)
        for segment, servers in states.items()
        for server, state in (servers.items() or [("any server", "not assigned")])
        if state != "ONLINE"
    ]


def _broken(behind: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [replica for replica in behind if replica[2] == "ERROR"]
