"""What Pinot's servers say of themselves, one call each, however many segments they hold.

Only for looking (`pinot_assets.health`): nothing here changes anything, and a server that does not answer is
told as such instead of spoiling what the others say.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from pinot_assets.errors import PinotError, PinotNotFound
from pinot_assets.pinot.cluster import PinotCluster, each_server
from pinot_assets.pinot.port import Pinot
from pinot_assets.pinot.tables import quoted


class PinotServers(Pinot, Protocol):
    """`Pinot`, and what its servers say."""

    def crcs_on_servers(
        self, table: str, servers: Collection[str]
    ) -> Mapping[str, Mapping[str, int] | PinotError]:
        """CRC of every segment as loaded: instance → segment → CRC, or why that server did not answer."""
        ...


class ServersOfCluster(PinotCluster):
    """The real implementation of `PinotServers`."""

    def crcs_on_servers(self, table: str, servers: Collection[str]) -> dict[str, dict[str, int] | PinotError]:
        """See `PinotServers.crcs_on_servers`."""

        def ask(server: str) -> dict[str, int]:
            try:
                crcs = self.ask_server(server, f"/tables/{quoted(table)}_OFFLINE/segments/crc")
            except PinotNotFound:
                return {}  # the server holds nothing of this table
            return {name: int(crc) for name, crc in crcs.items()}

        return each_server(servers, ask)
