"""Tables that the tests simulate."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fakes.changed import changed

from pinot_assets.realtime.model.settings import RealtimeSettings
from pinot_assets.sizing.load import Flush
from simulator.network import Message
from simulator.protocol import Reply
from simulator.timing import Stream, Table
from simulator.world import BEGAN_MS, World

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE

BYPASS: Final = Table(
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


def with_settings(table: Table, **changes: object) -> Table:
    """The table with other settings."""
    return replace(table, settings=changed(table.settings, changes))


def statuses(world: World) -> list[str]:
    """Statuses of all segments, oldest first."""
    return [
        node.status.value for node in sorted(world.zookeeper.nodes.values(), key=lambda n: n.name.sequence)
    ]


def first(world: World) -> str:
    """Name of the first segment of partition 0."""
    return min(world.zookeeper.nodes)


def talk(world: World, segment: str) -> list[tuple[int, Message, Reply]]:
    """What was said about a segment: milliseconds since the beginning, message, answer."""
    return [(at - BEGAN_MS, m, r) for at, m, r in world.network.carried if m.segment == segment]
