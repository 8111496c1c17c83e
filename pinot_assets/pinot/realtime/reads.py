"""What Pinot says of a REALTIME table: one method for each question, 0.11.0 to 1.5.1.

Nearly all of it comes from ZooKeeper through the controller: ideal state and external view, the segments'
nodes with the time when they were written (the clock of Pinot's 300 s rule), pending messages, live
instances. That is the same in every release, and says more than the calls made for it: `pauseStatus` does
not show paused topics, `pauselessDebugInfo` leaves out names that should not be in its list. Every `table`
is the name with `_REALTIME`. Source: docs/design/realtime.md#s4 to #s9.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import PinotError, PinotNotFound
from pinot_assets.pinot.client.app_config import AppConfig
from pinot_assets.pinot.client.broker import Broker
from pinot_assets.pinot.client.helix_nodes import Node, Nodes, Stat
from pinot_assets.pinot.client.http import CallKind, HttpCall, NotReady
from pinot_assets.pinot.client.tables import quoted


class RealtimeReads(Nodes):
    """The reading half of `RealtimePinot`. Errors of every method: `PinotError` and its subclasses."""

    # --- the table ---------------------------------------------------------------------------------

    def realtime_tables(self) -> tuple[str, ...]:
        """Names of all REALTIME tables, with their type, sorted."""
        names = self._get("/tables", type="realtime")["tables"]
        return tuple(sorted(f"{str(name).removesuffix('_REALTIME')}_REALTIME" for name in names))

    def table_config(self, table: str) -> JsonObject | None:
        """The table's config as JSON values, None where there is no such table."""
        return self.get_realtime_config(table.removesuffix("_REALTIME"))

    def ideal_state(self, table: str) -> Node | None:
        """The ideal state: `maps` has segment → server → state, `simple` whether the table is paused."""
        return self.node(f"IDEALSTATES/{table}")

    def external_view(self, table: str) -> Mapping[str, Mapping[str, str]]:
        """Segment → server → state, as far as servers report one."""
        found = self.node(f"EXTERNALVIEW/{table}")
        return found.maps if found is not None else {}

    def segment_nodes(self, table: str) -> Mapping[str, Mapping[str, str]]:
        """The fields of every segment's node, by name."""
        return {node.id: node.simple for node in self.children(_segments(table))}

    def segment_stats(self, table: str) -> Mapping[str, Stat]:
        """When every segment's node was written, by name."""
        return self.child_stats(_segments(table))

    def segment_node(self, table: str, segment: str) -> Node:
        """One segment's node with its version, to be written back with `write_segment`.

        :raises PinotNotFound: there is none.
        """
        return self.versioned_node(f"{_segments(table)}/{segment}")

    def committing_listed(self, table: str) -> frozenset[str]:
        """Names in the list of committing segments, as it stands; empty before 1.4."""
        found = self.node(f"PROPERTYSTORE/PAUSELESS_DEBUG_METADATA/{table}")
        return frozenset(found.lists.get("committingSegments", ()) if found is not None else ())

    def pending_messages(self, table: str, server: str) -> frozenset[str]:
        """Segments of the table about which a state transition waits for that server."""
        return frozenset(
            segment
            for message in self.children(f"INSTANCES/{server}/MESSAGES")
            if message.simple.get("RESOURCE_NAME") == table
            for segment in _told_of(message)
        )

    # --- consumption -------------------------------------------------------------------------------

    def consuming_segments(self, table: str) -> Mapping[str, list[JsonObject]]:
        """What the servers say of their consuming segments: segment → one entry for each server.

        Keys: `serverName`, `consumerState`, `lastConsumedTimestamp`, `partitionToOffsetMap`, and from 1.0 on
        `partitionOffsetInfo`. Servers that do not answer are left out.
        """
        told = self._get(f"/tables/{quoted(table)}/consumingSegmentsInfo")
        # Named as the field of the Java class is, underscore and all.
        found = told.get("_segmentToConsumingInfoMap", told.get("segmentToConsumingInfoMap"))
        return found or {}

    def rebalance_status(self, job: str) -> JsonMapping:
        """How a rebalance stands. 1.0 on."""
        value: JsonMapping = self._get(f"/rebalanceStatus/{quoted(job)}")
        return value

    # --- servers -----------------------------------------------------------------------------------

    def servers_of(self, table: str) -> tuple[str, ...]:
        """Names of the servers of the table's tenants, sorted."""
        parts = self._get(f"/tables/{quoted(table)}/instances", type="server")["server"]
        return tuple(sorted({str(name) for part in parts for name in part["instances"]}))

    def live_since(self) -> Mapping[str, int]:
        """Instances that live → since when, epoch milliseconds."""
        return {name: stat.created_ms for name, stat in self.child_stats("LIVEINSTANCES").items()}

    def offline_since(self, server: str) -> int | None:
        """When an instance that does not live was last seen; None where Helix does not say."""
        found = self.node(f"INSTANCES/{server}/HISTORY")
        since = int(found.simple.get("LAST_OFFLINE_TIME", -1)) if found is not None else -1
        return since if since >= 0 else None

    def instance(self, name: str) -> JsonObject:
        """One instance: `hostName`, `adminPort`, and `adminHttpsPort`, which Pinot's own answer leaves out.

        :raises PinotNotFound: there is none of that name.
        """
        told, config = super().instance(name), self.node(f"CONFIGS/PARTICIPANT/{name}")
        port = config.simple.get("adminHttpsPort") if config is not None else None
        return told if port is None else {**told, "adminHttpsPort": port}

    def admin_url(self, instance: JsonMapping) -> str | None:
        """Address of a server's admin endpoint, None where it names none; where it speaks both schemes, the
        controller's.

        :param instance: as `instance` returns it.
        """
        host = str(instance["hostName"]).removeprefix("Server_")
        ports = {"http": instance.get("adminPort"), "https": instance.get("adminHttpsPort")}
        known = {scheme: port for scheme, told in ports.items() if (port := int(told or -1)) > 0}
        ours = urlsplit(self.connection.controller_url).scheme
        scheme = ours if ours in known else next(iter(known), None)
        return f"{scheme}://{host}:{known[scheme]}" if scheme is not None else None

    def is_ready(self, admin_url: str) -> bool:
        """Whether a server says that it serves; False while it is STARTING.

        :raises PinotUnreachable: nobody answers there.
        """
        try:
            self._doors.at(admin_url).send(self._read("/health/readiness"))
        except NotReady:
            return False
        return True

    # --- what is set -------------------------------------------------------------------------------

    def controller_config(self) -> AppConfig:
        """Settings of the controller that answers."""
        return AppConfig.from_json(self._get("/appconfigs"))

    def config_at(self, url: str) -> AppConfig:
        """Settings of the server (admin address) or broker at that address."""
        return AppConfig.from_json(self._doors.at(url).send_json(self._read("/appconfigs")))

    def cluster_config(self) -> AppConfig:
        """Settings of the cluster."""
        return AppConfig.of(self._get("/cluster/configs") or {})

    # --- brokers -----------------------------------------------------------------------------------

    def brokers_of(self, table: str) -> tuple[str, ...]:
        """Addresses of the brokers that answer for the table; the connection's own list comes first."""
        if self.connection.broker_urls:
            return self.connection.broker_urls
        raw = table.removesuffix("_REALTIME")
        try:
            found = self._get(f"/v2/brokers/tables/{quoted(raw)}", type="REALTIME", state="ONLINE")
        except PinotNotFound as error:
            raise PinotError("no broker is online for the table", why=error.why) from None
        scheme = urlsplit(self.connection.controller_url).scheme
        return tuple(sorted(f"{scheme}://{one['host']}:{one['port']}" for one in found))

    def answered_rows(self, broker: str, table: str) -> Mapping[str, int]:
        """Rows that a query finds now, by segment; superseded rows of upsert tables count.

        :raises PinotError: no whole answer.
        """
        ideal = self.ideal_state(table)
        sql = f'SELECT $segmentName, COUNT(*) FROM "{table}" GROUP BY $segmentName'
        there = len(ideal.maps) if ideal is not None else 0
        found = Broker(broker, self._doors).of_segments(sql, there, {"skipUpsert": "true"})
        return {str(segment): int(rows) for segment, rows in found}

    def _read(self, path: str) -> HttpCall:
        return HttpCall("GET", path, CallKind.READ, self.connection.timeouts.call)


def _segments(table: str) -> str:
    return f"PROPERTYSTORE/SEGMENTS/{table}"


def _told_of(message: Node) -> tuple[str, ...]:
    """The segments of a message: one, or those of a batch."""
    one = message.simple.get("PARTITION_NAME")
    return tuple(message.lists.get("PARTITION_NAME", ())) or ((one,) if one else ())
