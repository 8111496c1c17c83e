"""Which controller leads a table: of several, uploads go to the one that writes its ideal state anyway.

Another one does it, too, but then competes with the lead for every write. The lead is only used when it is
seen to be a door to the same ZooKeeper: what a controller calls its address may mean something else from here
(`localhost`), or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pinot_assets.errors import PinotError
from pinot_assets.pinot.http import Call, Doors, Kind
from pinot_assets.pinot.tables import quoted

_BORN = ("czxid", "ctime")


class Leads:
    """Finds the lead of a table; remembers how many controllers there are and whose address can be used."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._several: bool | None = None
        self._usable: dict[str, bool] = {}

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
        if url is None:
            return configured
        if url not in self._usable:
            self._usable[url] = same_cluster(self._doors, configured, url, table)
        return url if self._usable[url] else configured


def lead_of(reply: Mapping[str, Any] | None, scheme: str) -> str | None:
    """The address in an answer of `/leader/tables/<table>`; None where no controller leads."""
    for entry in ((reply or {}).get("leadControllerEntryMap") or {}).values():
        host, _, port = str(entry.get("leadControllerId") or "").removeprefix("Controller_").rpartition("_")
        if host and port.isdigit():
            return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    return None


def same_cluster(doors: Doors, known: str, other: str, table: str) -> bool:
    """Whether both controllers show the same birth of the table's node in ZooKeeper, which no two clusters
    share. False, too, where one of them does not tell."""
    timeouts = doors.connection.timeouts
    try:
        cluster = _ask(doors, known, "/cluster/info", timeouts.call)["clusterName"]
        path = f"/{cluster}/IDEALSTATES/{table}_OFFLINE"
        here = _ask(doors, known, "/zk/stat", timeouts.call, path=path)
        # Short: an address that leads nowhere from here is to cost no more than one try.
        there = _ask(doors, other, "/zk/stat", timeouts.connect, path=path)
        return all(here[key] and here[key] == there[key] for key in _BORN)
    except (PinotError, KeyError, TypeError):
        return False


def _ask(doors: Doors, url: str, endpoint: str, deadline: float, **params: str) -> Any:
    return doors.at(url).send_json(Call("GET", endpoint, Kind.READ, deadline, params=params or None))
