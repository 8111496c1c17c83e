"""Parts of a `RealtimeState`, each made from what Pinot says of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.untrusted import fields_of_json
from pinot_assets.pinot.client.helix_nodes import Node, Stat
from pinot_assets.realtime.model.names import parse_name
from pinot_assets.realtime.model.state import (
    NOT_PAUSED,
    Consumption,
    LlcSegment,
    Pause,
    PauseReason,
    Replica,
    SegmentStatus,
)

States = Mapping[str, Mapping[str, str]]
"""Segment → server → state."""

_UNIT_MS: Final = {
    "DAYS": 86_400_000.0,
    "HOURS": 3_600_000.0,
    "MINUTES": 60_000.0,
    "SECONDS": 1_000.0,
    "MILLISECONDS": 1.0,
    "MICROSECONDS": 1e-3,
    "NANOSECONDS": 1e-6,
}


def segments_of(
    ideal: States,
    nodes: Mapping[str, Mapping[str, str]],
    stats: Mapping[str, Stat],
    external: States,
    pending: Mapping[str, frozenset[str]],
) -> tuple[LlcSegment, ...]:
    """The segments that any of these knows, by partition and sequence; others than the stream's are left out.

    :param nodes: segment → fields of its node.
    :param pending: server → segments about which a message waits for it.
    """
    found = [
        segment
        for name in {*ideal, *nodes, *external}
        if (
            segment := _segment(
                name, nodes.get(name), stats.get(name), _replicas(name, ideal, external, pending)
            )
        )
    ]
    return tuple(sorted(found, key=lambda segment: (segment.partition, segment.sequence, segment.name)))


def _replicas(
    name: str, ideal: States, external: States, pending: Mapping[str, frozenset[str]]
) -> tuple[Replica, ...]:
    wanted, shown = ideal.get(name, {}), external.get(name, {})
    return tuple(
        Replica(server, wanted.get(server), shown.get(server), name in pending.get(server, ()))
        for server in sorted({*wanted, *shown})
    )


def _segment(
    name: str, node: Mapping[str, str] | None, stat: Stat | None, replicas: tuple[Replica, ...]
) -> LlcSegment | None:
    told = parse_name(name)
    if told is None:
        return None
    fields = node or {}
    status = _status(fields.get("segment.realtime.status"))
    # The second spelling is that of releases before 0.8.
    url = fields.get("segment.download.url", fields.get("segment.realtime.download.url"))
    consuming = status is SegmentStatus.IN_PROGRESS
    return LlcSegment(
        name=name,
        partition=told.partition,
        sequence=told.sequence,
        created_ms=_count(fields.get("segment.creation.time")) or told.created_ms,
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
    """Why nothing is consumed, as the ideal state says it: from 1.3 on with a reason, before as a flag."""
    told = ideal.simple.get("pauseState")
    if told is None:
        paused = ideal.simple.get("isTablePaused", "").lower() == "true"
        return Pause(PauseReason.ADMINISTRATIVE) if paused else NOT_PAUSED
    try:
        value = fields_of_json(told)
    except ValueError:
        return Pause(PauseReason.OTHER, comment="its reason cannot be read")
    return Pause(
        reason=_reason(value.get("reasonCode")) if value.get("paused") else None,
        comment=str(value.get("comment") or ""),
        since_ms=_count(value.get("timeInMillis")),
        topics=frozenset(int(index) for index in value.get("indexOfInactiveTopics") or ()),
    )


def consumption_of(told: Mapping[str, list[JsonObject]]) -> Iterator[Consumption]:
    """How far each server is with each consuming segment.

    :param told: as `RealtimeReads.consuming_segments` returns it.
    """
    for segment, servers in sorted(told.items()):
        for one in servers:
            info = one.get("partitionOffsetInfo") or {}
            offsets = info.get("currentOffsetsMap") or one.get("partitionToOffsetMap")
            yield Consumption(
                segment=segment,
                server=str(one["serverName"]),
                state=str(one.get("consumerState")),
                offset=_first(offsets),
                lag_ms=_first(info.get("availabilityLagMsMap")),
                consumed_ms=_moment(one.get("lastConsumedTimestamp")),
            )


def _status(text: str | None) -> SegmentStatus | None:
    return SegmentStatus(text) if text in set(SegmentStatus) else None


def _reason(text: object) -> PauseReason:
    return PauseReason(str(text)) if text in set(PauseReason) else PauseReason.OTHER


def _first(values: JsonMapping | None) -> int | None:
    """The only value of a map by partition; a server may say UNKNOWN instead of a number."""
    return _count(next(iter((values or {}).values()), None))


def _count(value: object) -> int | None:
    """A number that is none when it is missing, negative or no number."""
    try:
        number = int(str(value))
    except ValueError:
        return None
    return number if number >= 0 else None


def _moment(value: object) -> int | None:
    """A moment; 0 for -1, which says *never* (0.11.0 says 0 itself)."""
    return 0 if str(value) == "-1" else _count(value)


def _time_ms(value: str | None, unit: str | None) -> int | None:
    number, factor = _count(value), _UNIT_MS.get((unit or "MILLISECONDS").upper())
    return None if number is None or factor is None else int(number * factor)
