"""What a controller says of segments, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Replicas = Mapping[str, Mapping[str, str]]
"""Segment → server instance → Helix state (`ONLINE`, `OFFLINE`, `ERROR`, …)."""


@dataclass(frozen=True, slots=True)
class SegmentMetadata:
    """A segment as Pinot's ZooKeeper metadata shows it.

    :ivar crc: Pinot's CRC, what servers check their copy against.
    :ivar total_docs: rows as the pusher's metadata said.
    :ivar custom: the custom map (`pinotAssets.session`, …).
    :ivar download_url: where servers fetch it.
    :ivar start_ms: smallest time value, None without an interval.
    :ivar end_ms: largest time value.
    :ivar push_ms: time of the first push.
    """

    segment: str
    crc: int
    total_docs: int
    custom: Mapping[str, str]
    download_url: str
    start_ms: int | None
    end_ms: int | None
    push_ms: int | None
