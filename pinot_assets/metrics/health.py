"""The answers of the standing health checks, of OFFLINE and REALTIME tables alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pinot_assets.health import CheckResult, Severity, leftovers
from pinot_assets.metrics.family import Sample, gauge, seconds

CHECK_FAILED = gauge(
    "health_check_failed", "1 while a health check fails, by how bad that is.", "check", "severity"
)
CHECK_UNKNOWN = gauge("health_check_unknown", "1 while a health check cannot be made.", "check")
ORPHANS = gauge("orphans", "What nothing refers to any more, by what it is.", "kind")
ORPHAN_BYTES = gauge("orphan_staged_bytes", "Bytes of staged objects that nothing refers to any more.")
ROLLBACK_UNTIL = gauge(
    "rollback_window_end_timestamp_seconds",
    "Until when the newest switch can be reverted; absent when it cannot.",
)

FAMILIES = (CHECK_FAILED, CHECK_UNKNOWN, ORPHANS, ORPHAN_BYTES, ROLLBACK_UNTIL)

_ORPHANS: Mapping[str, str] = {
    "segments_visible": "visible_segment",
    "segments_hidden": "hidden_segment",
    "session_nodes": "session_node",
    "staged_objects": "staged_object",
}
"""Numbers of the check `orphans`, and the label's value."""


def health_samples(table: str, answers: Iterable[CheckResult]) -> Iterator[Sample]:
    """Both severities of every check that could be made, so that none that heals goes on burning."""
    for answer in answers:
        yield CHECK_UNKNOWN.of(not answer.known, table, answer.name)
        if not answer.known:
            continue
        for severity in Severity:
            fails = not answer.passed and answer.severity is severity
            yield CHECK_FAILED.of(fails, table, answer.name, severity.value.lower())
        if answer.name == leftovers.orphans.name:
            yield from _orphans(table, answer.numbers)


def _orphans(table: str, numbers: Mapping[str, float]) -> Iterator[Sample]:
    yield from (ORPHANS.of(numbers[name], table, kind) for name, kind in _ORPHANS.items())
    yield ORPHAN_BYTES.of(numbers["staged_bytes"], table)


def rollback_sample(table: str, switched_ms: int, window_ms: int) -> Sample:
    """:param switched_ms: when the newest switch was, by its lineage entry.
    :param window_ms: how long this Pinot lets it be reverted.
    """
    return ROLLBACK_UNTIL.of(seconds(switched_ms + window_ms), table)
