"""Rules about time: what Pinot allows, and what this cluster needs.

Source: docs/design/realtime.md#s2, #s5 and #s7.
"""

from __future__ import annotations

from typing import Final

from pinot_assets.core.check_result import CheckResult
from pinot_assets.realtime.preflight.facts import Aim, Facts, Rule, passed, refuse, rule, warn

COMMIT_START_LIMIT_S: Final = 10.0
"""What a server waits for an answer to commitStart; not configurable (docs/design/realtime.md#t-17885)."""
COMMIT_LIMIT_S: Final = 300.0
"""From commitStart to commitEnd; not configurable up to 1.5.1 (docs/design/realtime.md#t-17936)."""
SLOW_COMMIT_BYTES_PER_S: Final = 7_500_000
"""2 GB were built in 3.5 min and uploaded in 1 (docs/design/realtime.md#t-17936)."""
_HOUR_MS: Final = 3_600_000


@rule(Aim.PAUSELESS, needs=("commit_start",))
def commit_start(facts: Facts) -> CheckResult:
    """The writes happen, the server does not hear of it, and nobody builds the segment.

    Source: docs/design/realtime.md#t-17885.
    """
    found = facts.commit_start
    if found is None:
        return warn("no commit has been seen yet", "look again when the table has committed a segment")
    told = f"commitStart takes {found.seconds:.2f} s of the {COMMIT_START_LIMIT_S:.0f} s ({found.how})"
    if found.seconds >= COMMIT_START_LIMIT_S / 2:
        return _too_slow(
            facts,
            f"{told}: beyond it the segment is built by nobody and ends in ERROR on all replicas",
            "fewer segments in the ideal state (larger ones, or a shorter retention), or a faster ZooKeeper",
        )
    if found.seconds >= COMMIT_START_LIMIT_S / 5:
        return warn(told, "watch it: it grows with the ideal state")
    return passed(told)


@rule(Aim.PAUSELESS, needs=("commit_times",))
def build_and_upload(facts: Facts) -> CheckResult:
    """The commit's end is refused later than 300 s after its start (docs/design/realtime.md#window-300)."""
    times = facts.commit_times
    if times is None:
        return warn("no commit has been seen yet", "look again when the table has committed a segment")
    seconds, how = times.seconds, "the slowest commit"
    if seconds is None:
        seconds = times.largest_bytes / SLOW_COMMIT_BYTES_PER_S
        how = f"the largest segment has {times.largest_bytes / 1e6:.0f} MB, at 7.5 MB/s"
    told = f"build and upload take about {seconds:.0f} s of the {COMMIT_LIMIT_S:.0f} s ({how})"
    fix = "smaller segments: flushThresholdSegmentSize or flushThresholdRows"
    if seconds >= COMMIT_LIMIT_S:
        return _too_slow(facts, f"{told}: each commit would wait for a repair", fix)
    if times.late:
        late = (
            f"{times.late} of the newest segments were written later than that: by repairs, or changed since"
        )
        return warn(f"{told}; {late}", f"see whether it was repairs; {fix}")
    return warn(told, fix) if seconds >= COMMIT_LIMIT_S / 2 else passed(told)


def _too_slow(facts: Facts, reason: str, fix: str) -> CheckResult:
    """What a table does already is told: the change may be the very one that mends it."""
    does_already = facts.held is not None and facts.held.pauseless
    return warn(reason, fix) if does_already else refuse(reason, fix)


@rule(Aim.BYPASS, Aim.PAUSELESS, needs=("retention",))
def stream_retention(facts: Facts) -> CheckResult:
    """Re-ingestion leaves out what has expired, without an error (docs/design/realtime.md#s7)."""
    kept = facts.retention
    if kept is None:
        return passed("the table has no stream")
    needed = facts.flush_ms + 1000 * facts.worst_repair_s
    is_short = kept.ms is not None and kept.ms < needed
    if kept.compacted and not is_short:  # one that deletes as well may do that too soon, which is worse
        return warn(
            "the topic is compacted: a segment that is read again has fewer rows than it had",
            "a topic with cleanup.policy=delete",
        )
    if kept.ms is None and kept.bytes_per_partition is None:
        return passed("the stream keeps everything")
    if kept.ms is None:
        return _cut_by_size(facts)
    told = (
        f"the stream keeps {kept.ms / _HOUR_MS:.1f} h; {facts.flush_ms / _HOUR_MS:.1f} h until a commit and "
        f"{facts.worst_repair_s / 3600:.1f} h until a repair make {needed / _HOUR_MS:.1f} h"
    )
    fix = "a longer retention of the topic, a shorter flushThresholdTime, or a faster repair"
    if is_short:
        if facts.pauseless:
            return refuse(
                f"{told}: a segment that no server has would come back short, without an error", fix
            )
        return warn(told, fix)
    return _cut_by_size(facts) if kept.bytes_per_partition is not None else passed(told)


def _cut_by_size(facts: Facts) -> CheckResult:
    assert facts.retention is not None
    assert facts.retention.bytes_per_partition is not None
    return warn(
        f"the topic is cut at {facts.retention.bytes_per_partition / 1e9:.1f} GB a partition too, which "
        "may be sooner than its time",
        f"see to it that a partition holds {(facts.flush_ms / 1000 + facts.worst_repair_s) / 3600:.0f} h "
        "of rows",
    )


RULES: Final[tuple[Rule, ...]] = (commit_start, build_and_upload, stream_retention)
"""In the order in which they are answered."""
