"""The controller's REST API for what concerns no segments: tables, schemas, instances, rights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import httpx

from pinot_assets.core.connections import PinotConnection
from pinot_assets.core.json_object import JsonMapping, JsonObject, JsonValue
from pinot_assets.core.untrusted import listed, typed
from pinot_assets.errors import PinotError, PinotNotFound
from pinot_assets.pinot.client.client_pool import ClientPool
from pinot_assets.pinot.client.http import CallKind, Closing, HttpCall, quoted
from pinot_assets.pinot.table_config import setting


def raw_name(config: JsonMapping) -> str:
    """Return the name of a config's table, without its type."""
    return str(config["tableName"]).removesuffix("_OFFLINE").removesuffix("_REALTIME")


_LETTING_GO = (
    "wait some seconds, then do the same again: servers still drop the segments of the table of that name "
    "that was deleted"
)
"""From 1.0 on Pinot creates no table before that; 0.11 does."""


class TableCalls(Closing):
    """The calls of `Controller` that concern no segments. Thread-safe; close it, or use it in a `with`.

    Errors of every method: see `pinot_assets.pinot.api.PinotClient`.
    """

    def __init__(self, connection: PinotConnection, transport: httpx.BaseTransport | None = None) -> None:
        self.connection = connection
        self._clients = ClientPool(connection, transport)
        self._client = self._clients.at(connection.controller_url)

    def close(self) -> None:
        """Close all connections."""
        self._clients.close()

    def _get(self, path: str, /, **params: str) -> JsonObject:
        return self._client.get_fields(path, **params)

    def _write(
        self, method: str, path: str, /, *, body: JsonValue = None, **params: str | Sequence[str]
    ) -> None:
        self._client.send(HttpCall(method, path, CallKind.WRITE, params=params or None, json=body))

    # --- cluster ---------------------------------------------------------------------------------

    def version(self) -> str:
        """Return the controller's version, e.g. `0.11.0`; empty if it names none."""
        components = self._get("/version")
        named = components.get("pinot-controller", next(iter(components.values()), ""))
        return str(named).partition("-")[0]

    def controller_setting(self, name: str) -> str | None:
        """Return a setting of the controller from its configuration, in lower case; None if it is not set."""
        value = (self._get("/appconfigs").get("pinotConfig") or {}).get(name)
        return None if value is None else str(value).lower()

    def instances(self) -> tuple[str, ...]:
        """Return the names of all instances: controllers, brokers, servers."""
        return tuple(self._get("/instances")["instances"])

    def instance(self, name: str) -> JsonObject:
        """Return one instance: `hostName`, `port`, `adminPort`, …

        :raises PinotNotFound: there is no instance of that name.
        """
        return self._get(f"/instances/{quoted(name)}")

    def servers_of(self, table: str, config: JsonMapping) -> tuple[str, ...]:
        """Return the names of the servers that hold segments of the table or may be given some, sorted.

        From 1.5 on `/instances` names only the former, none for an empty table (apache/pinot#16964); before
        that, those of its tenant. So the tenant is asked as well. If a table has an
        `instanceAssignmentConfigMap`, Pinot stores which servers it uses, and only they count.

        :param table: name of an OFFLINE table, or of a REALTIME one with `_REALTIME`.
        :param config: its table config.
        """
        kind = "Realtime" if table.endswith("_REALTIME") else "Offline"
        if setting(config, "instanceAssignmentConfigMap") and (assigned := self._assigned(table, kind)):
            return assigned
        parts = self._get(f"/tables/{quoted(table)}/instances", type="server")["server"]
        held = [one for part in parts if part["tableType"] == kind.lower() for one in part["instances"]]
        tenant = str(setting(config, "tenants", "server") or "DefaultTenant")
        try:
            answer = self._get(f"/tenants/{quoted(tenant)}", type="server", tableType=kind.upper())
        except PinotNotFound:  # no server has its tag
            answer = {}
        return tuple(sorted({*map(str, held), *map(str, answer.get(f"{kind}ServerInstances") or ())}))

    def _assigned(self, table: str, kind: str) -> tuple[str, ...]:
        with suppress(PinotNotFound):
            stored = self._get(f"/tables/{quoted(table)}/instancePartitions")
            halves = ("OFFLINE",) if kind == "Offline" else ("CONSUMING", "COMPLETED")
            groups = [
                typed(stored[half], dict).get("partitionToInstancesMap") or {}
                for half in halves
                if half in stored
            ]
            return tuple(sorted({str(one) for group in groups for part in group.values() for one in part}))
        return ()

    def _brokers(self, table: str, kind: str) -> tuple[str, ...]:
        if self.connection.broker_urls:
            return self.connection.broker_urls
        brokers = self._client.get_json(f"/v2/brokers/tables/{quoted(table)}", type=kind, state="ONLINE")
        return self._urls(brokers)

    def brokers_by_table(self) -> dict[str, tuple[str, ...]]:
        """Return the base URLs of the brokers that serve each table now, by raw table name.

        Assumes the controller's scheme (http or https) for brokers, unless `PinotConnection.broker_urls`
        names them.
        """
        tables = self._get("/v2/brokers/tables", state="ONLINE")
        return {
            str(table): self.connection.broker_urls or self._urls(brokers)
            for table, brokers in tables.items()
        }

    def all_brokers(self) -> tuple[str, ...]:
        """Return the base URLs of all brokers of the cluster, as `brokers_by_table` does."""
        if self.connection.broker_urls:
            return self.connection.broker_urls
        tenants = self._get("/v2/brokers/tenants", state="ONLINE")
        return tuple(sorted({url for brokers in tenants.values() for url in self._urls(brokers)}))

    def _urls(self, brokers: JsonValue) -> tuple[str, ...]:
        return tuple(sorted(f"{self._scheme}://{one['host']}:{one['port']}" for one in listed(brokers, dict)))

    @property
    def _scheme(self) -> str:
        return urlsplit(self.connection.controller_url).scheme

    # --- schema and table config -----------------------------------------------------------------

    def get_schema(self, name: str) -> JsonObject | None:
        """See `PinotClient.get_schema`."""
        with suppress(PinotNotFound):
            return self._get(f"/schemas/{quoted(name)}")
        return None

    def put_schema(self, schema: JsonMapping) -> None:
        """See `PinotClient.put_schema`."""
        self._write("POST", "/schemas", body=dict(schema), override="true")

    def delete_schema(self, name: str) -> None:
        """See `PinotClient.delete_schema`."""
        self._write("DELETE", f"/schemas/{quoted(name)}")

    def validate_table(self, schema: JsonMapping, config: JsonMapping) -> None:
        """See `PinotClient.validate_table`."""
        # This call takes both together; `/tables/validate` needs the schema to be stored already.
        half = str(config.get("tableType", "OFFLINE")).lower()
        body = {"tableName": raw_name(config), "schema": dict(schema), half: dict(config)}
        self._client.send(HttpCall("POST", "/tableConfigs/validate", CallKind.READ, json=body))

    def get_table_config(self, table: str) -> JsonObject | None:
        """See `PinotClient.get_table_config`."""
        return self._table_config(table, "OFFLINE")

    def get_realtime_config(self, table: str) -> JsonObject | None:
        """See `PinotClient.get_realtime_config`."""
        return self._table_config(table, "REALTIME")

    def fixed_time_boundary_ms(self, table: str) -> int | None:
        """See `PinotClient.fixed_time_boundary_ms`. `/tables/{table}/idealstate` leaves simple fields out."""
        cluster = self._get("/cluster/info")["clusterName"]
        state = self._get("/zk/get", path=f"/{cluster}/IDEALSTATES/{table}_OFFLINE")
        text = (state.get("simpleFields") or {}).get("HYBRID_TABLE_TIME_BOUNDARY")
        try:
            boundary_ms = int(text or 0)
        except ValueError as error:
            raise PinotError(f"the time boundary of {table} cannot be read", why=str(text)) from error
        return boundary_ms if boundary_ms > 0 else None  # brokers ignore any other (`TimeBoundaryManager`)

    def _table_config(self, table: str, kind: str) -> JsonObject | None:
        try:
            value: JsonObject | None = self._get(f"/tables/{quoted(table)}", type=kind).get(kind)
        except PinotNotFound:
            return None
        return value

    def offline_tables(self) -> tuple[str, ...]:
        """Return the raw names of all OFFLINE tables, sorted."""
        names = self._get("/tables", type="offline")["tables"]
        return tuple(sorted(str(name).removesuffix("_OFFLINE") for name in names))

    def create_table(self, config: JsonMapping) -> None:
        """See `PinotClient.create_table`."""
        try:
            self._write("POST", "/tables", body=dict(config))
        except PinotError as refusal:
            if type(refusal) is PinotError and "External view" in (refusal.why or ""):
                raise PinotError(refusal.what, why=refusal.why, hint=_LETTING_GO) from None
            raise

    def update_table(self, config: JsonMapping) -> None:
        """See `PinotClient.update_table`."""
        name = raw_name(config)
        with self._not_found_if_absent(name, str(config.get("tableType", "OFFLINE")).upper()):
            self._write("PUT", f"/tables/{quoted(name)}", body=dict(config))

    def delete_table(self, table: str, retention: str | None = None) -> None:
        """See `PinotClient.delete_table`."""
        kept = {} if retention is None else {"retention": retention}
        self._write("DELETE", f"/tables/{quoted(table)}", type="offline", **kept)

    def table_bytes(self, table: str) -> int:
        """See `PinotClient.table_bytes`."""
        # From 1.0 on a size may leave out replaced segments, as the list does; the quota counts them all.
        with self._not_found_if_absent(table):
            reply = self._get(
                f"/tables/{quoted(table)}/size", includeReplacedSegments="true", verbose="false"
            )
        size = reply.get("offlineSegments")
        if size is None or size["estimatedSizeInBytes"] < 0:
            raise PinotError(f"no server reported a size for table {table}", hint="are its servers up?")
        return int(size["estimatedSizeInBytes"])

    @contextmanager
    def _not_found_if_absent(self, table: str, kind: str = "OFFLINE") -> Iterator[None]:
        """Turn a refusal into `PinotNotFound` if there is no such table: 1.5 answers with another error to
        the question for its size, and first misses its schema at an update."""
        try:
            yield
        except PinotError as refusal:
            if type(refusal) is PinotError and self._table_config(table, kind) is None:
                raise PinotNotFound(refusal.what, why=f"there is no {kind} table {table}") from None
            raise
