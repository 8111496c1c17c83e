"""The controller's REST API about the cluster itself, schemas and table configs.

About OFFLINE tables, but for what reads and writes a config.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from pinot_assets.core.connections import PinotConnection
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import PinotError, PinotNotFound
from pinot_assets.pinot.client.http import CallKind, ClientPool, HttpCall


class TableCalls:
    """The part of `Controller` that knows no segments. Thread-safe; close it, or use it in a `with`.

    Errors of every method: see `pinot_assets.pinot.api.PinotClient`.
    """

    def __init__(self, connection: PinotConnection, transport: httpx.BaseTransport | None = None) -> None:
        self.connection = connection
        self._doors = ClientPool(connection, transport)
        self._door = self._doors.at(connection.controller_url)

    def close(self) -> None:
        """Close all connections."""
        self._doors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _get(self, path: str, /, **params: str) -> Any:
        return self._door.send_json(
            HttpCall("GET", path, CallKind.READ, self.connection.timeouts.call, params=params or None)
        )

    def _write(self, method: str, path: str, /, *, body: Any = None, **params: str) -> None:
        self._door.send(
            HttpCall(
                method, path, CallKind.WRITE, self.connection.timeouts.call, params=params or None, json=body
            )
        )

    # --- cluster ---------------------------------------------------------------------------------

    def version(self) -> str:
        """Version of the controller, e.g. `0.11.0`; empty where it names none."""
        components = self._get("/version")
        named = components.get("pinot-controller", next(iter(components.values()), ""))
        return str(named).partition("-")[0]

    def controller_setting(self, name: str) -> str | None:
        """A setting of the controller itself, as its configuration says it; None where it says nothing."""
        value = (self._get("/appconfigs").get("pinotConfig") or {}).get(name)
        return None if value is None else str(value).lower()

    def instances(self) -> tuple[str, ...]:
        """Names of all instances: controllers, brokers, servers."""
        return tuple(self._get("/instances")["instances"])

    def instance(self, name: str) -> JsonObject:
        """One instance: `hostName`, `port`, `adminPort`, …

        :raises PinotNotFound: there is none of that name.
        """
        value: JsonObject = self._get(f"/instances/{quoted(name)}")
        return value

    # --- schema and table config -----------------------------------------------------------------

    def get_schema(self, name: str) -> JsonObject | None:
        """See `PinotClient.get_schema`."""
        try:
            value: JsonObject = self._get(f"/schemas/{quoted(name)}")
        except PinotNotFound:
            return None
        return value

    def put_schema(self, schema: JsonMapping) -> None:
        """See `PinotClient.put_schema`."""
        self._write("POST", "/schemas", body=dict(schema), override="true")

    def delete_schema(self, name: str) -> None:
        """See `PinotClient.delete_schema`."""
        self._write("DELETE", f"/schemas/{quoted(name)}")

    def validate_table(self, schema: JsonMapping, config: JsonMapping) -> None:
        """See `PinotClient.validate_table`."""
        # Of the two together: `/tables/validate` wants the schema to be there, which a new table's is not.
        half = str(config.get("tableType", "OFFLINE")).lower()
        body = {"tableName": raw_name(config), "schema": dict(schema), half: dict(config)}
        self._door.send(
            HttpCall(
                "POST", "/tableConfigs/validate", CallKind.READ, self.connection.timeouts.call, json=body
            )
        )

    def get_table_config(self, table: str) -> JsonObject | None:
        """See `PinotClient.get_table_config`."""
        return self._table_config(table, "OFFLINE")

    def get_realtime_config(self, table: str) -> JsonObject | None:
        """See `PinotClient.get_realtime_config`."""
        return self._table_config(table, "REALTIME")

    def _table_config(self, table: str, kind: str) -> JsonObject | None:
        try:
            value: JsonObject | None = self._get(f"/tables/{quoted(table)}", type=kind).get(kind)
        except PinotNotFound:
            return None
        return value

    def offline_tables(self) -> tuple[str, ...]:
        """Raw names of all OFFLINE tables, sorted."""
        names = self._get("/tables", type="offline")["tables"]
        return tuple(sorted(str(name).removesuffix("_OFFLINE") for name in names))

    def create_table(self, config: JsonMapping) -> None:
        """See `PinotClient.create_table`."""
        self._write("POST", "/tables", body=dict(config))

    def update_table(self, config: JsonMapping) -> None:
        """See `PinotClient.update_table`."""
        name = raw_name(config)
        with self._absence_told(name, str(config.get("tableType", "OFFLINE")).upper()):
            self._write("PUT", f"/tables/{quoted(name)}", body=dict(config))

    def delete_table(self, table: str, retention: str | None = None) -> None:
        """See `PinotClient.delete_table`."""
        kept = {} if retention is None else {"retention": retention}
        self._write("DELETE", f"/tables/{quoted(table)}", type="offline", **kept)

    def table_bytes(self, table: str) -> int:
        """See `PinotClient.table_bytes`."""
        # From 1.0 on a size may leave out replaced segments and the list of them; the quota counts them all.
        with self._absence_told(table):
            reply = self._get(
                f"/tables/{quoted(table)}/size", includeReplacedSegments="true", verbose="false"
            )
        size = (reply or {}).get("offlineSegments")
        if size is None or size["estimatedSizeInBytes"] < 0:
            raise PinotError(f"no server reported a size for table {table}", hint="are its servers up?")
        return int(size["estimatedSizeInBytes"])

    @contextmanager
    def _absence_told(self, table: str, kind: str = "OFFLINE") -> Iterator[None]:
        """Makes a refusal `PinotNotFound` where there is no such table: 1.5 stumbles over the missing table
        (asked for its size), or first misses something else (its schema, on an update)."""
        try:
            yield
        except PinotError as refusal:
            if type(refusal) is PinotError and self._table_config(table, kind) is None:
                raise PinotNotFound(refusal.what, why=f"there is no {kind} table {table}") from None
            raise


def raw_name(config: JsonMapping) -> str:
    """The name of a config's table, without its type."""
    return str(config["tableName"]).removesuffix("_OFFLINE").removesuffix("_REALTIME")


def quoted(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")
