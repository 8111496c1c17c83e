"""Reads a `RealtimeState` from Pinot: every part once; a part that does not answer spoils no other.

The order matters, as Pinot works on meanwhile. Ideal state before nodes: a segment that the ideal state names
has its node by then. Messages before the external view: a change under way shows in one of them. Consumed
offsets before the rows that brokers find and before the stream's end: both can only be further.
Pure functions make the parts from Pinot's answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.untrusted import fields_of_json
from pinot_assets.errors import PinotAssetsError, PinotError, PinotNotFound
from pinot_assets.pinot.client.app_config import AppConfig, config_or_why, configs_or_why
from pinot_assets.pinot.client.helix_nodes import Node, Stat
from pinot_assets.pinot.http_client import each_server
from pinot_assets.pinot.realtime import RealtimeReads
from pinot_assets.pinot.table_config import UNIT_MS
from pinot_assets.realtime.model.settings import ClusterSettings, cluster_settings, table_settings
from pinot_assets.realtime.model.state import (
    NOT_PAUSED,
    Consumption,
    LlcSegment,
    Pause,
    PauseReason,
    RealtimeState,
    Replica,
    SegmentStatus,
    Server,
    StreamPartition,
    TmpUpload,
    parse_name,
    upload_of,
)
from pinot_assets.realtime.read.stream import read_partitions
from pinot_assets.source import ObjectStore, open_store

T = TypeVar("T")

ReadStream = Callable[[Sequence[Mapping[str, str]]], Mapping[int, StreamPartition]]

Reader = Callable[[], RealtimeState]
"""Reads the table again and returns its state.

:raises PinotError: a part without which nothing can be decided did not answer.
"""

DeleteUpload = Callable[[str], None]
"""Deletes a left-over upload (`<segment>.tmp.<uuid>`) from the table's folder in the deep store."""

Tell = Callable[[str], None]
"""Receives a line about each thing that is done."""

_NO_STORE = "no address of the deep store was given"
_NO_ADMIN = "it names no admin port"


def read_state(
    pinot: RealtimeReads,
    table: str,
    *,
    deep_store: ObjectStore | None = None,
    read_stream: ReadStream = read_partitions,
    clock: Callable[[], float] = time.time,
) -> RealtimeState:
    """Read a REALTIME table as it is now.

    :param table: with or without `_REALTIME`.
    :param deep_store: the controllers' data directory, to find uploads that were never moved into place.
    :param read_stream: returns the earliest and latest offsets of the table's streams.
    :param clock: returns seconds since the epoch, as close to ZooKeeper's clock as possible.
    :raises PinotNotFound: there is no such table.
    :raises PinotError: the controller does not answer the first call.
    """
    reading = _StateReading(pinot, f"{table.removesuffix('_REALTIME')}_REALTIME")
    return reading.state(deep_store, read_stream, clock)


@dataclass(slots=True)
class _StateReading:
    pinot: RealtimeReads
    table: str
    unread: dict[str, str] = field(default_factory=dict)

    def state(
        self, deep_store: ObjectStore | None, read_stream: ReadStream, clock: Callable[[], float]
    ) -> RealtimeState:
        if (config := self.pinot.table_config(self.table)) is None:
            raise PinotNotFound(
                f"there is no table {self.table}", hint="GET /tables lists the tables of this Pinot"
            )
        settings = table_settings(config)
        read_ms = int(clock() * 1000)
        ideal = self._try("segments", self._ideal_state)
        nodes = self._try("segments", lambda: self.pinot.segment_nodes(self.table)) or {}
        stats = self._try("modified_ms", lambda: self.pinot.segment_stats(self.table)) or {}
        servers = self._servers(ideal, config)
        pending = self._each("pending", servers, lambda name: self.pinot.pending_messages(self.table, name))
        external = self._try("external", lambda: self.pinot.external_view(self.table)) or {}
        listed = self._try("committing_listed", lambda: self.pinot.committing_listed(self.table))
        consumption = (
            self._try("consumption", lambda: tuple(consumption_of(self.pinot.consuming_segments(self.table))))
            or ()
        )
        stream = self._try("stream", lambda: read_stream(settings.streams)) or {}
        brokers = self._try("answered", lambda: self.pinot.brokers_of(self.table)) or ()
        answered = self._each("answered", brokers, lambda url: self.pinot.answered_rows(url, self.table))
        if ideal is None:
            self.unread["pause"] = self.unread["segments"]
        return RealtimeState(
            table=self.table,
            read_ms=read_ms,
            settings=settings,
            cluster=self._cluster(servers, brokers),
            segments=llc_segments(ideal.maps if ideal else {}, nodes, stats, external, pending),
            servers=servers,
            pause=pause_of(ideal) if ideal else NOT_PAUSED,
            committing_listed=listed or frozenset(),
            stream=stream,
            consumption=consumption,
            tmp_uploads=self._tmp_uploads(deep_store),
            answered=answered,
            unread=self.unread,
        )

    def _ideal_state(self) -> Node:
        if (node := self.pinot.ideal_state(self.table)) is None:
            raise PinotNotFound(f"the table {self.table} has no ideal state")
        return node

    # --- servers ---------------------------------------------------------------------------------------

    def _servers(self, ideal: Node | None, config: JsonMapping) -> Mapping[str, Server]:
        named = {server for states in (ideal.maps if ideal else {}).values() for server in states}
        tenant = self._try("servers", lambda: self.pinot.servers_of(self.table, config)) or ()
        if (live := self._try("servers", self.pinot.live_since)) is None:
            return {}
        return self._each("servers", {*named, *tenant}, lambda server: self._server(server, live))

    def _server(self, name: str, live: Mapping[str, int]) -> Server:
        try:
            instance = self.pinot.instance(name)
        except PinotNotFound:
            return Server(name, alive=False, enabled=False)  # dropped from the cluster
        url = self.pinot.admin_url(instance)
        alive = name in live
        return Server(
            name=name,
            alive=alive,
            enabled=bool(instance.get("enabled", True)),
            ready=self._ready(name, url) if alive else None,
            since_ms=live[name] if alive else self.pinot.offline_since(name),
            admin_url=url,
        )

    def _ready(self, name: str, url: str | None) -> bool | None:
        try:
            if url is None:
                raise PinotError(name, why=_NO_ADMIN)
            return self.pinot.ask_if_ready(url)
        except PinotError as error:
            self._tell("ready", f"{name}: {_reason(error)}")
            return None

    # --- settings --------------------------------------------------------------------------------------

    def _cluster(self, servers: Mapping[str, Server], brokers: Iterable[str]) -> ClusterSettings:
        def server_config(name: str) -> AppConfig:
            server = servers[name]
            if not server.alive or server.admin_url is None:
                raise PinotError(name, why="it is not alive" if not server.alive else _NO_ADMIN)
            return self.pinot.config_at(server.admin_url)

        return cluster_settings(
            version=self._try("version", self.pinot.version) or "",
            controller=config_or_why(self.pinot.controller_config),
            cluster=config_or_why(self.pinot.cluster_config),
            servers=configs_or_why(each_server(tuple(servers), server_config)),
            brokers=configs_or_why(each_server(tuple(brokers), self.pinot.config_at)),
        )

    # --- the deep store --------------------------------------------------------------------------------

    def _tmp_uploads(self, deep_store: ObjectStore | None) -> tuple[TmpUpload, ...]:
        if deep_store is None:
            self._tell("tmp_uploads", _NO_STORE)
            return ()
        listed = self._try("tmp_uploads", lambda: list(deep_store.list(self.table.removesuffix("_REALTIME"))))
        return tuple(
            TmpUpload(name, file.fingerprint.size, file.fingerprint.mtime_us // 1000)
            for file in listed or ()
            if upload_of(name := file.key.rpartition("/")[2]) is not None
        )

    # --- what does not answer --------------------------------------------------------------------------

    def _try(self, part: str, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except PinotAssetsError as error:
            self._tell(part, _reason(error))
            return None

    def _each(self, part: str, names: Iterable[str], ask: Callable[[str], T]) -> dict[str, T]:
        """Ask several of them at a time; return their answers, and record the others as unread."""
        answers: dict[str, T] = {}
        for name, answer in sorted(each_server(sorted(names), ask).items()):
            if isinstance(answer, PinotError):
                self._tell(part, f"{name}: {_reason(answer)}")
            else:
                answers[name] = answer
        return answers

    def _tell(self, part: str, reason: str) -> None:
        before = self.unread.get(part)
        self.unread[part] = f"{before}; {reason}" if before else reason


def _reason(error: PinotAssetsError) -> str:
    return error.why or error.what


States = Mapping[str, Mapping[str, str]]
"""Segment → server → state."""

_FINE_UNIT_MS: Final[Mapping[str, float]] = {**UNIT_MS, "MICROSECONDS": 1e-3, "NANOSECONDS": 1e-6}


def llc_segments(
    ideal: States,
    nodes: Mapping[str, Mapping[str, str]],
    stats: Mapping[str, Stat],
    external: States,
    pending: Mapping[str, frozenset[str]],
) -> tuple[LlcSegment, ...]:
    """Return the segments that any of these knows, by partition and sequence; only those of the stream.

    :param nodes: segment → fields of its node.
    :param pending: server → segments about which a message waits for it.
    """
    segments = [
        segment
        for name in {*ideal, *nodes, *external}
        if (
            segment := _segment(
                name, nodes.get(name), stats.get(name), _replicas(name, ideal, external, pending)
            )
        )
    ]
    return tuple(sorted(segments, key=lambda segment: (segment.partition, segment.sequence, segment.name)))


def _replicas(
    name: str, ideal: States, external: States, pending: Mapping[str, frozenset[str]]
) -> tuple[Replica, ...]:
    assigned, shown = ideal.get(name, {}), external.get(name, {})
    return tuple(
        Replica(server, assigned.get(server), shown.get(server), name in pending.get(server, ()))
        for server in sorted({*assigned, *shown})
    )


def _segment(
    name: str, node: Mapping[str, str] | None, stat: Stat | None, replicas: tuple[Replica, ...]
) -> LlcSegment | None:
    if (parsed := parse_name(name)) is None:
        return None
    fields = node or {}
    text = fields.get("segment.realtime.status")
    status = SegmentStatus(text) if text in set(SegmentStatus) else None
    # The second spelling is that of releases before 0.8.
    url = fields.get("segment.download.url", fields.get("segment.realtime.download.url"))
    consuming = status is SegmentStatus.IN_PROGRESS
    return LlcSegment(
        name=name,
        partition=parsed.partition,
        sequence=parsed.sequence,
        created_ms=_count(fields.get("segment.creation.time")) or parsed.created_ms,
        status=status,
        start_offset=fields.get("segment.realtime.startOffset"),
        end_offset=None if consuming else fields.get("segment.realtime.endOffset"),
        url=url,
        crc=None if (crc := fields.get("segment.crc")) == "-1" else crc,
        size_bytes=_count(fields.get("segment.size.in.bytes")),
        total_docs=None if consuming else _count(fields.get("segment.total.docs")),
        modified_ms=stat.modified_ms if stat is not None else None,
        made_ms=stat.created_ms if stat is not None else None,
        end_time_ms=_time_ms(fields.get("segment.end.time"), fields.get("segment.time.unit")),
        replicas=replicas,
        stored=node is not None,
    )


def pause_of(ideal: Node) -> Pause:
    """Return why consumption is paused, from the ideal state: with a reason from 1.3 on, before by a flag."""
    if (text := ideal.simple.get("pauseState")) is None:
        paused = ideal.simple.get("isTablePaused", "").lower() == "true"
        return Pause(PauseReason.ADMINISTRATIVE) if paused else NOT_PAUSED
    try:
        value = fields_of_json(text)
    except ValueError:
        return Pause(PauseReason.OTHER, comment="its reason cannot be read")
    code = value.get("reasonCode")
    reason = PauseReason(str(code)) if code in set(PauseReason) else PauseReason.OTHER
    return Pause(
        reason=reason if value.get("paused") else None,
        comment=str(value.get("comment") or ""),
        since_ms=_count(value.get("timeInMillis")),
        topics=frozenset(int(index) for index in value.get("indexOfInactiveTopics") or ()),
    )


def consumption_of(consuming: Mapping[str, list[JsonObject]]) -> Iterator[Consumption]:
    """Yield how far each server has consumed each consuming segment.

    :param consuming: as `RealtimeReads.consuming_segments` returns it.
    """
    for segment, servers in sorted(consuming.items()):
        for one in servers:
            info = one.get("partitionOffsetInfo") or {}
            yield Consumption(
                segment=segment,
                server=str(one["serverName"]),
                state=str(one.get("consumerState")),
                offset=_first(info.get("currentOffsetsMap") or one.get("partitionToOffsetMap")),
                lag_ms=_first(info.get("availabilityLagMsMap")),
                # -1 says *never* (0.11.0 says 0 itself).
                consumed_ms=0
                if str(consumed := one.get("lastConsumedTimestamp")) == "-1"
                else _count(consumed),
            )


def _first(values: JsonMapping | None) -> int | None:
    """Return the only value of a map by partition; None where a server says UNKNOWN instead of a number."""
    return _count(next(iter((values or {}).values()), None))


def _count(value: object) -> int | None:
    """Return the number; None when it is missing, negative or not a number."""
    try:
        number = int(str(value))
    except ValueError:
        return None
    return number if number >= 0 else None


def _time_ms(value: str | None, unit: str | None) -> int | None:
    number, factor = _count(value), _FINE_UNIT_MS.get((unit or "MILLISECONDS").upper())
    return None if number is None or factor is None else int(number * factor)


def open_deep_store(pinot: RealtimeReads, given: str | None = None) -> ObjectStore | None:
    """Open the deep store, as given or as the controller names it; None where the latter cannot be opened.

    :raises SourceError: the given one cannot be opened.
    """
    try:
        address = given or pinot.controller_config().text("controller.data.dir")
        return open_store(address, {}, UNLIMITED) if address else None
    except PinotAssetsError:
        if given is not None:
            raise
        return None


def upload_deleter(store: ObjectStore | None, table: str) -> DeleteUpload | None:
    """Return a function that deletes left-over uploads of that table; None without a store.

    :param table: with or without `_REALTIME`.
    """
    if store is None:
        return None
    folder = table.removesuffix("_REALTIME")
    return lambda name: store.delete(f"{folder}/{name}")
