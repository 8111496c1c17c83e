"""What the source holds beside what is published; needs a listing, so it is looked at seldom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pinot_assets.health.readings import SourceDifference
from pinot_assets.metrics.family import Sample, gauge, seconds

LISTED = gauge("source_files", "Files in the source that count: listed and ready.")
CHANGES = gauge("source_changes", "Files that differ from what is published, by how.", "change")
NOT_READY = gauge("source_files_not_ready", "Files that are being written, or whose marker is missing.")
OLDEST_UNREADY = gauge(
    "oldest_unready_timestamp_seconds",
    "When the oldest file that is not ready was last written; absent when that is not known of any.",
)
LEFT_OUT = gauge(
    "source_files_left_out", "Files that the last session ended without, and that are there as they were."
)
OLDEST = gauge(
    "oldest_change_timestamp_seconds",
    "Since when the oldest new or rewritten file waits to be published; absent when none waits.",
)

FAMILIES = (LISTED, CHANGES, NOT_READY, OLDEST_UNREADY, LEFT_OUT, OLDEST)


def source_samples(
    table: str,
    found: SourceDifference,
    modified_ms: Mapping[str, int],
    unready_ms: Mapping[str, int],
    published_ms: int | None,
) -> Iterator[Sample]:
    """:param modified_ms: when each of `found.waiting` was last written, epoch milliseconds by URI.
    :param unready_ms: the same of files that are not ready, as far as it is known.
    :param published_ms: when the snapshot was; neither waits for longer than that, as a copy may keep an old
        date (`health.freshness` says the same).
    """
    yield LISTED.of(found.listed, table)
    yield CHANGES.of(len(found.missing), table, "new")
    yield CHANGES.of(len(found.stale), table, "rewritten")
    yield CHANGES.of(len(found.extra), table, "deleted")
    yield NOT_READY.of(found.unready, table)
    if unready_ms:
        yield OLDEST_UNREADY.of(seconds(max(min(unready_ms.values()), published_ms or 0)), table)
    if found.waiting:
        oldest = min(modified_ms[uri] for uri in found.waiting)
        yield OLDEST.of(seconds(max(oldest, published_ms or 0)), table)
