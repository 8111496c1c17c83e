"""Reads the facts that the rules of the preflight judge. Changes nothing, and reads no rows from the stream.

Each part is read once. A part that does not answer is recorded by name, and the rules that need it answer
"not known". Everything is seen from this machine: whether two servers reach each other, only they know.

The times of commits come from the times at which their nodes were written. A commit writes the segment's own
node (step 1), the next segment's node (step 2) and the ideal state (step 3). On a pauseless table it writes
the segment's own node once more at the end; between the next segment's node and that, it was built and
uploaded. Source: docs/design/realtime.md#s4 and #s5.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar
from urllib.parse import urlsplit

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import PinotAssetsError, PinotError
from pinot_assets.pinot.client.app_config import AppConfig, config_or_why, configs_or_why
from pinot_assets.pinot.http_client import each_server
from pinot_assets.pinot.realtime import RealtimeReads
from pinot_assets.pinot.table_config import is_refresh, setting
from pinot_assets.realtime.model import settings
from pinot_assets.realtime.model.state import LlcSegment, SegmentStatus
from pinot_assets.realtime.preflight.facts import Aim, CommitStart, CommitTimes, Facts, OfflineHalf
from pinot_assets.realtime.read.reading import llc_segments
from pinot_assets.realtime.read.stream import StreamRetention, least, read_retention

T = TypeVar("T")

ReadRetention = Callable[[Mapping[str, str]], StreamRetention]

_ROUND_TRIPS: Final = 5
"""Number of timed reads; the slowest counts, as a commit waits for its slowest read, too."""


def gather(
    pinot: RealtimeReads,
    table: str,
    config: JsonMapping,
    aim: Aim | None = None,
    read_stream: ReadRetention = read_retention,
) -> Facts:
    """Read the facts of a table before its config becomes `config`.

    :param table: with or without `_REALTIME`; it need not exist yet.
    :param config: the table config as it is to be.
    :param aim: what is to be switched on, in addition to what the config has on.
    :param read_stream: returns what a stream keeps, by its config.
    :raises PinotError: the controller does not answer the first call.
    """
    name = f"{table.removesuffix('_REALTIME')}_REALTIME"
    target = settings.table_settings(config)
    if aim is Aim.PAUSELESS:
        target = replace(target, pauseless=True)  # as far as this one setting changes it
    on = {Aim.BYPASS: target.bypasses, Aim.PAUSELESS: target.pauseless}
    aims = frozenset(one for one, is_on in on.items() if is_on or one is aim)
    held = pinot.table_config(name)
    reading = _FactReading(
        pinot, name, target, None if held is None else settings.table_settings(held), config
    )
    return reading.facts(aims, read_stream)


@dataclass(slots=True)
class _FactReading:
    pinot: RealtimeReads
    table: str
    target: settings.RealtimeSettings
    held: settings.RealtimeSettings | None
    config: JsonMapping
    unread: dict[str, str] = field(default_factory=dict)

    def facts(self, aims: frozenset[Aim], read_stream: ReadRetention) -> Facts:
        segments: tuple[LlcSegment, ...] = ()
        if self.held is not None:
            segments = self._try("peers_only", self._segments, segments)
        servers: Mapping[str, JsonMapping] = self._try("admin_ports", self._servers, {})
        pauseless = self.held is not None and self.held.pauseless
        streams = self.target.streams
        return Facts(
            table=self.table,
            aims=aims,
            target=self.target,
            held=self.held,
            cluster=self._cluster(servers),
            offline=self._try("offline", self._offline, None),
            commit_start=self._try("commit_start", lambda: self._commit_start(segments), None),
            commit_times=pauseless_times(segments) if pauseless else blocking_times(segments),
            admin_ports=self._ports(servers),
            committing=sum(segment.status is SegmentStatus.COMMITTING for segment in segments),
            peers_only=sum(segment.past_the_store for segment in segments),
            retention=self._try(
                "retention", lambda: least([read_stream(one) for one in streams]) if streams else None, None
            ),
            unread=self.unread,
        )

    # --- the table -------------------------------------------------------------------------------

    def _segments(self) -> tuple[LlcSegment, ...]:
        ideal = self.pinot.ideal_state(self.table)
        nodes, stats = self.pinot.segment_nodes(self.table), self.pinot.segment_stats(self.table)
        return llc_segments(ideal.maps if ideal is not None else {}, nodes, stats, {}, {})

    def _offline(self) -> OfflineHalf | None:
        if (config := self.pinot.get_table_config(self.table.removesuffix("_REALTIME"))) is None:
            return None
        scheme = setting(config, "segmentsConfig", "peerSegmentDownloadScheme")
        return OfflineHalf(str(scheme) if scheme else None, is_refresh(config))

    def _commit_start(self, segments: Collection[LlcSegment]) -> CommitStart:
        """Estimate commitStart from timed reads through the controller, which also does the real ones."""
        trips = [_timed(self.pinot.live_since) for _ in range(_ROUND_TRIPS)]
        return commit_start_s(segments, max(trips), _timed(lambda: self.pinot.ideal_state(self.table)))

    # --- the cluster -------------------------------------------------------------------------------

    def _servers(self) -> Mapping[str, JsonMapping]:
        """Return the live servers that the table uses, or would use, by name."""
        live = self.pinot.live_since()
        if self.held is not None:
            used = self.pinot.servers_of(self.table, self.config)
            return {name: self.pinot.instance(name) for name in used if name in live}
        named = [name for name in self.pinot.instances() if name.startswith("Server_") and name in live]
        instances = {name: self.pinot.instance(name) for name in named}
        tag = f"{setting(self.config, 'tenants', 'server') or 'DefaultTenant'}_REALTIME"
        return {name: instance for name, instance in instances.items() if tag in (instance.get("tags") or ())}

    def _ports(self, servers: Mapping[str, JsonMapping]) -> dict[str, str | None]:
        def ask(name: str) -> None:
            self.pinot.ask_if_ready(_peer_url(servers[name], self.target.peer_scheme or "http"))

        answers = each_server(tuple(servers), ask)
        return {name: one.reason if isinstance(one, PinotError) else None for name, one in answers.items()}

    def _cluster(self, servers: Mapping[str, JsonMapping]) -> settings.ClusterSettings:
        def server_config(name: str) -> AppConfig:
            if (url := self.pinot.admin_url(servers[name])) is None:
                raise PinotError(f"{name} names no admin port")
            return self.pinot.config_at(url)

        brokers: Collection[str] = self._try("new_segment_expiration_s", self._brokers, ())
        return settings.cluster_settings(
            version=self._try("version", self.pinot.version, ""),
            controller=config_or_why(self.pinot.controller_config),
            cluster=config_or_why(self.pinot.cluster_config),
            servers=configs_or_why(each_server(tuple(servers), server_config)),
            brokers=configs_or_why(each_server(brokers, self.pinot.config_at)),
        )

    def _brokers(self) -> Collection[str]:
        """Return the addresses of the table's brokers; for a table not created yet, of all live brokers."""
        if self.held is not None:
            return self.pinot.brokers_of(self.table)
        if self.pinot.connection.broker_urls:
            return self.pinot.connection.broker_urls
        live = self.pinot.live_since()
        names = [name for name in self.pinot.instances() if name.startswith("Broker_") and name in live]
        scheme = urlsplit(self.pinot.connection.controller_url).scheme
        return tuple(f"{scheme}://{_host(one)}:{one['port']}" for one in map(self.pinot.instance, names))

    # --- what does not answer ------------------------------------------------------------------------

    def _try(self, part: str, ask: Callable[[], T], absent: T) -> T:
        try:
            return ask()
        except PinotAssetsError as error:
            self.unread[part] = error.reason
            return absent


def _peer_url(instance: JsonMapping, scheme: str) -> str:
    """Return where a peer would ask this server for a segment (`PeerServerSegmentFinder`).

    :raises PinotError: the instance config has no such port.
    """
    key = "adminHttpsPort" if scheme == "https" else "adminPort"
    port = int(instance.get(key) or -1)
    if port <= 0:
        raise PinotError(f"its instance config names no {key}")
    return f"{scheme}://{_host(instance)}:{port}"


def _host(instance: JsonMapping) -> str:
    return str(instance["hostName"]).removeprefix("Server_").removeprefix("Broker_")


def _timed(ask: Callable[[], object]) -> float:
    started = time.perf_counter()
    ask()
    return time.perf_counter() - started


_SAME_COMMIT_MS: Final = 60_000
"""Longest time between two nodes of one commit; a longer gap was a pause or a repair."""
NEWEST: Final = 20
"""Segments of each partition that are judged: older ones may have had other settings."""


def pauseless_times(segments: Collection[LlcSegment]) -> CommitTimes | None:
    """Return how long build and upload take on a pauseless table; None before the first commit."""
    finished = _newest(segments)
    gaps = [-gap for gap in _gaps_ms(finished, segments) if gap <= 0]
    within = [gap for gap in gaps if gap <= settings.COMPLETION_WINDOW_MS]
    return (
        CommitTimes(
            seconds=max(within) / 1000 if within else None,
            late=len(gaps) - len(within),
            largest_bytes=_largest(finished),
        )
        if finished
        else None
    )


def blocking_times(segments: Iterable[LlcSegment]) -> CommitTimes | None:
    """Return the sizes alone, for a table whose commits do not show times; None before the first commit."""
    finished = _newest(segments)
    return CommitTimes(None, 0, _largest(finished)) if finished else None


def commit_start_s(segments: Collection[LlcSegment], round_trip_s: float, ideal_s: float) -> CommitStart:
    """Return how long the controller takes to answer commitStart. It adds the segment to a list, writes two
    segment nodes, asks the stream between the two, then reads and writes the ideal state.

    :param round_trip_s: seconds of one small read of ZooKeeper through the controller.
    :param ideal_s: seconds of reading the ideal state through the controller.
    """
    gaps = [gap / 1000 for gap in _gaps_ms(_newest(segments), segments) if 0 < gap <= _SAME_COMMIT_MS]
    slowest = max(gaps, default=0.0)
    how = f"{1000 * round_trip_s:.0f} ms a round trip, {1000 * ideal_s:.0f} ms for the ideal state"
    if slowest:
        how += f", {slowest:.2f} s between the segments' nodes of an earlier commit"
    return CommitStart(2 * round_trip_s + max(slowest, 2 * round_trip_s) + 2 * ideal_s, how)


def _gaps_ms(of: Iterable[LlcSegment], among: Iterable[LlcSegment]) -> Iterator[int]:
    """Yield the time from a segment's last write to its successor's creation; below 0 if written later."""
    made = {(segment.partition, segment.sequence): segment.made_ms for segment in among}
    for segment in of:
        following = made.get((segment.partition, segment.sequence + 1))
        if following is not None and segment.modified_ms is not None:
            yield following - segment.modified_ms


def _newest(segments: Iterable[LlcSegment]) -> list[LlcSegment]:
    """Return the newest finished segments of each partition, `NEWEST` at most."""
    by_partition: defaultdict[int, list[LlcSegment]] = defaultdict(list)
    for segment in sorted(segments, key=lambda one: one.sequence, reverse=True):
        of_it = by_partition[segment.partition]
        if segment.status is SegmentStatus.DONE and len(of_it) < NEWEST:
            of_it.append(segment)
    return [segment for newest in by_partition.values() for segment in newest]


def _largest(segments: Iterable[LlcSegment]) -> int:
    return max((segment.size_bytes or 0 for segment in segments), default=0)
