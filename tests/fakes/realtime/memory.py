"""A Pinot with one REALTIME table in memory, spoken to over HTTP: controller, servers, brokers.

It answers as 1.5.1 does, or as 0.11.0 where `version` says so, and keeps what a real one keeps in ZooKeeper.
Time stands still unless a test moves it. What it answers is in `fakes.realtime.answers`, what the writing
calls do in `fakes.realtime.orders`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

import httpx
from fakes.realtime.operator_client import OperatorClient

from pinot_assets.core.connections import PinotConnection
from pinot_assets.core.json_object import JsonObject
from pinot_assets.realtime.model.state import RealtimeState, StreamPartition
from pinot_assets.realtime.read.reading import read_state
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
    :ivar ports: of its admin endpoint, as its instance config names them.
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
    ports: dict[str, int] = field(default_factory=lambda: {"adminPort": 8097})

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
    :ivar store_up: whether the deep store takes uploads.
    """

    def __init__(self, version: str = "1.5.1") -> None:
        self.version = version
        self.now_ms = NOW_MS
        self.config: JsonObject = table_config()
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
        self.store_up = True
        self.jobs: dict[str, list[str]] = {}
        self._numbers = itertools.count(1)

    # --- making it -----------------------------------------------------------------------------------

    def pinot(self) -> OperatorClient:
        """A client of it. Close it."""
        return OperatorClient(PinotConnection(CONTROLLER), httpx.MockTransport(self.handle))

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
        target = ideal or ("CONSUMING" if consuming else "ONLINE")
        written = self.now_ms - age_ms
        fields = {
            "segment.realtime.status": status,
            "segment.realtime.startOffset": str(start),
            "segment.creation.time": str(written),
        }
        if not consuming:
            fields["segment.realtime.endOffset"] = str(end)
        if status == "DONE":
            fields |= {"segment.crc": "77"}
            fields |= {} if self.older(1, 3) else {"segment.size.in.bytes": "1000"}
            fields["segment.total.docs"] = str(end - start if docs is None else docs)
            fields |= {} if url is None else {"segment.download.url": url}
        self.nodes[name] = FakeNode(fields, written, written)
        self.ideal[name] = dict.fromkeys(self.servers, target)
        self.external[name] = dict(states if states is not None else self.ideal[name])
        if consuming:
            self.consuming[name] = dict.fromkeys(self.external[name], ("CONSUMING", end, 10))
        return name

    def older(self, major: int, minor: int) -> bool:
        """Whether its release came before that one."""
        return tuple(map(int, self.version.split(".")[:2])) < (major, minor)

    def kill(self, server: str, ago_ms: int = MINUTE_MS) -> None:
        """It dies, and the external view has lost it."""
        self.servers[server].live_since = None
        self.servers[server].offline_since = self.now_ms - ago_ms
        for states in self.external.values():
            states.pop(server, None)
        for consumers in self.consuming.values():
            consumers.pop(server, None)

    # --- answering -----------------------------------------------------------------------------------

    def handle(self, request: httpx.Request) -> httpx.Response:
        """One call."""
        from fakes.realtime.answers import query
        from fakes.realtime.orders import order

        path = unquote(request.url.path)
        host = request.url.host
        self.asked.append(f"{request.method} {host}{path}")
        if any(path.startswith(start) or f"{host}{path}".startswith(start) for start in self.away):
            raise httpx.ConnectError("refused", request=request)
        for start, status in self.refused.items():
            if path.startswith(start):
                return httpx.Response(status, json={"error": "refused here"})
        if path == "/query/sql":
            reply = query(self, host)
        elif request.method == "GET" and path != "/periodictask/run":
            reply = self._read(host, path, request.url.params)
        else:
            reply = order(self, request, path)
        if any(path.startswith(start) for start in self.lost):
            raise httpx.ReadTimeout("lost", request=request)
        return reply

    def _read(self, host: str, path: str, params: httpx.QueryParams) -> httpx.Response:
        from fakes.realtime.answers import answer

        return answer(self, host, path, params)

    def all_rows(self) -> dict[str, int]:
        """What a query finds that leaves out nothing: segment → rows."""
        counts: dict[str, int] = {}
        for name, node in self.nodes.items():
            start = int(node.fields["segment.realtime.startOffset"])
            consumed = [offset for _, offset, _ in self.consuming.get(name, {}).values()]
            end = int(node.fields.get("segment.realtime.endOffset", max(consumed, default=start)))
            counts[name] = int(node.fields.get("segment.total.docs", end - start))
        return {name: rows for name, rows in counts.items() if rows}


def table_config(**ingestion: object) -> JsonObject:
    """A pauseless table with two replicas and a peer scheme."""
    stream = {
        "streamType": "kafka",
        "stream.kafka.topic.name": "t",
        "stream.kafka.broker.list": "127.0.0.1:1",
    }
    stream_ingestion = {"streamConfigMaps": [stream], "pauselessConsumptionEnabled": True, **ingestion}
    return {
        "tableName": TABLE,
        "tableType": "REALTIME",
        "segmentsConfig": {"replication": "2", "peerSegmentDownloadScheme": "http"},
        "ingestionConfig": {"streamIngestionConfig": stream_ingestion},
        "upsertConfig": {},
    }
