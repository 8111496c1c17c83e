"""The state of a REALTIME table at one moment, as values; and the parts of a segment's name:
`<table>__<partition>__<sequence>__<yyyymmddThhmmZ>`.

`reading` reads a state from Pinot, and the simulation makes one up. Health, repair planner, preflight, drain
and rebalance guard decide from states alone. Times are epoch milliseconds. Offsets are the texts that Pinot
stores (Kafka: a number). Source: docs/design/realtime.md#s4 to #s9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Final
from urllib.parse import unquote

from pinot_assets.realtime.model.settings import ClusterSettings, RealtimeSettings

PARTITIONS_A_STREAM: Final = 10_000
"""`PARTITION_PADDING_OFFSET`: in a table with several streams, the partitions of the second one are numbered
from here on, those of the third one from twice this, and so on."""

SETTLED_MS: Final = 60_000
"""Milliseconds after the last write of a segment's node by which Helix has sent its messages, if at all, and
the external view has followed. Before that, a running commit looks like trouble."""

ROUTED_MS: Final = 10_000
"""Milliseconds by which brokers have followed the external view."""

_NAME: Final = re.compile(r"(.+?)__(\d+)__(\d+)__(\d{8}T\d{4}Z)")
# The first form is that of releases up to 1.2, the second that of 1.3 and newer.
_UPLOAD: Final = re.compile(r"(.+__\d{8}T\d{4}Z)(?:[0-9a-f]{8}-[0-9a-f-]{27}|\.tmp\..+)")


@dataclass(frozen=True, slots=True)
class SegmentName:
    """The parts of a segment's name.

    :ivar created_ms: exact to the minute.
    """

    table: str
    partition: int
    sequence: int
    created_ms: int


def parse_name(name: str) -> SegmentName | None:
    """Return the parts of a segment's name; None for a segment not from a stream (`LLCSegmentName`)."""
    if (match := _NAME.fullmatch(name)) is None:
        return None
    try:
        created = datetime.strptime(match[4], "%Y%m%dT%H%MZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    return SegmentName(match[1], int(match[2]), int(match[3]), int(created.timestamp() * 1000))


def files_named(urls: Iterable[str | None]) -> frozenset[str]:
    """Return the files that these download URLs name: unescaped, as a store lists them, and also as the URLs
    write them, for a store that does not know escapes.
    """
    written = {url.rpartition("/")[2] for url in urls if url}
    return frozenset(written | {unquote(name) for name in written})


def upload_of(file: str) -> str | None:
    """Return the segment of which a file in the deep store is an upload that was not (yet) moved into place:
    `<segment>.tmp.<uuid>`, before 1.3 `<segment><uuid>`. None for every other file.
    """
    match = _UPLOAD.fullmatch(file)
    return match[1] if match is not None else None


class SegmentStatus(StrEnum):
    """`segment.realtime.status` of a segment's node."""

    IN_PROGRESS = "IN_PROGRESS"
    COMMITTING = "COMMITTING"
    """Pauseless only: the end offset is fixed, the segment is not yet finished."""
    DONE = "DONE"
    UPLOADED = "UPLOADED"

    @property
    def completed(self) -> bool:
        """Whether the segment no longer changes."""
        return self in (SegmentStatus.DONE, SegmentStatus.UPLOADED)


class Copy(StrEnum):
    """Where the tar is, by `segment.download.url` (docs/design/realtime.md#s6-url)."""

    NEVER_SET = "never set"
    """No URL: the segment is being consumed, or being committed."""
    PEERS_ONLY = "peers only"
    """The empty string: the commit went past the deep store."""
    DEEP_STORE = "deep store"
    """A URL of the deep store or the controller."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One server's copy of one segment.

    :ivar server: instance name.
    :ivar ideal: state in the ideal state, None where it is only in the external view.
    :ivar external: state in the external view, None where the server reports none.
    :ivar pending: whether a Helix message about it waits for that server.
    """

    server: str
    ideal: str | None
    external: str | None
    pending: bool = False


@dataclass(frozen=True, slots=True)
class LlcSegment:
    """One LLC segment: its node in the property store and its replicas.

    :ivar partition: partition group of the stream.
    :ivar sequence: number within the partition.
    :ivar status: None where the node has none, or is missing while the ideal state has the segment.
    :ivar end_offset: exclusive; None while IN_PROGRESS.
    :ivar url: None if never set, empty for peers only, else where the tar is.
    :ivar created_ms: by the clock of the controller that created it.
    :ivar modified_ms: the node's mtime, the clock of Pinot's 300 s rule; None where it cannot be read.
    :ivar made_ms: the node's ctime, for comparison with mtimes of others: all are of one clock.
    :ivar end_time_ms: newest value of the time column, from which retention counts.
    :ivar stored: whether the property store has the node.
    """

    name: str
    partition: int
    sequence: int
    created_ms: int
    status: SegmentStatus | None
    start_offset: str | None = None
    end_offset: str | None = None
    url: str | None = None
    crc: str | None = None
    size_bytes: int | None = None
    total_docs: int | None = None
    modified_ms: int | None = None
    made_ms: int | None = None
    end_time_ms: int | None = None
    replicas: tuple[Replica, ...] = ()
    stored: bool = True

    @property
    def completed(self) -> bool:
        """Whether the segment no longer changes."""
        return self.status is not None and self.status.completed

    @property
    def past_the_store(self) -> bool:
        """Whether the segment is completed and the deep store has no copy of it."""
        return self.completed and self.copy is not Copy.DEEP_STORE

    @property
    def copy(self) -> Copy:
        """Where the segment's tar is."""
        if self.url is None:
            return Copy.NEVER_SET
        return Copy.DEEP_STORE if self.url else Copy.PEERS_ONLY

    def in_state(self, state: str) -> tuple[Replica, ...]:
        """Return the replicas that the external view has in that state."""
        return tuple(replica for replica in self.replicas if replica.external == state)

    @property
    def in_ideal_state(self) -> bool:
        """Whether the ideal state has the segment."""
        return any(replica.ideal is not None for replica in self.replicas)


@dataclass(frozen=True, slots=True)
class Server:
    """One server of the table's tenants, or one that the ideal state names.

    :ivar alive: whether it has a live instance.
    :ivar enabled: Helix's switch.
    :ivar ready: its health endpoint's answer; None where it could not be asked. A live server that is not
        ready is STARTING and serves no table.
    :ivar since_ms: since when it is alive, or dead; None where not known.
    :ivar admin_url: `http://host:port` of its admin endpoint.
    """

    name: str
    alive: bool
    enabled: bool = True
    ready: bool | None = None
    since_ms: int | None = None
    admin_url: str | None = None

    @property
    def serves(self) -> bool:
        """Whether it answers queries and gives segments to peers, as far as is known."""
        return self.alive and self.enabled and self.ready is not False


class PauseReason(StrEnum):
    """`reasonCode` of the ideal state's pause state; docs/design/realtime.md#v1."""

    ADMINISTRATIVE = "ADMINISTRATIVE"
    RESOURCE = "RESOURCE_UTILIZATION_LIMIT_EXCEEDED"
    QUOTA = "STORAGE_QUOTA_EXCEEDED"
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True)
class Pause:
    """Whether and why consumption is paused.

    :ivar reason: None when the whole table is not paused.
    :ivar since_ms: None where Pinot gives it in local time, as 1.3 to 1.5.1 do.
    :ivar topics: indices of streams that are paused separately.
    """

    reason: PauseReason | None = None
    comment: str = ""
    since_ms: int | None = None
    topics: frozenset[int] = frozenset()

    @property
    def whole(self) -> bool:
        """Whether the whole table is paused."""
        return self.reason is not None

    def has_stream_of(self, partition: int) -> bool:
        """Return whether the stream of that partition group is paused separately."""
        return partition // PARTITIONS_A_STREAM in self.topics

    def holds(self, partition: int) -> bool:
        """Return whether this partition is paused."""
        return self.whole or self.has_stream_of(partition)


NOT_PAUSED = Pause()


@dataclass(frozen=True, slots=True)
class StreamPartition:
    """What the stream holds of one partition, as read from the stream itself.

    :ivar earliest: the first offset that can still be read.
    :ivar latest: the offset that the next message gets.
    """

    partition: int
    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class Consumption:
    """How far one server has consumed one segment (`consumingSegmentsInfo`).

    :ivar state: the consumer's state as the server reports it: CONSUMING or NOT_CONSUMING.
    :ivar offset: the next offset to read; None where the server does not report it.
    :ivar lag_ms: age of its newest row when it got it (the availability lag, which does not grow until the
        next row comes); None where the server does not measure it.
    :ivar consumed_ms: when it last got a row, 0 for never; None where the server does not report it.
    """

    segment: str
    server: str
    state: str
    offset: int | None
    lag_ms: int | None = None
    consumed_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TmpUpload:
    """A `<segment>.tmp.<uuid>` (before 1.3 `<segment><uuid>`) in the deep store: an upload that was not moved
    into place. Yet a segment's URL may name it, if a server uploaded it on request."""

    name: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True)
class RealtimeState:
    """A REALTIME table at one moment.

    What could not be read is absent, and `unread` gives the reason, by the name of the part: a check that
    needs it answers "not known", never "all well". Names of parts: `segments` (ideal state or nodes),
    `external` (the replicas' states in the external view), `modified_ms`, `pending`, `servers`, `ready`,
    `pause`, `committing_listed`, `stream`, `consumption`, `tmp_uploads`, `answered`.

    :ivar table: with `_REALTIME`.
    :ivar read_ms: when it was read.
    :ivar committing_listed: names in `/PAUSELESS_DEBUG_METADATA/<table>`.
    :ivar stream: by partition; empty where the stream was not read.
    :ivar answered: rows that a query finds by segment: broker → segment → rows.
    """

    table: str
    read_ms: int
    settings: RealtimeSettings
    cluster: ClusterSettings
    segments: tuple[LlcSegment, ...] = ()
    servers: Mapping[str, Server] = field(default_factory=dict)
    pause: Pause = NOT_PAUSED
    committing_listed: frozenset[str] = frozenset()
    stream: Mapping[int, StreamPartition] = field(default_factory=dict)
    consumption: tuple[Consumption, ...] = ()
    tmp_uploads: tuple[TmpUpload, ...] = ()
    answered: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def queryable(self) -> Mapping[str, int]:
        """Rows that each broker's `COUNT(*)` finds: broker → rows."""
        return {broker: sum(rows.values()) for broker, rows in self.answered.items()}

    @cached_property
    def by_name(self) -> Mapping[str, LlcSegment]:
        """Name → segment."""
        return {segment.name: segment for segment in self.segments}

    @cached_property
    def largest_bytes(self) -> int:
        """Size of the largest segment whose size is known; 0 without one."""
        return max((segment.size_bytes or 0 for segment in self.segments), default=0)

    def age_ms(self, segment: LlcSegment) -> int | None:
        """Return how long ago the segment's node was last written; None where that is not known."""
        return None if segment.modified_ms is None else self.read_ms - segment.modified_ms

    def why_unread(self, *parts: str) -> str:
        """Return why these parts could not be read; empty when all were."""
        return "; ".join(f"{part}: {self.unread[part]}" for part in parts if part in self.unread)

    def is_older(self, segment: LlcSegment, ms: int) -> bool:
        """Return whether the segment's node was written longer ago than that, or at an unknown time."""
        age = self.age_ms(segment)
        return age is None or age > ms

    def live_copies(self, segment: LlcSegment) -> tuple[str, ...]:
        """Return the live servers that have loaded the segment: ONLINE in the external view."""
        return tuple(
            replica.server
            for replica in segment.in_state("ONLINE")
            if (server := self.servers.get(replica.server)) is not None and server.alive
        )

    def latest(self) -> Mapping[int, LlcSegment]:
        """Return the newest segment of every partition."""
        descending = sorted(self.segments, key=lambda segment: segment.sequence, reverse=True)
        return {segment.partition: segment for segment in reversed(descending)}
