"""The five metrics by which pauseless tables are watched, under the names that Pinot really gives them.

Read from the JMX exporter of controllers and servers where it listens, else derived from the table's state;
each one says which. Names: docs/design/realtime.md#s10; labels as Pinot's own exporter rules write them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import httpx

from pinot_assets.core.connections import PinotConnection
from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.http import CallKind, HttpCall, HttpClient
from pinot_assets.realtime.health.recovery import ERROR, all_in_error
from pinot_assets.realtime.model.settings import reingests
from pinot_assets.realtime.model.state import Copy, RealtimeState

SECONDS: Final = 15.0
"""How long one exporter may take: a broker's page has thousands of lines."""

_LINE: Final = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{([^}]*)\})?\s+(\S+)")
_MOST_LINE: Final = 1 << 16
"""Characters of a line, which an exporter may make as long as a reply may be."""
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

    :ivar name: Pinot's own.
    :ivar value: of all processes that tell it; None where nothing is known.
    :ivar note: what it counts, or why nothing is known.
    """

    name: str
    value: float | None
    origin: Origin
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One metric: how the exporter writes it, and how the values of several processes become one.

    :ivar series: names in the exporter's page.
    :ivar adds: meters add up; a gauge is the largest that any process tells.
    """

    name: str
    series: tuple[str, ...]
    adds: bool
    note: str


_WANTED: Final = (
    _Wanted(
        "pauselessConsumptionEnabled",
        (
            "pinot_controller_pauselessConsumptionEnabled_Value",
            "pinot_server_pauselessConsumptionEnabled_Value",
        ),
        False,
        "a server tells it only while it commits",
    ),
    _Wanted(
        "segmentBuildFailure",
        ("pinot_server_segmentBuildFailure_Count",),
        True,
        "forgotten once a server has the segment after all; absent until the first one",
    ),
    _Wanted(
        "segmentReingestionFailure",
        ("pinot_server_segmentReingestionFailure_Count",),
        True,
        "counts since the servers started; absent until the first one",
    ),
    _Wanted(
        "segmentsInErrorState",
        ("pinot_controller_segmentsInErrorState_Value",),
        False,
        "replicas in ERROR, as of the last status check",
    ),
    _Wanted(
        "pauselessSegmentsInErrorCount",
        ("pinot_controller_pauselessSegmentsInErrorCount_Value",),
        False,
        "segments in ERROR on all replicas, as of the last validation",
    ),
    _Wanted(
        "pauselessSegmentsInUnrecoverableErrorCount",
        ("pinot_controller_pauselessSegmentsInUnrecoverableErrorCount_Value",),
        False,
        "those that Pinot leaves alone; 0 wherever it re-ingests",
    ),
)
FROM_PEERS: Final = "pinot_server_segmentDownloadFromPeersTimeMs_Count"
MISSING_URL: Final = "segmentsMissingDownloadUrl"
"""Pinot has no such metric: its nearest one, `realtimeSegmentMissingDeepStoreLink`, leaves out every commit
that went past the deep store."""


@dataclass(frozen=True, slots=True)
class ExporterLine:
    """One line of an exporter's page."""

    name: str
    labels: Mapping[str, str]
    value: float


def samples_of(page: str) -> Iterator[ExporterLine]:
    """The samples of a page in Prometheus' text format; lines that are none are left out."""
    for line in page.splitlines():
        found = _LINE.match(line) if len(line) <= _MOST_LINE else None
        if found is None:
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        yield ExporterLine(found[1], dict(_LABEL.findall(found[2] or "")), value)


@dataclass(frozen=True, slots=True)
class Exported:
    """What exporters told.

    :ivar silent: address → why it did not answer.
    """

    samples: tuple[ExporterLine, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)


def read_exporters(addresses: Iterable[str], transport: httpx.BaseTransport | None = None) -> Exported:
    """Ask these exporters. No credentials of Pinot are sent to them.

    :param addresses: `http://host:port` of controllers' and servers' exporters.
    """
    samples: list[ExporterLine] = []
    silent: dict[str, str] = {}
    for address in addresses:
        with HttpClient(address, PinotConnection(address), transport) as door:
            try:
                samples += samples_of(door.send(HttpCall("GET", "/metrics", CallKind.READ, SECONDS)))
            except PinotError as error:
                silent[address] = error.why or error.what
    return Exported(tuple(samples), silent)


def peer_downloads(
    addresses: Sequence[str], table: str, transport: httpx.BaseTransport | None = None
) -> int | None:
    """Segments of a table that servers took from each other since they started; None where not every one of
    these exporters answers. Pinot tells it from 1.5 on.

    :param addresses: of all servers' exporters.
    :param table: with `_REALTIME`.
    """
    exported = read_exporters(addresses, transport)
    if exported.silent or not addresses:
        return None
    return int(sum(s.value for s in exported.samples if s.name == FROM_PEERS and _of_table(s, table)))


def metrics(state: RealtimeState, exported: Exported = Exported()) -> tuple[Metric, ...]:
    """The table's metrics: as exporters told them, derived from its state where none did."""
    derived = _derived(state)
    ours = [sample for sample in exported.samples if _of_table(sample, state.table)]
    found = [_told(wanted, ours, derived.get(wanted.name)) for wanted in _WANTED]
    if exported.silent:
        silent = "; ".join(f"{address} does not answer: {why}" for address, why in exported.silent.items())
        found = [replace(metric, note=f"{metric.note}; {silent}") for metric in found]
    return (*found, _missing_url(state))


def _missing_url(state: RealtimeState) -> Metric:
    note = "committed segments that the deep store has not; Pinot has no such metric"
    if "segments" in state.unread:
        return Metric(MISSING_URL, None, Origin.NOT_KNOWN, note)
    missing = sum(
        segment.copy is not Copy.DEEP_STORE
        for segment in state.segments
        if segment.status is not None and segment.status.completed
    )
    return Metric(MISSING_URL, missing, Origin.DERIVED, note)


def _told(wanted: _Wanted, samples: Sequence[ExporterLine], derived: float | None) -> Metric:
    values = [sample.value for sample in samples if sample.name in wanted.series]
    if values:
        value = sum(values) if wanted.adds else max(values)
        return Metric(wanted.name, value, Origin.EXPORTER, wanted.note)
    if derived is not None:
        return Metric(wanted.name, derived, Origin.DERIVED, wanted.note)
    return Metric(wanted.name, None, Origin.NOT_KNOWN, wanted.note)


def _of_table(sample: ExporterLine, table: str) -> bool:
    raw = table.removesuffix("_REALTIME")
    # Rules of older releases write the name with its type.
    return sample.labels.get("table") in (raw, table) and sample.labels.get("tableType") in ("REALTIME", None)


def _derived(state: RealtimeState) -> dict[str, float]:
    """What the state says; nothing of what was not read, for zeros would lie."""
    pauseless = state.settings.pauseless
    enabled = {"pauselessConsumptionEnabled": float(pauseless)}
    if {"segments", "external"} & state.unread.keys():
        return enabled
    broken = [s for s in state.segments if s.in_ideal_state and s.in_state(ERROR)]
    whole = [s for s in broken if all_in_error(s)]
    left_alone = pauseless and not reingests(state.settings, state.cluster)
    return {
        **enabled,
        # Pinot's name says segments, its status check counts replicas.
        "segmentsInErrorState": sum(len(segment.in_state(ERROR)) for segment in broken),
        "pauselessSegmentsInErrorCount": len(whole) if pauseless else 0,
        "pauselessSegmentsInUnrecoverableErrorCount": len(whole) if left_alone else 0,
    }
