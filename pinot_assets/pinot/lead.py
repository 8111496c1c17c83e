"""Which controller leads a table: uploads go there, where the table's ideal state is written anyway.

Another controller does it, too; each write then competes with those of the lead. So the lead is only used
when it is seen to be a door to the same ZooKeeper: an address that a controller has of itself may mean
something else from here (`localhost`), or nothing.
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
    """Finds the lead of a table; remembers of each address whether it can be used."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._usable: dict[str, bool] = {}

    def of(self, table: str) -> str:
        """Base URL for the uploads of a table: its lead's, or the configured one where that is not known."""
        configured = self._doors.connection.controller_url
        try:
            timeout = self._doors.connection.timeouts.call
            found = lead_of(self._ask(configured, f"/leader/tables/{quoted(table)}", timeout))
        except PinotError:
            return configured
        if found is None:
            return configured
        address = urlsplit(configured)
        if found == (address.hostname, address.port):
            return configured
        host, port = found
        url = f"{address.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        if url not in self._usable:
            self._usable[url] = self._is_same_cluster(configured, url, table)
        return url if self._usable[url] else configured

    def _is_same_cluster(self, configured: str, url: str, table: str) -> bool:
        """Both show the same birth of the table's node in ZooKeeper, which no two clusters share."""
        timeouts = self._doors.connection.timeouts
        try:
            cluster = self._ask(configured, "/cluster/info", timeouts.call)["clusterName"]
            path = f"/{cluster}/IDEALSTATES/{table}_OFFLINE"
            here = self._ask(configured, "/zk/stat", timeouts.call, path=path)
            # Short: an address that leads nowhere from here is to cost no more than one try.
            there = self._ask(url, "/zk/stat", timeouts.connect, path=path)
            return all(here[key] and here[key] == there[key] for key in _BORN)
        except (PinotError, KeyError, TypeError):
            return False

    def _ask(self, url: str, endpoint: str, deadline: float, **params: str) -> Any:
        call = Call("GET", endpoint, Kind.READ, deadline, params=params or None)
        return self._doors.at(url).send_json(call)


def lead_of(reply: Mapping[str, Any] | None) -> tuple[str, int] | None:
    """Host and port in the answer of `/leader/tables/<table>`; None where no controller leads."""
    entries = (reply or {}).get("leadControllerEntryMap") or {}
    for entry in entries.values():
        host, _, port = str(entry.get("leadControllerId") or "").removeprefix("Controller_").rpartition("_")
        if host and port.isdigit():
            return host, int(port)
    return None
