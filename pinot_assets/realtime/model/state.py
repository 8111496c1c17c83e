"""What a REALTIME table looks like at one moment, as values; and what names of its segments say:
`<table>__<partition>__<sequence>__<yyyymmddThhmmZ>`.

`reading` makes them from a Pinot, the simulation makes them up; health, repair planner, preflight, drain and
rebalance guard decide from them alone. Times are epoch milliseconds, offsets are what Pinot stores as text
(Kafka: a number). Source: docs/design/realtime.md#s4 to #s9.
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
"""`PARTITION_PADDING_OFFSET`: a table with several streams counts the partitions of its second one from here
on, and so forth."""

SETTLED_MS: Final = 60_000
"""So long after a segment's node was written Helix has sent its messages, if it ever does, and the external
view has followed: a commit that runs looks like trouble for a moment."""

ROUTED_MS: Final = 10_000
"""Brokers have followed the external view by then."""

_NAME: Final = re.compile(r"(.+?)__(\d+)__(\d+)__(\d{8}T\d{4}Z)")
# The first up to 1.2, the second from 1.3 on.
_UPLOAD: Final = re.compile(r"(.+__\d{8}T\d{4}Z)(?:[0-9a-f]{8}-[0-9a-f-]{27}|\.tmp\..+)")


@dataclass(frozen=True, slots=True)
class SegmentName:
    """What such a name says.

    :ivar created_ms: to the minute.
    """

    table: str
    partition: int
    sequence: int
    created_ms: int


def parse_name(name: str) -> SegmentName | None:
    """Read a segment's name; None for one that did not come from a stream (`LLCSegmentName`)."""
    if (match := _NAME.fullmatch(name)) is None:
        return None
    try:
        created = datetime.strptime(match[4], "%Y%m%dT%H%MZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    return SegmentName(match[1], int(match[2]), int(match[3]), int(created.timestamp() * 1000))


def files_named(urls: Iterable[str | None]) -> frozenset[str]:
    """Files that these download URLs name, as a listing of the store shows them; and as the URLs write them,
    should a store not know of escapes.
    """
    written = {url.rpartition("/")[2] for url in urls if url}
    return frozenset(written | {unquote(name) for name in written})


def upload_of(file: str) -> str | None:
    """The segment of which a file of the deep store is an upload that was not (yet) moved to its place:
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
        """Whether the segment never changes any more."""
        return self in (SegmentStatus.DONE, SegmentStatus.UPLOADED)


class Copy(StrEnum):
    """What `segment.download.url` says (docs/design/realtime.md#s6-url)."""

    NEVER_SET = "never set"
    """No URL: being consumed, or being committed."""
    PEERS_ONLY = "peers only"
    """The empty string: committed past the deep store."""
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
    :ivar status: None where the node says none, or is missing while the ideal state has the segment.
    :ivar end_offset: exclusive; None while IN_PROGRESS.
    :ivar url: None never set, empty peers only, else where the tar is.
    :ivar created_ms: by the clock of the controller that created it.
    :ivar modified_ms: the node's mtime: the clock of Pinot's 300 s rule; None where it cannot be read.
    :ivar made_ms: the node's ctime, to be compared with others' mtimes: one clock for all.
    :ivar end_time_ms: newest value of the time column, which retention counts from.
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
        """Whether it never changes any more."""
        return self.status is not None and self.status.completed

    @property
    def past_the_store(self) -> bool:
        """Whether it is completed and the deep store has no copy of it."""
        return self.completed and self.copy is not Copy.DEEP_STORE

    @property
    def copy(self) -> Copy:
        """Where its tar is."""
        if self.url is None:
            return Copy.NEVER_SET
        return Copy.DEEP_STORE if self.url else Copy.PEERS_ONLY

    def in_state(self, state: str) -> tuple[Replica, ...]:
        """Its replicas which the external view has in that state."""
        return tuple(replica for replica in self.replicas if replica.external == state)

    @property
    def in_ideal_state(self) -> bool:
        """Whether the ideal state has it."""
        return any(replica.ideal is not None for replica in self.replicas)


@dataclass(frozen=True, slots=True)
class Server:
    """One server of the table's tenants, or one that the ideal state names.

    :ivar alive: whether it has a live instance.
    :ivar enabled: Helix's switch.
    :ivar ready: its health endpoint's answer; None where nobody could ask. A live server that is not ready
        is STARTING and serves no table.
    :ivar since_ms: when it went or came: since then it is alive, or dead; None where not known.
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
    """Why nothing is consumed.

    :ivar reason: None when the whole table is not paused.
    :ivar since_ms: None where Pinot tells it by the clock on its wall, as 1.3 to 1.5.1 do.
    :ivar topics: indices of streams that are paused on their own.
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
        """Whether the stream of that partition group is paused on its own."""
        return partition // PARTITIONS_A_STREAM in self.topics

    def holds(self, partition: int) -> bool:
        """Whether this partition is meant to stand still."""
        return self.whole or self.has_stream_of(partition)


NOT_PAUSED = Pause()


@dataclass(frozen=True, slots=True)
class StreamPartition:
    """What the stream holds of one partition, read beside Pinot.

    :ivar earliest: the first offset that can still be read.
    :ivar latest: the offset that the next message gets.
    """

    partition: int
    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class Consumption:
    """How far one server's consuming segment has come (`consumingSegmentsInfo`).

    :ivar state: the consumer's: CONSUMING or NOT_CONSUMING, as the server says.
    :ivar offset: the next offset it reads; None where it does not say.
    :ivar lag_ms: how old its newest row was when it got it (availability lag: as long as no other one comes,
        that does not grow), None where the server does not measure it.
    :ivar consumed_ms: when it last got a row, 0 for never; None where it does not say.
    """

    segment: str
    server: str
    state: str
    offset: int | None
    lag_ms: int | None = None
    consumed_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TmpUpload:
    """A `<segment>.tmp.<uuid>` (before 1.3 `<segment><uuid>`) in the deep store: an upload that nobody moved
    to its place. A segment's URL may name it all the same: what a server uploaded when it was asked to."""

    name: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True)
class RealtimeState:
    """A REALTIME table at one moment.

    What could not be read is absent, and `unread` says why, by the name of the field: a check that needs it
    answers "not known", never "all well". Names of parts: `segments` (ideal state or nodes), `external` (the
    replicas' states in the external view), `modified_ms`, `pending`, `servers`, `ready`, `pause`,
    `committing_listed`, `stream`, `consumption`, `tmp_uploads`, `answered`.

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
        """Of the largest segment whose size is known."""
        return max((segment.size_bytes or 0 for segment in self.segments), default=0)

    def age_ms(self, segment: LlcSegment) -> int | None:
        """How long ago the segment's node was last written."""
        return None if segment.modified_ms is None else self.read_ms - segment.modified_ms

    def why_unread(self, *parts: str) -> str:
        """Why these could not be read; empty when they all were."""
        return "; ".join(f"{part}: {self.unread[part]}" for part in parts if part in self.unread)

    def is_older(self, segment: LlcSegment, ms: int) -> bool:
        """Whether the segment's node was written longer ago than that, or nobody knows when."""
        age = self.age_ms(segment)
        return age is None or age > ms

    def live_copies(self, segment: LlcSegment) -> tuple[str, ...]:
        """Servers that hold a loaded copy of it and live: ONLINE in the external view."""
        return tuple(
            replica.server
            for replica in segment.in_state("ONLINE")
            if (server := self.servers.get(replica.server)) is not None and server.alive
        )

    def latest(self) -> Mapping[int, LlcSegment]:
        """The newest segment of every partition."""
        descending = sorted(self.segments, key=lambda segment: segment.sequence, reverse=True)
        return {segment.partition: segment for segment in reversed(descending)}
