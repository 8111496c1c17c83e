"""A whole cluster behind the `Pinot` protocol; brokers and servers are found through the controller."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from pinot_assets.errors import PinotNotFound
from pinot_assets.pinot.broker import Broker
from pinot_assets.pinot.controller import Controller
from pinot_assets.pinot.http import Call, Kind
from pinot_assets.pinot.port import PushMode, PushReport, ReadObject
from pinot_assets.pinot.push import push_segments
from pinot_assets.pinot.tables import quoted
from pinot_assets.session.receipt import Output

THREADS = 8


class PinotCluster(Controller):
    """The real implementation of `pinot_assets.pinot.port.Pinot`."""

    def push(
        self, table: str, outputs: Sequence[Output], *, read: ReadObject, mode: PushMode | None = None
    ) -> PushReport:
        """See `Pinot.push`."""
        return push_segments(self, table, outputs, read=read, mode=mode)

    def rows_on_servers(self, table: str, names: Collection[str]) -> dict[str, dict[str, int]]:
        """See `Pinot.rows_on_servers`."""
        ideal = self.ideal_state(table)
        asked = [(name, server) for name in names for server in ideal.get(name, ())]
        addresses = {server: self._admin_url(server) for server in {server for _, server in asked}}
        with ThreadPoolExecutor(THREADS, "rows") as pool:
            rows = pool.map(lambda pair: self._rows(addresses[pair[1]], table, pair[0]), asked)
            found: dict[str, dict[str, int]] = {name: {} for name in names}
            for (name, server), count in zip(asked, rows, strict=True):
                if count is not None:
                    found[name][server] = count
        return found

    def _admin_url(self, server: str) -> str:
        instance = self.instance(server)
        host = str(instance["hostName"]).removeprefix("Server_")
        return f"{self._scheme}://{host}:{instance['adminPort']}"

    def _rows(self, server_url: str, table: str, segment: str) -> int | None:
        path = f"/tables/{quoted(table)}_OFFLINE/segments/{quoted(segment)}/metadata"
        call = Call("GET", path, Kind.READ, self.connection.timeouts.call)
        try:
            return int(self._doors.at(server_url).send_json(call)["totalDocs"])
        except PinotNotFound:
            return None

    def brokers(self, table: str) -> tuple[str, ...]:
        """See `Pinot.brokers`. Brokers are taken to speak the controller's scheme, unless
        `PinotConnection.broker_urls` says otherwise."""
        if self.connection.broker_urls:
            return self.connection.broker_urls
        found = self._get(f"/v2/brokers/tables/{quoted(table)}", type="OFFLINE", state="ONLINE")
        return tuple(sorted(f"{self._scheme}://{b['host']}:{b['port']}" for b in found))

    def broker(self, url: str) -> Broker:
        """A client of one broker, for queries."""
        return Broker(url, self._doors)

    def broker_visible_segments(self, broker: str, table: str) -> frozenset[str]:
        """See `Pinot.broker_visible_segments`."""
        return self.broker(broker).visible_segments(table)

    def broker_rows(self, broker: str, table: str) -> int:
        """See `Pinot.broker_rows`."""
        return self.broker(broker).rows(table)

    def rebuild_routing(self, broker: str, table: str) -> None:
        """See `Pinot.rebuild_routing`."""
        self.broker(broker).rebuild_routing(table)

    @property
    def _scheme(self) -> str:
        return urlsplit(self.connection.controller_url).scheme
