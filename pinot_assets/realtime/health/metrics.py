"""What is shown of a REALTIME table: its segments as rows; its numbers, for plots; and the five metrics by
which pauseless tables are watched, with the names that Pinot really gives them.

The metrics come from the JMX exporters of controllers and servers if these listen, otherwise from the table's
state; each metric names its origin. Names: docs/design/realtime.md#s10. Labels: as the exporter rules of
Pinot write them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import httpx

from pinot_assets.core.connections import PinotConnection
from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.http import CallKind, HttpCall, HttpClient
from pinot_assets.realtime.health.consuming import by_server, lags_ms
from pinot_assets.realtime.health.recovery import ERROR, all_in_error, recoveries
from pinot_assets.realtime.model.settings import reingests
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, SegmentStatus

SECONDS: Final = 15.0
"""Seconds that one exporter may take: a broker's page has thousands of lines."""

_LINE: Final = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{([^}]*)\})?\s+(\S+)")
_MOST_LINE: Final = 1 << 16
"""Maximum of characters of a line; a longer one is skipped, since an exporter may send any length."""
_LABEL: Final = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')


class Origin(StrEnum):
    """Where a number comes from."""

    EXPORTER = "exporter"
    DERIVED = "derived"
    """From ZooKeeper and Pinot's REST calls."""
    NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a table.

    :ivar name: Pinot's name.
    :ivar value: over all processes that report it; None where it is not known.
    :ivar note: what it counts, or why it is not known.
    """

    name: str
    value: float | None
    origin: Origin
    note: str = ""


@dataclass(frozen=True, slots=True)
class _MetricSpec:
    """How the exporter writes one metric, and how the values of several processes become one.

    :ivar series: its names in the exporter's page.
    :ivar adds: whether values are added (meters); of a gauge the largest value counts.
    """

    name: str
    series: tuple[str, ...]
    adds: bool
    note: str


MISSING_URL: Final = "segmentsMissingDownloadUrl"
"""Pinot has no such metric. Its nearest one, `realtimeSegmentMissingDeepStoreLink`, counts no commit that
went past the deep store."""
_SPECS: Final = (
    _MetricSpec(
        "pauselessConsumptionEnabled",
        (
            "pinot_controller_pauselessConsumptionEnabled_Value",
            "pinot_server_pauselessConsumptionEnabled_Value",
        ),
        False,
        "a server reports it only while it commits",
    ),
    _MetricSpec(
        "segmentBuildFailure",
        ("pinot_server_segmentBuildFailure_Count",),
        True,
        "a server drops it when it has the segment after all; absent until the first one",
    ),
    _MetricSpec(
        "segmentReingestionFailure",
        ("pinot_server_segmentReingestionFailure_Count",),
        True,
        "counts since the servers started; absent until the first one",
    ),
    _MetricSpec(
        "segmentsInErrorState",
        ("pinot_controller_segmentsInErrorState_Value",),
        False,
        "replicas in ERROR, as of the last status check; from 1.6 on without segments that were written less "
        "than 10 min before it",
    ),
    _MetricSpec(
        "pauselessSegmentsInErrorCount",
        ("pinot_controller_pauselessSegmentsInErrorCount_Value",),
        False,
        "segments in ERROR on all replicas, as of the last validation",
    ),
    _MetricSpec(
        "pauselessSegmentsInUnrecoverableErrorCount",
        ("pinot_controller_pauselessSegmentsInUnrecoverableErrorCount_Value",),
        False,
        "those that Pinot does not repair; 0 wherever it re-ingests",
    ),
    _MetricSpec(
        MISSING_URL, (), False, "committed segments that are not in the deep store; Pinot has no such metric"
    ),
)
FROM_PEERS: Final = "pinot_server_segmentDownloadFromPeersTimeMs_Count"


@dataclass(frozen=True, slots=True)
class ExporterLine:
    """One line of an exporter's page."""

    name: str
    labels: Mapping[str, str]
    value: float


def samples_of(page: str) -> Iterator[ExporterLine]:
    """Yield the samples of a page in Prometheus' text format; skip all other lines."""
    for line in page.splitlines():
        match = _LINE.match(line) if len(line) <= _MOST_LINE else None
        if match is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        yield ExporterLine(match[1], dict(_LABEL.findall(match[2] or "")), value)


@dataclass(frozen=True, slots=True)
class Exported:
    """The samples of several exporters.

    :ivar silent: address of an exporter → why it did not answer.
    """

    samples: tuple[ExporterLine, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)


def read_exporters(addresses: Iterable[str], transport: httpx.BaseTransport | None = None) -> Exported:
    """Read these exporters. They get no credentials of Pinot.

    :param addresses: `http://host:port` of controllers' and servers' exporters.
    """
    samples: list[ExporterLine] = []
    silent: dict[str, str] = {}
    for address in addresses:
        with HttpClient(address, PinotConnection(address), transport) as client:
            try:
                samples += samples_of(client.send(HttpCall("GET", "/metrics", CallKind.READ, SECONDS)))
            except PinotError as error:
                silent[address] = error.why or error.what
    return Exported(tuple(samples), silent)


def peer_downloads(
    addresses: Sequence[str], table: str, transport: httpx.BaseTransport | None = None
) -> int | None:
    """Return how many segments of a table servers have loaded from each other since they started; None unless
    each of these exporters answers. Pinot counts this from 1.5 on.

    :param addresses: of all servers' exporters.
    :param table: with `_REALTIME`.
    """
    exported = read_exporters(addresses, transport)
    if exported.silent or not addresses:
        return None
    return int(sum(s.value for s in exported.samples if s.name == FROM_PEERS and _of_table(s, table)))


def metrics(state: RealtimeState, exported: Exported = Exported()) -> tuple[Metric, ...]:
    """Return the table's metrics: from the exporters, or derived from the state where none reports one."""
    derived = _derived(state)
    ours = [sample for sample in exported.samples if _of_table(sample, state.table)]
    silent = [f"{address} does not answer: {why}" for address, why in exported.silent.items()]
    collected = []
    for spec in _SPECS:
        value, origin = derived.get(spec.name), Origin.DERIVED
        if values := [sample.value for sample in ours if sample.name in spec.series]:
            value, origin = sum(values) if spec.adds else max(values), Origin.EXPORTER
        note = "; ".join([spec.note, *silent] if spec.series else [spec.note])
        collected.append(Metric(spec.name, value, Origin.NOT_KNOWN if value is None else origin, note))
    return tuple(collected)


def _of_table(sample: ExporterLine, table: str) -> bool:
    raw = table.removesuffix("_REALTIME")
    # The exporter rules of older releases write the table name with its type.
    return sample.labels.get("table") in (raw, table) and sample.labels.get("tableType") in ("REALTIME", None)


def _derived(state: RealtimeState) -> dict[str, float]:
    """Return the metrics that the state shows; one whose part was not read is left out: 0 would be wrong."""
    pauseless = state.settings.pauseless
    values = {"pauselessConsumptionEnabled": float(pauseless)}
    if "segments" not in state.unread:
        values[MISSING_URL] = sum(segment.past_the_store for segment in state.segments)
    if {"segments", "external"} & state.unread.keys():
        return values
    broken = [s for s in state.segments if s.in_ideal_state and s.in_state(ERROR)]
    whole = [s for s in broken if all_in_error(s)]
    left_alone = pauseless and not reingests(state.settings, state.cluster)
    return {
        **values,
        # Pinot's name says segments, but its status check counts replicas.
        "segmentsInErrorState": sum(len(segment.in_state(ERROR)) for segment in broken),
        "pauselessSegmentsInErrorCount": len(whole) if pauseless else 0,
        "pauselessSegmentsInUnrecoverableErrorCount": len(whole) if left_alone else 0,
    }


def numbers(state: RealtimeState) -> Mapping[str, int | float]:
    """Return the numbers of a state; a number that is not known is left out, since a zero would be wrong.

    `committed_…` counts segments that no longer change; of `only_with_peers` of them the deep store has no
    copy. `oldest_commit_s` is the age of the oldest COMMITTING segment, 0 without one. `lag_s` is the lag of
    the slowest consumer (`lags_ms`).
    """
    values: dict[str, int | float] = {}
    if "segments" not in state.unread:
        values |= _of_segments(state)
    if "external" not in state.unread:
        values["replicas_in_error"] = sum(len(segment.in_state("ERROR")) for segment in state.segments)
    if "servers" not in state.unread:
        values["servers"] = len(state.servers)
        values["servers_that_serve"] = sum(server.serves for server in state.servers.values())
    if lags := [late for each in by_server(state).values() for late in lags_ms(state, each).values()]:
        values["lag_s"] = max(lags) / 1000
    if (unread := _unread_messages(state)) is not None:
        values["messages_to_consume"] = unread
    if state.queryable:
        values["rows_queryable"] = min(state.queryable.values())
    return values


def _of_segments(state: RealtimeState) -> dict[str, int | float]:
    by_status = Counter(segment.status for segment in state.segments)
    committed = [one for one in state.segments if one.completed]
    ages = [state.age_ms(one) for one in state.segments if one.status is SegmentStatus.COMMITTING]
    return {
        "segments": len(state.segments),
        "consuming_segments": by_status[SegmentStatus.IN_PROGRESS],
        "committing_segments": by_status[SegmentStatus.COMMITTING],
        "oldest_commit_s": max((age for age in ages if age is not None), default=0) / 1000,
        "committed_segments": len(committed),
        **_sum("committed_rows", [one.total_docs for one in committed]),
        **_sum("committed_bytes", [one.size_bytes for one in committed]),  # not reported before 1.0
        "only_with_peers": sum(one.past_the_store for one in committed),
        "paused": int(state.pause.whole),
    }


def _sum(name: str, values: Sequence[int | None]) -> Mapping[str, int]:
    """Return the sum under its name; nothing where one of the values is not known."""
    known = [value for value in values if value is not None]
    return {name: sum(known)} if len(known) == len(values) else {}


def _unread_messages(state: RealtimeState) -> int | None:
    """Return the messages that the furthest server of each partition must still consume; None if unknown."""
    behind = 0
    for partition, segment in state.latest().items():
        end = state.stream.get(partition)
        offsets = [c.offset for c in state.consumption if c.segment == segment.name and c.offset is not None]
        if end is None or not offsets:
            return None
        behind += max(0, end.latest - max(offsets))
    return behind if state.stream else None


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """One segment.

    :ivar status: IN_PROGRESS, COMMITTING, DONE, UPLOADED, or empty where its node has none.
    :ivar age_s: seconds since its node was written, None where that is not known.
    :ivar copy: where its tar is.
    :ivar replicas: server → state in the external view; `none` where it has no state.
    :ivar live_copies: number of live servers that have loaded it.
    :ivar rows: committed rows.
    :ivar note: what is wrong with it, if anything.
    """

    segment: str
    partition: int
    sequence: int
    status: str
    age_s: float | None
    copy: Copy
    replicas: Mapping[str, str]
    live_copies: int
    rows: int | None
    size_bytes: int | None
    start_offset: str | None
    end_offset: str | None
    note: str = ""


def segment_rows(state: RealtimeState) -> tuple[SegmentRow, ...]:
    """Return a row for each segment, by partition and sequence."""
    broken = {one.segment.name: f"{one.way}: {one.why}" for one in recoveries(state)}
    return tuple(
        SegmentRow(
            segment=segment.name,
            partition=segment.partition,
            sequence=segment.sequence,
            status=segment.status or "",
            age_s=None if (age := state.age_ms(segment)) is None else age / 1000,
            copy=segment.copy,
            replicas={r.server: r.external or "none" for r in segment.replicas},
            live_copies=len(state.live_copies(segment)),
            rows=segment.total_docs,
            size_bytes=segment.size_bytes,
            start_offset=segment.start_offset,
            end_offset=segment.end_offset,
            note=broken.get(segment.name) or _note(segment),
        )
        for segment in state.segments
    )


def _note(segment: LlcSegment) -> str:
    if not segment.stored:
        return "it has no node"
    return "" if segment.in_ideal_state else "not in the ideal state"
