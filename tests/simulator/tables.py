"""Tables that the tests simulate, how long things take in their cluster, and what they are set to.

Where Pinot fixes a time it is in `protocol`; here is what a cluster's size, load and settings decide.
Milliseconds, bytes per second and rows per second throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from fakes.changed import changed

from pinot_assets.realtime.model.settings import ClusterSettings, RealtimeSettings
from pinot_assets.sizing.load import Flush
from simulator.protocol import Reply

if TYPE_CHECKING:
    from simulator.faults import Message
    from simulator.world import SimulatedWorld


BEGAN_MS: Final = 1_767_225_600_000
"""When every world begins: 2026-01-01, midnight UTC."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """Speeds and delays.

    :ivar build_rows_per_s: rows that one segment build takes in a second.
    :ivar store_bytes_per_s: what one upload or download moves.
    :ivar zookeeper_ms: one write.
    :ivar helix_ms: from a change of the ideal state to the message at the server.
    :ivar external_view_ms: from a server's new state to the external view.
    :ivar session_ms: ZooKeeper's time-out: when a dead server or controller counts as dead.
    :ivar refusal_ms: how long a store that refuses takes to say so.
    :ivar startup_ms: from a server's start to its first state transition.
    """

    bytes_per_row: int = 100
    read_rows_per_s: int = 50_000
    build_rows_per_s: int = 100_000
    build_slots: int = 4
    store_bytes_per_s: int = 50_000_000
    network_ms: int = 5
    zookeeper_ms: int = 10
    helix_ms: int = 100
    external_view_ms: int = 200
    session_ms: int = 30_000
    refusal_ms: int = 1_000
    startup_ms: int = 6_000


@dataclass(frozen=True, slots=True)
class Stream:
    """The stream of a table.

    :ivar rows_per_s: of each partition.
    :ivar retention_ms: how long a message can be read.
    :ivar flows_ms: how long messages come, from the world's beginning; None: for ever.
    :ivar late_ms: how much later than others some servers get every message: so replicas stop at different
        offsets when time or an operator ends a segment.
    """

    partitions: int = 2
    rows_per_s: int = 1_000
    retention_ms: int = 24 * 3_600_000
    flows_ms: int | None = None
    late_ms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SimulatedTable:
    """A table and the cluster that it lies in.

    :ivar precheck_retry: `retryOnSegmentBuildPrecheckFailure`.
    :ivar buildable_rows: a segment of more rows cannot be built, on any replica; None: no such limit.
    :ivar first_validation_ms: initial delay of the periodic task.
    """

    name: str = "events"
    settings: RealtimeSettings = field(
        default_factory=lambda: RealtimeSettings(replication=2, peer_scheme="http")
    )
    cluster: ClusterSettings = field(default_factory=lambda: ClusterSettings(version="1.5.1"))
    flush: Flush = field(default_factory=Flush)
    stream: Stream = field(default_factory=Stream)
    hardware: Hardware = field(default_factory=Hardware)
    servers: int = 2
    controllers: int = 2
    precheck_retry: bool = False
    buildable_rows: int | None = None
    first_validation_ms: int = 180_000

    @property
    def with_type(self) -> str:
        """Name with `_REALTIME`."""
        return f"{self.name}_REALTIME"

    @property
    def server_uploads(self) -> bool:
        """Whether the committer itself writes to the deep store; a peer scheme forces it."""
        return bool(self.settings.server_uploads) or self.settings.bypasses


MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE

BYPASS: Final = SimulatedTable(
    settings=RealtimeSettings(replication=2, peer_scheme="http"),
    flush=Flush(segment_rows=60_000),
    stream=Stream(partitions=1, rows_per_s=1_000),
)
"""A commit a minute, one partition on two servers."""

CLASSIC: Final = replace(BYPASS, settings=RealtimeSettings(replication=2))
SPLIT: Final = replace(BYPASS, settings=RealtimeSettings(replication=2, server_uploads=True))
PAUSELESS: Final = replace(
    BYPASS, settings=RealtimeSettings(replication=2, peer_scheme="http", pauseless=True)
)


def with_settings(table: SimulatedTable, **changes: object) -> SimulatedTable:
    """The table with other settings."""
    return replace(table, settings=changed(table.settings, changes))


def statuses(world: SimulatedWorld) -> list[str]:
    """Statuses of all segments, oldest first."""
    return [
        node.status.value for node in sorted(world.zookeeper.nodes.values(), key=lambda n: n.name.sequence)
    ]


def first(world: SimulatedWorld) -> str:
    """Name of the first segment of partition 0."""
    return min(world.zookeeper.nodes)


def talk(world: SimulatedWorld, segment: str) -> list[tuple[int, Message, Reply]]:
    """What was said about a segment: milliseconds since the beginning, message, answer."""
    return [(at - BEGAN_MS, m, r) for at, m, r in world.network.carried if m.segment == segment]
