"""Samples of one look at a table: the results of its health checks, and how the source differs from what is
published. The latter lists the source, so such a look is rare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from pinot_assets.errors import PinotAssetsError
from pinot_assets.health import CheckResult, Severity, examine, leftovers, packs, serving
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.metrics.family import Sample, gauge, seconds
from pinot_assets.table_spec import label_of

LISTED = gauge("source_files", "Files of the source that are listed and ready.")
CHANGES = gauge(
    "source_changes", "Files that differ from what is published, by kind of difference.", "change"
)
NOT_READY = gauge("source_files_not_ready", "Files that are still being written, or whose marker is missing.")
OLDEST_UNREADY = gauge(
    "oldest_unready_timestamp_seconds",
    "When the oldest file that is not ready was last written; absent if unknown.",
)
LEFT_OUT = gauge(
    "source_files_left_out", "Files that the last session left out, and that have not changed since."
)
OLDEST = gauge(
    "oldest_change_timestamp_seconds",
    "When the oldest waiting file was new or rewritten; absent when none waits.",
)
CHECK_FAILED = gauge("health_check_failed", "1 while a health check fails, by severity.", "check", "severity")
CHECK_UNKNOWN = gauge("health_check_unknown", "1 while the result of a health check is not known.", "check")
ORPHANS = gauge("orphans", "Things that nothing refers to any more, by kind.", "kind")
ORPHAN_BYTES = gauge("orphan_staged_bytes", "Bytes of staged objects that nothing refers to any more.")
PACKS = gauge(
    "packs",
    "Packs of the newest snapshot, by kind: all; open, so small that they are merged (those of the cell that "
    "has most); lost, whose kept rows are missing.",
    "kind",
)
ROLLBACK_UNTIL = gauge(
    "rollback_window_end_timestamp_seconds",
    "Until when the newest switch can be reverted; absent when it cannot.",
)

_ORPHANS: Mapping[str, str] = {
    "segments_visible": "visible_segment",
    "segments_hidden": "hidden_segment",
    "session_nodes": "session_node",
    "staged_objects": "staged_object",
}
"""Name of a number of the check `orphans` -> value of the label `kind`."""
_PACKS: Mapping[str, str] = {"packs": "all", "packs_open": "open", "packs_lost": "lost"}
"""The same of the check `packs`; a table without packs has no such number."""


def health_samples(table: str, answers: Iterable[CheckResult]) -> Iterator[Sample]:
    """Yield both severities of every check that could be made, so that the alert of a healed check ends."""
    for answer in answers:
        yield CHECK_UNKNOWN.of(not answer.known, table, answer.name)
        if not answer.known:
            continue
        for severity in Severity:
            fails = not answer.passed and answer.severity is severity
            yield CHECK_FAILED.of(fails, table, answer.name, severity.value.lower())
        if answer.name == leftovers.orphans.name:
            yield from (ORPHANS.of(answer.numbers[name], table, kind) for name, kind in _ORPHANS.items())
            yield ORPHAN_BYTES.of(answer.numbers["staged_bytes"], table)
        if answer.name == packs.packs.name:
            named = ((answer.numbers.get(name), kind) for name, kind in _PACKS.items())
            yield from (PACKS.of(number, table, kind) for number, kind in named if number is not None)


def source_samples(table: str, probe: TableProbe) -> Iterator[Sample]:
    """Yield how the source differs from what is published.

    No change and no file that is not ready counts as waiting since before the snapshot was published, as a
    copied file may keep an old date (`health.source.freshness` does the same).
    """
    # All readings come first: if one fails, all samples are left out, not only the later ones.
    difference, modified_ms, unready_ms = (
        probe.difference(),
        probe.waiting_since_ms(),
        probe.unready_since_ms(),
    )
    snapshot = probe.snapshot()
    published_ms = snapshot.published_ms if snapshot else 0
    yield LISTED.of(difference.listed, table)
    yield CHANGES.of(len(difference.missing), table, "new")
    yield CHANGES.of(len(difference.stale), table, "rewritten")
    yield CHANGES.of(len(difference.extra), table, "deleted")
    yield NOT_READY.of(difference.unready, table)
    if unready_ms:
        yield OLDEST_UNREADY.of(seconds(max(min(unready_ms.values()), published_ms)), table)
    if difference.waiting:
        oldest = min(modified_ms[uri] for uri in difference.waiting)
        yield OLDEST.of(seconds(max(oldest, published_ms)), table)


def samples_of_probe(probe: TableProbe) -> list[Sample]:
    """Return the samples of one look; a reading that failed shows in the checks that need it."""
    table, answers = label_of(probe.spec), examine(probe)
    samples = [*health_samples(table, answers)]
    with suppress(PinotAssetsError):
        samples += source_samples(table, probe)
    with suppress(PinotAssetsError):
        samples.append(LEFT_OUT.of(len(probe.left_out()), table))
    if any(answer.name == serving.rollback_window.name and answer.found > 0 for answer in answers):
        samples.append(rollback_sample(table, probe))
    return samples


def rollback_sample(table: str, probe: TableProbe) -> Sample:
    """Return the end of the rollback window. The check found time left, so all of this can be read."""
    snapshot = probe.snapshot()
    assert snapshot is not None
    entry = probe.lineage().get(snapshot.lineage_entry_id)
    switched_ms = entry.timestamp_ms if entry else snapshot.published_ms
    return ROLLBACK_UNTIL.of(seconds(switched_ms + probe.revert_window_ms()), table)
