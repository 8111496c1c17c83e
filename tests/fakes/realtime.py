"""A Pinot with one REALTIME table in memory, spoken to over HTTP: controller, servers, brokers.

It answers as 1.5.1 does, or as 0.11.0 where `version` says so, and keeps what a real one keeps in ZooKeeper.
Time stands still unless a test moves it. What the writing calls do is in `fakes.realtime_orders`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import httpx

from pinot_assets.pinot.connection import PinotConnection
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.reading import read_state
from pinot_assets.realtime.state import RealtimeState, StreamPartition
from pinot_assets.source import ObjectStore

CONTROLLER = "http://controller:9000"
NOW_MS = 1_770_000_000_000
MINUTE_MS = 60_000
TABLE = "clicks_REALTIME"
S1, S2 = "Server_host1_8098", "Server_host2_8098"
CLUSTER = "test"


@dataclass
class FakeNode:
    """One segment's node."""

    fields: dict[str, str]
    created_ms: int
    modified_ms: int
    version: int = 0


@dataclass
class FakeServer:
    """One server.

    :ivar ready: what its health endpoint says; None does not answer.
    :ivar offline_since: of a dead one.
    """

    number: int
    live_since: int | None = NOW_MS - 60 * MINUTE_MS
    offline_since: int | None = None
    enabled: bool = True
    ready: bool | None = True
    config: dict[str, str] = field(
        default_factory=lambda: {"pinot.server.instance.segment.store.uri": "s3://b/d"}
    )
    reingested: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        return self.live_since is not None


class FakeRealtime:
    """The table, its cluster, and the calls that were made.

    :ivar config: the table config.
    :ivar ideal: segment → server → state; `ideal_fields` are the ideal state's own.
    :ivar external: the external view, alike.
    :ivar consuming: segment → server → (state, offset, milliseconds of lag).
    :ivar rows: broker → segment → rows; brokers that are left out find what the nodes say.
    :ivar stream: partition → earliest and latest offset.
    :ivar asked: every call: method, host and path.
    :ivar away: beginnings of paths that are not answered; `lost` ones are carried out, and not answered.
    :ivar refused: path → status of a refusal.
    """

    def __init__(self, version: str = "1.5.1") -> None:
        self.version = version
        self.now_ms = NOW_MS
        self.config: dict[str, Any] = table_config()
        self.ideal: dict[str, dict[str, str]] = {}
        self.ideal_fields: dict[str, str] = {}
        self.external: dict[str, dict[str, str]] = {}
        self.nodes: dict[str, FakeNode] = {}
        self.committing: list[str] = []
        self.servers = {S1: FakeServer(1), S2: FakeServer(2)}
        self.brokers = ["broker1", "broker2"]
        self.rows: dict[str, dict[str, int]] = {}
        self.consuming: dict[str, dict[str, tuple[str, int, int | None]]] = {}
        self.controller_config: dict[str, str] = {"controller.data.dir": "s3://b/d"}
        self.cluster_config: dict[str, str] = {}
        self.broker_config: dict[str, str] = {}
        self.stream: dict[int, tuple[int, int]] = {0: (0, 200)}
        self.asked: list[str] = []
        self.away: set[str] = set()
        self.lost: set[str] = set()
        self.refused: dict[str, int] = {}
        self.jobs: dict[str, list[str]] = {}
        self._numbers = itertools.count(1)

    # --- making it -----------------------------------------------------------------------------------

    def pinot(self) -> RealtimePinot:
        """A client of it. Close it."""
        return RealtimePinot(PinotConnection(CONTROLLER), httpx.MockTransport(self.handle))

    def look(self, deep_store: ObjectStore | None = None) -> RealtimeState:
        """Its state, as the real reading sees it."""
        stream = {p: StreamPartition(p, *offsets) for p, offsets in self.stream.items()}
        with self.pinot() as pinot:
            return read_state(
                pinot,
                TABLE,
                deep_store=deep_store,
                read_stream=lambda _: stream,
                clock=lambda: self.now_ms / 1000,
            )

    def segment(
        self,
        partition: int = 0,
        sequence: int = 0,
        status: str = "DONE",
        *,
        url: str | None = "s3://b/d/clicks/x",
        states: Mapping[str, str] | None = None,
        ideal: str | None = None,
        start: int = 0,
        end: int = 100,
        age_ms: int = 10 * MINUTE_MS,
        docs: int | None = None,
    ) -> str:
        """Add a segment; returns its name.

        :param states: server → state in the external view; as in the ideal state where not given.
        :param ideal: state in the ideal state, on both servers.
        """
        name = f"clicks__{partition}__{sequence}__20260202T0240Z"
        consuming = status == "IN_PROGRESS"
        wanted = ideal or ("CONSUMING" if consuming else "ONLINE")
        written = self.now_ms - age_ms
        fields = {
            "segment.realtime.status": status,
            "segment.realtime.startOffset": str(start),
            "segment.creation.time": str(written),
        }
        if not consuming:
            fields["segment.realtime.endOffset"] = str(end)
        if status == "DONE":
            fields |= {"segment.crc": "77", "segment.size.in.bytes": "1000"}
            fields["segment.total.docs"] = str(end - start if docs is None else docs)
            fields |= {} if url is None else {"segment.download.url": url}
        self.nodes[name] = FakeNode(fields, written, written)
        self.ideal[name] = dict.fromkeys(self.servers, wanted)
        self.external[name] = dict(states if states is not None else self.ideal[name])
        if consuming:
            self.consuming[name] = dict.fromkeys(self.external[name], ("CONSUMING", end, 10))
        return name

    def kill(self, server: str, ago_ms: int = MINUTE_MS) -> None:
        """It dies, and the external view has lost it."""
        self.servers[server].live_since = None
        self.servers[server].offline_since = self.now_ms - ago_ms
        for states in self.external.values():
            states.pop(server, None)
        for found in self.consuming.values():
            found.pop(server, None)

    # --- answering -----------------------------------------------------------------------------------

    def handle(self, request: httpx.Request) -> httpx.Response:
        """One call."""
        from fakes.realtime_orders import order

        path = unquote(request.url.path)
        host = request.url.host
        self.asked.append(f"{request.method} {host}{path}")
        if any(path.startswith(start) or f"{host}{path}".startswith(start) for start in self.away):
            raise httpx.ConnectError("refused", request=request)
        for start, status in self.refused.items():
            if path.startswith(start):
                return httpx.Response(status, json={"error": "refused here"})
        if path == "/query/sql":
            reply = self._query(host)
        elif request.method == "GET" and path != "/periodictask/run":
            reply = self._read(host, path, request.url.params)
        else:
            reply = order(self, request, path)
        if any(path.startswith(start) for start in self.lost):
            raise httpx.ReadTimeout("lost", request=request)
        return reply

    def _read(self, host: str, path: str, params: httpx.QueryParams) -> httpx.Response:
        if host.startswith("host"):
            return self._of_server(next(s for s in self.servers.values() if host == f"host{s.number}"), path)
        if host.startswith("broker"):
            return ok({"pinotConfig": self.broker_config})
        raw = TABLE.removesuffix("_REALTIME")
        match path.strip("/").split("/"):
            case ["tables"]:
                return ok({"tables": [raw]})
            case ["tables", name] if name == raw:
                return ok({"REALTIME": self.config})
            case ["tables", name, "instances"] if name == TABLE:
                return ok({"server": [{"tableType": "realtime", "instances": list(self.servers)}]})
            case ["tables", _, "consumingSegmentsInfo"]:
                return ok({"_segmentToConsumingInfoMap": self._consuming_info()})
            case ["tables", "forceCommitStatus", job]:
                done = [
                    n for n in self.jobs[job] if self.nodes[n].fields["segment.realtime.status"] == "DONE"
                ]
                return ok({"segmentsYetToBeCommitted": sorted(set(self.jobs[job]) - set(done))})
            case ["version"]:
                return ok({"pinot-controller": f"{self.version}-abc"})
            case ["appconfigs"]:
                lower = {key.lower(): value for key, value in self.controller_config.items()}
                return ok({"pinotConfig": lower, "jvmConfig": {"environment": {"SECRET": "x"}}})
            case ["cluster", "info"]:
                return ok({"clusterName": CLUSTER})
            case ["cluster", "configs"]:
                return ok(self.cluster_config)
            case ["instances", name] if name in self.servers:
                server = self.servers[name]
                told = {"hostName": f"host{server.number}", "enabled": server.enabled, "adminPort": 8097}
                return ok({"instanceName": name, **told})
            case ["v2", "brokers", "tables", name]:
                return ok([{"host": broker, "port": 8099} for broker in self.brokers])
            case ["zk", verb]:
                return self._zookeeper(verb, params["path"].removeprefix(f"/{CLUSTER}/"))
        return httpx.Response(404, json={"error": f"not here: {path}"})

    def _of_server(self, server: FakeServer, path: str) -> httpx.Response:
        if server.ready is None or not server.alive:
            raise httpx.ConnectError("refused")
        if path == "/health/readiness":
            return httpx.Response(200, text="OK") if server.ready else httpx.Response(503, text="STARTING")
        if path == "/reingestSegment/jobs":
            return ok([{"jobId": "j", "segmentName": name} for name in server.reingested])
        return ok({"pinotConfig": server.config}) if path == "/appconfigs" else httpx.Response(404)

    def _query(self, broker: str) -> httpx.Response:
        rows = self.rows[broker] if broker in self.rows else self.all_rows()
        columns = {"columnNames": ["$segmentName", "count(*)"], "columnDataTypes": ["STRING", "LONG"]}
        table = {"dataSchema": columns, "rows": [[name, count] for name, count in rows.items()]}
        return ok({"resultTable": table, "numServersQueried": 2, "numServersResponded": 2, "exceptions": []})

    def all_rows(self) -> dict[str, int]:
        """What a query finds that leaves out nothing: segment → rows."""
        found: dict[str, int] = {}
        for name, node in self.nodes.items():
            start = int(node.fields["segment.realtime.startOffset"])
            consumed = [offset for _, offset, _ in self.consuming.get(name, {}).values()]
            end = int(node.fields.get("segment.realtime.endOffset", max(consumed, default=start)))
            found[name] = int(node.fields.get("segment.total.docs", end - start))
        return {name: rows for name, rows in found.items() if rows}

    def _consuming_info(self) -> dict[str, Any]:
        return {
            segment: [
                {
                    "serverName": server,
                    "consumerState": state,
                    "lastConsumedTimestamp": self.now_ms - 1000,
                    "partitionToOffsetMap": {"0": str(offset)},
                }
                | ({} if self.version.startswith("0.") else _offset_info(offset, lag))
                for server, (state, offset, lag) in servers.items()
            ]
            for segment, servers in self.consuming.items()
        }

    def _zookeeper(self, verb: str, path: str) -> httpx.Response:
        segments = f"PROPERTYSTORE/SEGMENTS/{TABLE}"
        match verb, path.split("/"):
            case "get", ["IDEALSTATES", _]:
                return ok(record(TABLE, simple=self.ideal_fields, maps=self.ideal))
            case "get", ["EXTERNALVIEW", _]:
                return ok(record(TABLE, maps=self.external))
            case "get", [*_, "PAUSELESS_DEBUG_METADATA", _] if not self.version.startswith("0."):
                return ok(record(TABLE, lists={"committingSegments": self.committing}))
            case "get", ["INSTANCES", name, "HISTORY"]:
                since = self.servers[name].offline_since
                return ok(record(name, simple={"LAST_OFFLINE_TIME": str(-1 if since is None else since)}))
            case "getChildren", ["INSTANCES", name, "MESSAGES"]:
                return ok([_message(segment) for segment in self.servers[name].messages])
            case "lsl", ["LIVEINSTANCES"]:
                alive = {name: s.live_since for name, s in self.servers.items() if s.live_since is not None}
                return ok({name: _stat(since, since, 0) for name, since in alive.items()})
            case "getChildren", _ if path == segments:
                return ok([record(name, simple=node.fields) for name, node in self.nodes.items()])
            case "lsl", _ if path == segments:
                return ok({name: _stat_of(node) for name, node in self.nodes.items()})
            case "get" | "stat", [*_, name] if path.startswith(segments) and name in self.nodes:
                node = self.nodes[name]
                return ok(_stat_of(node) if verb == "stat" else record(name, simple=node.fields))
        return httpx.Response(404, json={"error": f"ZKPath {path} does not exist"})


def table_config(**ingestion: Any) -> dict[str, Any]:
    """A pauseless table with two replicas and a peer scheme."""
    stream = {"streamType": "kafka", "stream.kafka.topic.name": "t", "stream.kafka.broker.list": "k:1"}
    told = {"streamConfigMaps": [stream], "pauselessConsumptionEnabled": True, **ingestion}
    return {
        "tableName": TABLE,
        "tableType": "REALTIME",
        "segmentsConfig": {"replication": "2", "peerSegmentDownloadScheme": "http"},
        "ingestionConfig": {"streamIngestionConfig": told},
        "upsertConfig": {},
    }


def ok(value: Any) -> httpx.Response:
    """An answer with JSON."""
    return httpx.Response(200, text=json.dumps(value))


def record(name: str, **fields: Any) -> dict[str, Any]:
    """A node's content, as Helix writes it."""
    simple, lists, maps = (fields.get(kind, {}) for kind in ("simple", "lists", "maps"))
    return {"id": name, "simpleFields": simple, "listFields": lists, "mapFields": maps}


def _message(segment: str) -> dict[str, Any]:
    told = {"RESOURCE_NAME": TABLE, "PARTITION_NAME": segment, "MSG_TYPE": "STATE_TRANSITION"}
    return record("m", simple=told)


def _offset_info(offset: int, lag_ms: int | None) -> dict[str, Any]:
    lag = "UNKNOWN" if lag_ms is None else str(lag_ms)
    return {
        "partitionOffsetInfo": {"currentOffsetsMap": {"0": str(offset)}, "availabilityLagMsMap": {"0": lag}}
    }


def _stat_of(node: FakeNode) -> dict[str, int]:
    return _stat(node.created_ms, node.modified_ms, node.version)


def _stat(created: int, modified: int, version: int) -> dict[str, int]:
    return {"ctime": created, "mtime": modified, "version": version}
