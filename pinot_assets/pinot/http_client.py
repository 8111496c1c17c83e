"""The `PinotClient` of a real cluster; it finds brokers and servers through the controller."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TypeVar

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.waiting import MONOTONIC, Deadline, in_threads, poll_until
from pinot_assets.errors import PinotError, PinotNotFound, PinotUnreachable
from pinot_assets.pinot import versions
from pinot_assets.pinot.api import PushMode, PushReport, ServerDisk, StagedObjects
from pinot_assets.pinot.client.broker import Broker, QueryResult
from pinot_assets.pinot.client.broker_answer import BrokerAnswer
from pinot_assets.pinot.client.client_pool import LeadControllers
from pinot_assets.pinot.client.controller import Controller
from pinot_assets.pinot.client.data_table import DataTable
from pinot_assets.pinot.client.http import CallKind, HttpCall, NoConnection, quoted
from pinot_assets.pinot.client.user_rights import admin_of_server
from pinot_assets.pinot.held_segment import HeldSegment
from pinot_assets.pinot.push.upload import Uploader
from pinot_assets.pinot.push.upload_loop import UploadLoop
from pinot_assets.snapshot.receipt import Output

T = TypeVar("T")

THREADS = 8
POLL_SECONDS = 0.25
_OF_A_DEADLINE = 0.75
"""Share of the query deadline that the broker gets; the rest is for the network."""
_FOR_THE_NETWORK = 5.0
"""Seconds that we wait for a person's query longer than the broker does: its message tells more than none."""
_ALL_GROUPS = {"minServerGroupTrimSize": "500000000", "minBrokerGroupTrimSize": "500000000"}
"""Servers and brokers keep only five times LIMIT groups (5,000 at least) for HAVING and ORDER BY, and do not
report the others. This minimum keeps every group that `numGroupsLimit` allows; that limit they do report. A
negative number would turn trimming off, but not in every release. The value is the largest that Pinot can
double (`GroupByUtils.MAX_TRIM_THRESHOLD`)."""


class HttpPinotClient(Controller):
    """The real implementation of `pinot_assets.pinot.api.PinotClient`."""

    @cached_property
    def _leads(self) -> LeadControllers:
        return LeadControllers(self._clients)

    _release: str = ""
    _gave_up_batches: bool = False

    def _read_release(self) -> str:
        self._release = self._release or self.version()
        return self._release

    def takes_over_half_uploads(self) -> bool:
        """See `pinot_assets.pinot.push.upload.Uploads`."""
        return versions.takes_over_half_uploads(self._read_release())

    def takes_batches(self) -> bool:
        """See `pinot_assets.pinot.push.upload.Uploads`."""
        return not self._gave_up_batches and versions.takes_batches(self._read_release())

    def give_up_batches(self) -> None:
        """See `pinot_assets.pinot.push.upload.Uploads`."""
        self._gave_up_batches = True

    def uploader(self, table: str) -> Uploader:
        """See `pinot_assets.pinot.push.upload.Uploads`."""
        return Uploader(self._clients.at(self._leads.of(table)), table, self.connection.timeouts.upload)

    def push(
        self,
        table: str,
        outputs: Sequence[Output],
        *,
        staged: StagedObjects,
        mode: PushMode | None = None,
        before_upload: Callable[[], None] = lambda: None,
    ) -> PushReport:
        """See `PinotClient.push`."""
        return UploadLoop(self, table, staged, mode, before_upload).run(outputs)

    def crcs_on_servers(self, table: str, servers: Collection[str]) -> dict[str, dict[str, int] | PinotError]:
        """See `PinotClient.crcs_on_servers`."""

        def ask(server: str) -> dict[str, int]:
            try:
                crcs = self.ask_server(server, f"/tables/{quoted(table)}_OFFLINE/segments/crc")
            except PinotNotFound:
                return {}  # the server has no segment of this table
            return {name: int(crc) for name, crc in crcs.items()}

        return each_server(servers, ask)

    def rows_on_servers(
        self, table: str, names: Collection[str], servers: Collection[str]
    ) -> dict[str, dict[str, int]]:
        """See `PinotClient.rows_on_servers`."""

        def ask(address: str, path: str) -> int:
            return int(self._clients.at(address).get_fields(path)["totalDocs"])

        return self._each_replica(table, names, servers, ask)

    def held_segments(
        self, table: str, names: Collection[str], servers: Collection[str]
    ) -> dict[str, dict[str, HeldSegment]]:
        """See `PinotClient.held_segments`."""

        def ask(address: str, path: str) -> HeldSegment | None:
            with suppress(PinotUnreachable), _readable(path):
                return HeldSegment.from_json(self._clients.at(address).get_fields(path, columns="*"))
            return None

        return self._each_replica(table, names, servers, ask)

    def _each_replica(
        self,
        table: str,
        names: Collection[str],
        servers: Collection[str],
        ask: Callable[[str, str], T | None],
    ) -> dict[str, dict[str, T]]:
        """Return what each server says of each name: segment → instance → answer, without those of None.

        :param ask: takes a server's address and the path of the segment's metadata there.
        """
        ideal = self.ideal_state(table)
        asked = [(name, server) for name in names for server in ideal.get(name, ()) if server in servers]
        addresses = {server: self._admin_url(server) for server in {server for _, server in asked}}

        def answer(pair: tuple[str, str]) -> T | None:
            name, server = pair
            with suppress(PinotNotFound), admin_of_server():
                path = f"/tables/{quoted(table)}_OFFLINE/segments/{quoted(name)}/metadata"
                return ask(addresses[server], path)
            return None

        answers: dict[str, dict[str, T]] = {name: {} for name in names}
        for (name, server), said in zip(asked, in_threads(answer, asked, THREADS, "replicas"), strict=True):
            if said is not None:
                answers[name][server] = said
        return answers

    def replace_schema(self, schema: JsonMapping) -> None:
        """See `PinotClient.replace_schema`."""
        if versions.forces_schemas(self._read_release()):
            self._write("POST", "/schemas", body=dict(schema), override="true", force="true")
            return
        name = str(schema["schemaName"])
        before = self.get_schema(name)
        self.delete_schema(name)
        try:
            self.put_schema(schema)
        except PinotError:
            with suppress(PinotError):
                self.put_schema(before or schema)
            raise

    def needs_reload(self, table: str) -> bool | None:
        """See `PinotClient.needs_reload`."""
        if not versions.tells_what_to_reload(self._read_release()):
            return None
        return bool(self._get(f"/segments/{quoted(table)}_OFFLINE/needReload")["needReload"])

    def reload_segment(self, table: str, name: str) -> str:
        """See `PinotClient.reload_segment`."""
        path = f"/segments/{quoted(table)}_OFFLINE/{quoted(name)}/reload"
        answer = str(self._client.send_fields(HttpCall("POST", path, CallKind.WRITE)).get("status"))
        if (job := re.search(r"job id: ([^,\s]+)", answer)) is None:
            raise PinotError(f"the answer to the reload of {name} names no job", why=answer)
        return job[1]

    def ask_if_reloaded(self, job: str) -> bool:
        """See `PinotClient.ask_if_reloaded`."""
        status = self._get(f"/segments/segmentReloadStatus/{quoted(job)}")
        return bool(status["successCount"] >= status["totalSegmentCount"])

    def _admin_url(self, server: str) -> str:
        instance = self.instance(server)
        return f"{self._scheme}://{_host(instance)}:{instance['adminPort']}"

    def query_server(self, server: str, sql: str, segments: Sequence[str]) -> DataTable:
        """See `PinotClient.query_server`. Makes two calls, the first one for the server's address."""
        from pinot_assets.pinot.client.server_query import ask_server  # here, because gRPC loads slowly

        instance = self.instance(server)
        port = int(instance.get("grpcPort") or 0)
        if port <= 0:
            raise PinotError(
                f"{server} accepts no queries by gRPC",
                why="its instance config in Pinot names no grpcPort",
                hint="set pinot.server.grpc.enable to true and restart the server",
            )
        address = f"{_host(instance)}:{port}"
        # A setting of its own turns TLS on there, so the guard checks only the host and the port.
        self._clients.guard.require(f"{self._scheme}://{address}")
        return ask_server(address, sql, segments, self.connection)

    def require_server_queries(self) -> None:
        """See `PinotClient.require_server_queries`."""
        from pinot_assets.pinot.client.server_query import require_askable

        require_askable(self.connection)

    def table_servers(self, table: str) -> tuple[str, ...]:
        """See `PinotClient.table_servers`."""
        if (config := self.get_table_config(table)) is None:
            raise PinotNotFound(f"there is no OFFLINE table {table}")
        return self.servers_of(table, config)

    def server_versions(self, table: str) -> dict[str, str]:
        """See `PinotClient.server_versions`."""
        return self.versions_of(self.table_servers(table))

    def versions_of(self, servers: Sequence[str]) -> dict[str, str]:
        """Return the release that each of these servers names, with its build behind it; "" if none.

        :param servers: names of instances.
        :raises PinotError: Pinot could not be asked.
        """
        cluster = str(self._get("/cluster/info")["clusterName"])

        def read(server: str) -> str:
            record = self._get("/zk/get", path=f"/{cluster}/CONFIGS/PARTICIPANT/{server}")
            return str((record.get("simpleFields") or {}).get("pinotVersion", ""))

        return dict(zip(servers, in_threads(read, servers, THREADS, "versions"), strict=True))

    def server_disks(self, servers: Collection[str]) -> dict[str, ServerDisk | PinotError]:
        """See `PinotClient.server_disks`."""

        def ask(server: str) -> ServerDisk:
            usage = self.ask_server(server, "/instance/diskUtilization")
            return ServerDisk(total=int(usage["totalSpaceBytes"]), used=int(usage["usedSpaceBytes"]))

        disks = each_server(servers, ask)
        return {server: disk for server, disk in disks.items() if not isinstance(disk, PinotNotFound)}

    def ask_server(self, server: str, path: str) -> dict[str, str]:
        """Return a server's answer to a GET. Makes two calls, the first one for the server's address."""
        try:
            address = self._admin_url(server)
        except PinotNotFound as error:
            # Not to be confused with a server's 404 for a table that it does not have.
            raise PinotError(f"Pinot knows no server {server}", why=error.why) from None
        with admin_of_server():
            return self._clients.at(address).get_fields(path)

    def brokers(self, table: str) -> tuple[str, ...]:
        """See `PinotClient.brokers`. Assumes the controller's scheme (http or https) for brokers, unless
        `PinotConnection.broker_urls` names them."""
        return self._brokers(table, "OFFLINE")

    def broker(self, url: str) -> Broker:
        """Return a client of one broker, for queries."""
        return Broker(url, self._clients)

    def broker_visible_segments(self, broker: str, table: str) -> frozenset[str]:
        """See `PinotClient.broker_visible_segments`."""
        return self.broker(broker).visible_segments(table, len(self.all_segments(table)))

    def broker_rows(self, broker: str, table: str) -> int:
        """See `PinotClient.broker_rows`."""
        return self.broker(broker).rows(table)

    def query_broker(self, broker: str, sql: str) -> QueryResult:
        """See `PinotClient.query_broker`."""
        seconds = self.connection.timeouts.query
        # A broker's own default is shorter (10 s), and its message at a timeout tells us more than no answer.
        options = {"timeoutMs": str(int(seconds * 1000 * _OF_A_DEADLINE)), **_ALL_GROUPS}
        return self.broker(broker).query(sql, options, seconds)

    def ask_brokers(
        self, brokers: Sequence[str], sql: str, options: Mapping[str, str], seconds: float
    ) -> BrokerAnswer:
        """Return the answer of the first of these brokers that can be reached, complete or not.

        :param brokers: base URLs, at least one.
        :param options: Pinot's query options.
        :param seconds: how long the query may take at the broker.
        :raises PinotUnreachable: none of them can be reached; or a broker was asked and did not answer.
        :raises PinotError: as `Broker.ask`.
        """
        in_ms = {"timeoutMs": str(max(1, int(seconds * 1000))), **options}
        for url in brokers[:-1]:
            with suppress(NoConnection):
                return self.broker(url).ask(sql, in_ms, seconds + _FOR_THE_NETWORK)
        return self.broker(brokers[-1]).ask(sql, in_ms, seconds + _FOR_THE_NETWORK)

    def rebuild_routing(self, broker: str, table: str) -> None:
        """See `PinotClient.rebuild_routing`."""
        self.broker(broker).rebuild_routing(table)

    def settle_brokers(self, table: str, *, seconds: float) -> None:
        """See `PinotClient.settle_brokers`."""
        deadline = Deadline(MONOTONIC, seconds)
        poll_until(deadline, POLL_SECONDS, lambda: self.dropping_segments(table), operator.not_)
        for broker in self.brokers(table):
            with suppress(PinotError):
                self.rebuild_routing(broker, table)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise PinotError(f"the answer to {path} cannot be read", why=str(error)) from error


def _host(instance: JsonMapping) -> str:
    """Return a server's host as a URL needs it: an IPv6 address in brackets."""
    host = str(instance["hostName"]).removeprefix("Server_")
    return f"[{host}]" if ":" in host else host


def each_server(servers: Collection[str], ask: Callable[[str], T]) -> dict[str, T | PinotError]:
    """Ask several servers at a time; return each answer, or the error of one that does not answer."""

    def asked(server: str) -> T | PinotError:
        try:
            return ask(server)
        except PinotError as error:
            return error

    return dict(zip(servers, in_threads(asked, servers, THREADS, "servers"), strict=True))
