"""Waiting until servers have loaded what was pushed."""

from __future__ import annotations

import time
from collections.abc import Collection

from pinot_assets.core.text import plural_are
from pinot_assets.errors import PinotError
from pinot_assets.pinot.api import PinotClient

POLL_SECONDS = 0.25


def wait_online(pinot: PinotClient, table: str, names: Collection[str], *, seconds: float) -> None:
    """Wait until every replica of every segment is ONLINE.

    :raises PinotError: a replica is in ERROR, or the time is over; names segment, server and state.
    """
    until = time.monotonic() + seconds
    while True:
        states = pinot.online_replicas(table, names)
        behind = [
            (segment, server, state)
            for segment, servers in states.items()
            for server, state in (servers.items() or [("any server", "not assigned")])
            if state != "ONLINE"
        ]
        if not behind:
            return
        broken = [item for item in behind if item[2] == "ERROR"]
        if broken or time.monotonic() >= until:
            told = "; ".join(
                f"{segment} on {server}: {state}" for segment, server, state in (broken or behind)[:5]
            )
            raise PinotError(
                f"{plural_are(len(broken or behind), 'replica')} "
                + ("in ERROR" if broken else f"not ONLINE after {seconds:g} s"),
                why=told,
                hint="the server's log says why; `reset` the segment there, or build it anew",
            )
        time.sleep(POLL_SECONDS)
