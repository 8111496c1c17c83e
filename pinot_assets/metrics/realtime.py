"""The numbers of a REALTIME table: what `realtime/` knows of it, in base units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pinot_assets.metrics.family import Family, Sample, gauge
from pinot_assets.realtime.health.metrics import metrics, numbers
from pinot_assets.realtime.model.state import RealtimeState

SEGMENTS = gauge("realtime_segments", "Segments by how far they are.", "state")
OLDEST_COMMIT = gauge(
    "realtime_oldest_commit_age_seconds", "Age of the oldest commit that is under way; 0 without one."
)
ROWS = gauge("realtime_committed_rows", "Rows of committed segments.")
BYTES = gauge("realtime_committed_bytes", "Bytes of committed segments.")
ONLY_WITH_PEERS = gauge(
    "realtime_segments_only_with_peers", "Committed segments of which the deep store has no copy."
)
PAUSED = gauge("realtime_paused", "1 while the whole table is paused.")
IN_ERROR = gauge("realtime_replicas_in_error", "Replicas in ERROR.")
SERVERS = gauge("realtime_servers", "Servers of the table.")
SERVING = gauge("realtime_servers_serving", "Servers of the table that live, are enabled and ready.")
LAG = gauge(
    "realtime_lag_seconds",
    "How old its newest row was when the slowest consumer got it; the time since, where messages wait.",
)
BEHIND = gauge("realtime_messages_to_consume", "Messages of the stream that no server has consumed yet.")
QUERYABLE = gauge("realtime_queryable_rows", "Rows that the broker which finds the fewest finds.")
PAUSELESS = gauge("realtime_pauseless_enabled", "1 where the table consumes while it commits.")
WHOLLY_IN_ERROR = gauge(
    "realtime_segments_in_error", "Segments of a pauseless table that are in ERROR on all replicas."
)
LEFT_ALONE = gauge(
    "realtime_segments_unrecoverable", "Those of them that Pinot does not ingest again by itself."
)

_OF_NUMBERS: Mapping[str, Family] = {
    "oldest_commit_s": OLDEST_COMMIT,
    "committed_rows": ROWS,
    "committed_bytes": BYTES,
    "only_with_peers": ONLY_WITH_PEERS,
    "paused": PAUSED,
    "replicas_in_error": IN_ERROR,
    "servers": SERVERS,
    "servers_that_serve": SERVING,
    "lag_s": LAG,
    "messages_to_consume": BEHIND,
    "rows_queryable": QUERYABLE,
}
_SEGMENTS: Mapping[str, str] = {
    "consuming_segments": "consuming",
    "committing_segments": "committing",
    "committed_segments": "committed",
}
"""Numbers, and the label's value."""
_OF_METRICS: Mapping[str, Family] = {
    "pauselessConsumptionEnabled": PAUSELESS,
    "pauselessSegmentsInErrorCount": WHOLLY_IN_ERROR,
    "pauselessSegmentsInUnrecoverableErrorCount": LEFT_ALONE,
}
"""Those under Pinot's own names that the table's state tells; the others are Pinot's exporters' to tell."""


def realtime_samples(table: str, state: RealtimeState) -> Iterator[Sample]:
    """What a look found; a number that is not known is left out."""
    found = numbers(state)
    yield from (SEGMENTS.of(found[name], table, label) for name, label in _SEGMENTS.items() if name in found)
    yield from (family.of(found[name], table) for name, family in _OF_NUMBERS.items() if name in found)
    for metric in metrics(state):
        if metric.name in _OF_METRICS and metric.value is not None:
            yield _OF_METRICS[metric.name].of(metric.value, table)
