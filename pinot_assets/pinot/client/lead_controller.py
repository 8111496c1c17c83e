"""Which controller leads a table: of several, uploads go to the one that writes its ideal state anyway.

Another one does it, too, but then competes with the lead for every write. The lead is only used when it is
seen to be a door to the same ZooKeeper: what a controller calls its address may mean something else from here
(`localhost`), or nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from pinot_assets.core.connections import may_be_loopback
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.untrusted import whole_number
from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.http import CallKind, ClientPool, HttpCall
from pinot_assets.pinot.client.tables import quoted

TRY_AGAIN_SECONDS = 60.0
"""A lead that could not be used may be starting; to ask it costs a connection's deadline."""

_BORN = ("czxid", "ctime")


class LeadControllers:
    """Finds the lead of a table; remembers how many controllers there are and whose address can be used."""

    def __init__(self, doors: ClientPool, clock: Callable[[], float] = time.monotonic) -> None:
        self._doors = doors
        self._clock = clock
        self._several: bool | None = None
        self._usable: set[str] = set()
        self._refused: dict[str, float] = {}

    def of(self, table: str) -> str:
        """Base URL for uploads: that of the table's lead, or the configured one where it cannot be used."""
        connection = self._doors.connection
        configured = connection.controller_url
        try:
            if self._several is None:
                names = _ask(self._doors, configured, "/instances", connection.timeouts.call)["instances"]
                self._several = sum(name.startswith("Controller_") for name in names) > 1
            if not self._several:
                return configured
            path = f"/leader/tables/{quoted(table)}"
            url = lead_of(
                _ask(self._doors, configured, path, connection.timeouts.call), urlsplit(configured).scheme
            )
        except PinotError:
            return configured
        return url if url is not None and self._is_usable(url, table) else configured

    def _is_usable(self, url: str, table: str) -> bool:
        connection = self._doors.connection
        if url in self._usable:
            return True
        if url == connection.controller_url or not may_be_asked(self._doors, url):
            return False
        if self._clock() - self._refused.get(url, -math.inf) < TRY_AGAIN_SECONDS:
            return False
        if same_cluster(self._doors, connection.controller_url, url, table):
            self._usable.add(url)
            return True
        self._refused[url] = self._clock()
        return False


def lead_of(reply: JsonMapping | None, scheme: str) -> str | None:
    """The address in an answer of `/leader/tables/<table>`; None where no controller leads."""
    for entry in ((reply or {}).get("leadControllerEntryMap") or {}).values():
        host, _, port = str(entry.get("leadControllerId") or "").removeprefix("Controller_").rpartition("_")
        if host and whole_number(port) is not None:
            return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    return None


def may_be_asked(doors: ClientPool, url: str) -> bool:
    """Whether an address that a controller told is worth a look.

    What it calls loopback is its own machine, not ours; and our credentials go along with every call.
    """
    here = urlsplit(doors.connection.controller_url).hostname or ""
    if may_be_loopback(urlsplit(url).hostname or "") and not may_be_loopback(here):
        return False
    return doors.guard.refusal(url) is None


def same_cluster(doors: ClientPool, known: str, other: str, table: str) -> bool:
    """Whether both controllers show the same birth of the table's node in ZooKeeper, which no two clusters
    share. False, too, where one of them does not tell."""
    timeouts = doors.connection.timeouts
    try:
        cluster = _ask(doors, known, "/cluster/info", timeouts.call)["clusterName"]
        path = f"/{cluster}/IDEALSTATES/{table}_OFFLINE"
        here = _ask(doors, known, "/zk/stat", timeouts.call, path=path)
        # Short: an address may lead nowhere from here.
        there = _ask(doors, other, "/zk/stat", timeouts.connect, path=path)
        return all(here[key] and here[key] == there[key] for key in _BORN)
    except (PinotError, KeyError, TypeError):
        return False


def _ask(doors: ClientPool, url: str, endpoint: str, deadline: float, **params: str) -> Any:
    return doors.at(url).send_json(HttpCall("GET", endpoint, CallKind.READ, deadline, params=params or None))
