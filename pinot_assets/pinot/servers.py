"""What Pinot's servers say of themselves, one call each, however many segments they hold.

Only for looking (`pinot_assets.health`): nothing here changes anything, and a server that does not answer is
told as such instead of spoiling what the others say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pinot_assets.errors import PinotError, PinotNotFound
from pinot_assets.pinot.cluster import THREADS, PinotCluster
from pinot_assets.pinot.http import Call, Kind
from pinot_assets.pinot.port import Pinot
from pinot_assets.pinot.tables import quoted

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerDisk:
    """The disk of a server's data directory, in bytes, as the server last measured it."""

    total: int
    used: int


class PinotServers(Pinot, Protocol):
    """`Pinot`, and what its servers say."""

    def crcs_on_servers(
        self, table: str, servers: Collection[str]
    ) -> Mapping[str, Mapping[str, int] | PinotError]:
        """CRC of every segment as loaded: instance → segment → CRC, or why that server did not answer."""
        ...

    def server_disks(self, servers: Collection[str]) -> Mapping[str, ServerDisk | PinotError]:
        """Disk of each server that tells it; Pinot's servers do not before 1.3, and are then left out."""
        ...


class ServersOfCluster(PinotCluster):
    """The real implementation of `PinotServers`: two calls for each server and question."""

    def crcs_on_servers(self, table: str, servers: Collection[str]) -> dict[str, dict[str, int] | PinotError]:
        """See `PinotServers.crcs_on_servers`."""

        def ask(server: str) -> dict[str, int]:
            try:
                crcs = self._ask(server, f"/tables/{quoted(table)}_OFFLINE/segments/crc")
            except PinotNotFound:
                return {}  # the server holds nothing of this table
            return {name: int(crc) for name, crc in crcs.items()}

        return _each(servers, ask)

    def server_disks(self, servers: Collection[str]) -> dict[str, ServerDisk | PinotError]:
        """See `PinotServers.server_disks`."""

        def ask(server: str) -> ServerDisk:
            told = self._ask(server, "/instance/diskUtilization")
            return ServerDisk(total=int(told["totalSpaceBytes"]), used=int(told["usedSpaceBytes"]))

        found = _each(servers, ask)
        return {server: disk for server, disk in found.items() if not isinstance(disk, PinotNotFound)}

    def _ask(self, server: str, path: str) -> dict[str, str]:
        call = Call("GET", path, Kind.READ, self.connection.timeouts.call)
        value: dict[str, str] = self._doors.at(self._address(server)).send_json(call)
        return value

    def _address(self, server: str) -> str:
        try:
            return self._admin_url(server)
        except PinotNotFound as error:
            # Not what a server says of a table that it does not hold.
            raise PinotError(f"Pinot knows no server {server}", why=error.why) from None


def _each(servers: Collection[str], ask: Callable[[str], T]) -> dict[str, T | PinotError]:
    def asked(server: str) -> T | PinotError:
        try:
            return ask(server)
        except PinotError as error:
            return error

    with ThreadPoolExecutor(THREADS, "servers") as pool:
        return dict(zip(servers, pool.map(asked, servers), strict=True))
