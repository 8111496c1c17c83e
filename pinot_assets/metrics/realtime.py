"""Samples of a REALTIME table: the numbers that `realtime/` finds, in base units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pinot_assets.metrics.family import Family, Sample, gauge
from pinot_assets.realtime.health.metrics import metrics, numbers
from pinot_assets.realtime.model.state import RealtimeState

SEGMENTS = gauge("realtime_segments", "Segments by status.", "state")

_OF_NUMBERS: Mapping[str, Family] = {
    "oldest_commit_s": gauge(
        "realtime_oldest_commit_age_seconds", "Age of the oldest commit that has not ended; 0 without one."
    ),
    "committed_rows": gauge("realtime_committed_rows", "Rows of committed segments."),
    "committed_bytes": gauge("realtime_committed_bytes", "Bytes of committed segments."),
    "only_with_peers": gauge(
        "realtime_segments_only_with_peers", "Committed segments that are not in the deep store."
    ),
    "paused": gauge("realtime_paused", "1 while the whole table is paused."),
    "replicas_in_error": gauge("realtime_replicas_in_error", "Replicas in ERROR."),
    "servers": gauge("realtime_servers", "Servers of the table."),
    "servers_that_serve": gauge(
        "realtime_servers_serving", "Servers of the table that are alive, enabled and ready."
    ),
    "lag_s": gauge(
        "realtime_lag_seconds",
        "How old its newest row was when the slowest consumer read it; if messages wait, the "
        "time since then.",
    ),
    "messages_to_consume": gauge(
        "realtime_messages_to_consume", "Messages of the stream that no server has consumed yet."
    ),
    "rows_queryable": gauge("realtime_queryable_rows", "Rows that the broker finds which finds the fewest."),
}
_SEGMENTS: Mapping[str, str] = {
    "consuming_segments": "consuming",
    "committing_segments": "committing",
    "committed_segments": "committed",
}
"""Name of a number -> value of the label `state`."""
_OF_METRICS: Mapping[str, Family] = {
    "pauselessConsumptionEnabled": gauge(
        "realtime_pauseless_enabled", "1 where the table consumes while it commits."
    ),
    "pauselessSegmentsInErrorCount": gauge(
        "realtime_segments_in_error", "Segments of a pauseless table that are in ERROR on all replicas."
    ),
    "pauselessSegmentsInUnrecoverableErrorCount": gauge(
        "realtime_segments_unrecoverable", "Those of them that Pinot itself does not ingest again."
    ),
}
"""Metrics with Pinot's own names that the table's state shows; Pinot's exporters expose the others."""


def realtime_samples(table: str, state: RealtimeState) -> Iterator[Sample]:
    """Yield the samples of one look; a number that is not known is left out."""
    known = numbers(state)
    yield from (SEGMENTS.of(known[name], table, label) for name, label in _SEGMENTS.items() if name in known)
    yield from (family.of(known[name], table) for name, family in _OF_NUMBERS.items() if name in known)
    for metric in metrics(state):
        if metric.name in _OF_METRICS and metric.value is not None:
            yield _OF_METRICS[metric.name].of(metric.value, table)
