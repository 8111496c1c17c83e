"""Rules about what the table itself says: scheme, replication, streams, order.

Source: docs/design/realtime.md#s5 to #s9.
"""

from __future__ import annotations

from typing import Final

from packaging.version import Version

from pinot_assets.core.check_result import CheckResult
from pinot_assets.pinot.versions import release
from pinot_assets.realtime.preflight.facts import Aim, Facts
from pinot_assets.realtime.preflight.rule import Rule, passed, refuse, rule, warn

PAUSELESS_SINCE: Final = Version("1.4")


@rule(Aim.PAUSELESS)
def version(facts: Facts) -> CheckResult:
    """Older releases take the setting and do nothing with it."""
    found = facts.cluster.version or "a Pinot that names no version"
    if release(facts.cluster.version) < PAUSELESS_SINCE:
        return refuse(
            f"{found} does not know pauseless consumption, which came with {PAUSELESS_SINCE}",
            f"upgrade Pinot to {PAUSELESS_SINCE} or newer; the deep-store bypass works without",
        )
    return passed(f"{found} knows pauseless consumption")


@rule(Aim.BYPASS, Aim.PAUSELESS)
def peer_scheme(facts: Facts) -> CheckResult:
    """`TableConfigUtils.validateValidationConfig` and `validateIngestionConfig`."""
    scheme, copies = facts.wanted.peer_scheme, facts.wanted.replication
    if scheme is None:
        if facts.pauseless and copies == 1:
            return passed("one replica has no peer to take a segment from")
        need = "pauseless consumption of more than one replica" if facts.pauseless else "the bypass"
        return refuse(
            f"{need} needs peerSegmentDownloadScheme: segments are ONLINE before the deep store has them",
            "write peerSegmentDownloadScheme: http in the realtime block",
        )
    if scheme.lower() not in ("http", "https"):
        return refuse(f"{scheme} is no peer scheme", "write http or https")
    if copies < 2:
        return refuse(
            f"Pinot refuses a peer scheme with replication {copies}: there is no peer",
            "write replication 2 or more, or take the scheme away",
        )
    return passed(f"{copies} replicas give each other segments by {scheme}")


@rule(Aim.BYPASS, Aim.PAUSELESS)
def replication(facts: Facts) -> CheckResult:
    """A server that dies before its upload may have the only copy.

    Source: docs/design/realtime.md#rule-replication.
    """
    if facts.wanted.replication > 1:
        return passed(f"replication is {facts.wanted.replication}")
    return warn(
        "replication is 1: a server that dies before its upload takes the only copy along, and Pinot reads "
        "the rows from the stream again, if it still has them",
        "write replication 2 or more",
    )


@rule(Aim.PAUSELESS)
def one_stream(facts: Facts) -> CheckResult:
    """`TableConfigUtils.validateStreamConfigMaps`."""
    count = len(facts.wanted.streams)
    if count > 1:
        return refuse(
            f"the table has {count} streams, and Pinot takes one with pauseless consumption",
            "one stream for each table",
        )
    return passed("one stream")


@rule(Aim.BYPASS, Aim.PAUSELESS)
def completion_mode(facts: Facts) -> CheckResult:
    """The committer dies right after a commit that the deep store did not get.

    Source: docs/design/realtime.md#crash-8.
    """
    if facts.wanted.completion_mode == "DOWNLOAD":
        return warn(
            "completionMode is DOWNLOAD: when the committer dies before its upload, the other replicas throw "
            "their rows away and stay in ERROR until it is back",
            "write completionConfig.completionMode: DEFAULT, so that a replica with the same rows builds "
            "its own",
        )
    return passed("replicas with the same rows build the segment themselves")


@rule(Aim.PAUSELESS)
def read_in_order(facts: Facts) -> CheckResult:
    """`allowRepairOfCommittingSegments`: docs/design/realtime.md#reingest."""
    if not facts.wanted.must_be_read_in_order:
        return passed("a lost segment is read from the stream again by Pinot itself")
    kind = "a dedup" if facts.wanted.dedup else "a partial upsert"
    if facts.wanted.recovery_always or facts.cluster.recovery_always:
        return warn(
            f"disasterRecoveryMode is ALWAYS on {kind} table: a segment that is read again later than its "
            "successors gives wrong rows until the metadata are rebuilt",
            "restart the servers after a re-ingestion, or write disasterRecoveryMode: DEFAULT",
        )
    return warn(
        f"Pinot re-ingests nothing of {kind} table, and as long as one segment is in ERROR it resets no "
        "other either: each loss waits for a person",
        "know the runbook (docs/guides/realtime.md, bulk delete), or write disasterRecoveryMode: ALWAYS",
    )


@rule(Aim.PAUSELESS, needs=("consistency_mode",))
def way_out(facts: Facts) -> CheckResult:
    """Pause and force commit, which turning pauseless off begins with (docs/design/realtime.md#s8)."""
    ordered = facts.wanted.upsert == "PARTIAL" or facts.wanted.drops_out_of_order
    if ordered and facts.cluster.consistency_mode == "RESTRICTED":
        return warn(
            "this table can be neither paused nor force-committed while "
            "pinot.server.consuming.segment.consistency.mode is RESTRICTED, so pauseless consumption "
            "cannot be drained",
            "set it to PROTECTED in the cluster config before pauseless consumption has to be turned off",
        )
    return passed("the table can be paused and force-committed")


@rule(needs=("offline",))
def refresh_in_place(facts: Facts) -> CheckResult:
    """Two servers with the old version give it to each other for the new one.

    Source: docs/design/realtime.md#rule-refresh-in-place.
    """
    half = facts.offline
    if half is None or half.peer_scheme is None:
        return passed("no OFFLINE table of this name takes segments from peers")
    if not half.refresh:
        return passed("the OFFLINE half takes segments from peers, and none of them is replaced in place")
    return refuse(
        "the OFFLINE half has a peer scheme and is REFRESH: a server that misses the new version of a "
        "segment can take the old one from a peer and believe that it is new",
        "take peerSegmentDownloadScheme off the OFFLINE table",
    )


RULES: Final[tuple[Rule, ...]] = (
    version,
    peer_scheme,
    replication,
    one_stream,
    completion_mode,
    read_in_order,
    way_out,
    refresh_in_place,
)
"""In the order in which they are answered."""
