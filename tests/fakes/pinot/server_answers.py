"""What servers say, beside the in-memory Pinot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from fakes.pinot.memory import FakePinot

from pinot_assets.errors import PinotError, PinotUnreachable
from pinot_assets.pinot import ServerDisk


class WithServers:
    """A `FakePinot` whose servers can be asked.

    :ivar disks: server → its disk; those left out do not tell, as before Pinot 1.3.
    :ivar silent: servers that do not answer.
    :ivar wrong_crcs: (server, segment) → another CRC than the one that was pushed.
    """

    def __init__(self, pinot: FakePinot) -> None:
        self._pinot = pinot
        self.disks: dict[str, ServerDisk] = {}
        self.silent: set[str] = set()
        self.wrong_crcs: dict[tuple[str, str], int] = {}

    def __getattr__(self, name: str) -> Callable[..., object]:
        method: Callable[..., object] = getattr(self._pinot, name)
        return method

    def crcs_on_servers(
        self, table: str, servers: Collection[str]
    ) -> Mapping[str, Mapping[str, int] | PinotError]:
        crcs = self._pinot.segment_crcs(table)
        replicas = self._pinot.online_replicas(table, list(crcs))
        return {
            server: self._away(server)
            or {
                name: self.wrong_crcs.get((server, name), crc)
                for name, crc in crcs.items()
                if replicas[name][server] == "ONLINE"
            }
            for server in servers
        }

    def server_disks(self, servers: Collection[str]) -> Mapping[str, ServerDisk | PinotError]:
        found: dict[str, ServerDisk | PinotError] = {}
        for server in servers:
            if (away := self._away(server)) is not None:
                found[server] = away
            elif server in self.disks:
                found[server] = self.disks[server]
        return found

    def _away(self, server: str) -> PinotError | None:
        return PinotUnreachable(f"{server} is away", why="refused") if server in self.silent else None
