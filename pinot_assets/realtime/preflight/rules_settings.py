"""Rules about settings: of the table (scheme, replication, streams, order), and of controllers, servers and
brokers.

Source: docs/design/realtime.md#s2 and #s5 to #s9.
"""

from __future__ import annotations

from typing import Final

from packaging.version import Version

from pinot_assets.core.check_result import CheckResult, some
from pinot_assets.pinot.versions import release
from pinot_assets.realtime.preflight.facts import Aim, Facts, Rule, passed, refuse, rule, warn

PAUSELESS_SINCE: Final = Version("1.4")


@rule(Aim.PAUSELESS)
def version(facts: Facts) -> CheckResult:
    """Older releases accept the setting and ignore it."""
    name = facts.cluster.version or "a Pinot that names no version"
    if release(facts.cluster.version) < PAUSELESS_SINCE:
        return refuse(
            f"{name} does not know pauseless consumption, which came with {PAUSELESS_SINCE}",
            f"upgrade Pinot to {PAUSELESS_SINCE} or newer; the deep-store bypass works without it",
        )
    return passed(f"{name} knows pauseless consumption")


@rule(Aim.BYPASS, Aim.PAUSELESS)
def peer_scheme(facts: Facts) -> CheckResult:
    """Source: `TableConfigUtils.validateValidationConfig` and `validateIngestionConfig`."""
    scheme, copies = facts.target.peer_scheme, facts.target.replication
    if scheme is None:
        if facts.pauseless and copies == 1:
            return passed("with one replica there is no peer to load a segment from")
        need = "pauseless consumption of more than one replica" if facts.pauseless else "the bypass"
        return refuse(
            f"{need} needs peerSegmentDownloadScheme: segments are ONLINE before the deep store has them",
            "write peerSegmentDownloadScheme: http in the realtime block",
        )
    if scheme.lower() not in ("http", "https"):
        return refuse(f"{scheme} is not a peer scheme", "write http or https")
    if copies < 2:
        return refuse(
            f"Pinot refuses a peer scheme with replication {copies}: there is no peer",
            "write replication 2 or more, or remove the scheme",
        )
    return passed(f"{copies} replicas send each other segments by {scheme}")


@rule(Aim.BYPASS, Aim.PAUSELESS)
def replication(facts: Facts) -> CheckResult:
    """A server that dies before its upload may have the only copy.

    Source: docs/design/realtime.md#rule-replication.
    """
    if facts.target.replication > 1:
        return passed(f"replication is {facts.target.replication}")
    return warn(
        "replication is 1: a server that dies before its upload loses the only copy, and Pinot "
        "reads the rows from the stream again, if the stream still has them",
        "write replication 2 or more",
    )


@rule(Aim.PAUSELESS)
def one_stream(facts: Facts) -> CheckResult:
    """Source: `TableConfigUtils.validateStreamConfigMaps`."""
    count = len(facts.target.streams)
    if count > 1:
        return refuse(
            f"the table has {count} streams, and Pinot takes one with pauseless consumption",
            "use one stream for each table",
        )
    return passed("one stream")


@rule(Aim.BYPASS, Aim.PAUSELESS)
def completion_mode(facts: Facts) -> CheckResult:
    """With DOWNLOAD, rows are missing if the committer dies right after a commit past the deep store.

    Source: docs/design/realtime.md#crash-8.
    """
    if facts.target.completion_mode == "DOWNLOAD":
        return warn(
            "completionMode is DOWNLOAD: when the committer dies before its upload, the other "
            "replicas drop their rows and stay in ERROR until it is back",
            "write completionConfig.completionMode: DEFAULT, so that a replica with the same rows builds "
            "its own",
        )
    return passed("replicas with the same rows build the segment themselves")


@rule(Aim.PAUSELESS)
def read_in_order(facts: Facts) -> CheckResult:
    """Source: `allowRepairOfCommittingSegments`, docs/design/realtime.md#reingest."""
    if not facts.target.must_be_read_in_order:
        return passed("Pinot itself reads a lost segment from the stream again")
    kind = "a dedup" if facts.target.dedup else "a partial upsert"
    if facts.target.recovery_always or facts.cluster.recovery_always:
        return warn(
            f"disasterRecoveryMode is ALWAYS on {kind} table: a segment that is read again later than its "
            "successors gives wrong rows until the metadata are rebuilt",
            "restart the servers after a re-ingestion, or write disasterRecoveryMode: DEFAULT",
        )
    return warn(
        f"Pinot re-ingests nothing of {kind} table, and while one segment is in ERROR it resets "
        "no other either: each loss needs a person",
        "read the runbook (docs/guides/realtime.md, bulk delete), or write disasterRecoveryMode: ALWAYS",
    )


@rule(Aim.PAUSELESS, needs=("consistency_mode",))
def way_out(facts: Facts) -> CheckResult:
    """Turning pauseless off begins with a pause and a forced commit (docs/design/realtime.md#s8)."""
    ordered = facts.target.upsert == "PARTIAL" or facts.target.drops_out_of_order
    if ordered and facts.cluster.consistency_mode == "RESTRICTED":
        return warn(
            "this table can be neither paused nor force-committed while "
            "pinot.server.consuming.segment.consistency.mode is RESTRICTED, so pauseless "
            "consumption cannot be drained",
            "set it to PROTECTED in the cluster config before pauseless consumption has to be turned off",
        )
    return passed("the table can be paused and force-committed")


@rule(needs=("offline",))
def refresh_in_place(facts: Facts) -> CheckResult:
    """Two servers with the old version of a segment could load it from each other as the new one.

    Source: docs/design/realtime.md#rule-refresh-in-place.
    """
    half = facts.offline
    if half is None or half.peer_scheme is None:
        return passed("no OFFLINE table of this name loads segments from peers")
    if not half.refresh:
        return passed("the OFFLINE half loads segments from peers, and none of them is replaced in place")
    return refuse(
        "the OFFLINE half has a peer scheme and is REFRESH: a server that misses the new version "
        "of a segment can load the old one from a peer and treat it as new",
        "remove peerSegmentDownloadScheme from the OFFLINE table",
    )


STORE: Final = "pinot.server.instance.segment.store.uri"
DOWNLOAD_WAIT: Final = "realtime.segment.pauseless.download.timeoutSeconds"
UPLOAD_TIMEOUT: Final = "pinot.server.segment.uploader.upload.request.timeout.ms"
_V1: Final = Version("1.0")
_CONFIGURABLE_GRACE: Final = Version("1.3")
_FIXED_UPLOAD_MS: Final = 10_000
"""`PinotFSSegmentUploader.DEFAULT_SEGMENT_UPLOAD_TIMEOUT_MILLIS`: the time-out of 0.x with a peer scheme."""
_COMMIT_LIMIT_MS: Final = 300_000
_NOTIFY_MS: Final = 6_600
"""Milliseconds that an election gives its winner in addition to the commit time."""
_HOUR_S: Final = 3600
_LOOK_S: Final = 30
"""`RealtimeTableDataManager.SLEEP_INTERVAL_MS`: time between a server's looks for a COMMITTING segment."""
_TWO_LOOKS_S: Final = 45
"""The second look is at 30 s; looking itself may take half of that again."""


@rule(Aim.BYPASS, Aim.PAUSELESS, needs=("segment_store", "data_dir"))
def segment_store(facts: Facts) -> CheckResult:
    """The controller moves an upload into place, so servers and controller must use the same store.

    Source: docs/design/realtime.md#s2.
    """
    stores, data_dir = facts.cluster.segment_store, facts.cluster.data_dir
    if without := sorted(server for server, store in stores.items() if not store):
        return refuse(
            f"{some(without)} have no {STORE}: each commit bypasses the deep store, and no lost "
            "segment can be consumed again",
            f"set {STORE}={data_dir or '<controller.data.dir>'} on every server and restart them",
        )
    other = sorted(server for server, store in stores.items() if _place(store) != _place(data_dir))
    if data_dir and other:
        return refuse(
            f"{some(other)} upload to another place than the controller's data dir {data_dir}, "
            "into which the controller has to move what is uploaded",
            f"set {STORE}={data_dir} on every server and restart them",
        )
    if len({_place(store) for store in stores.values()}) > 1:
        return refuse(
            f"servers upload to {len(set(stores.values()))} places; the controller moves uploads "
            "within one place",
            f"set {STORE} to the controller's controller.data.dir on every server and restart them",
        )
    if not data_dir:
        return warn(
            "the controller does not report where it keeps segments: servers may upload to another place",
            f"compare controller.data.dir of the controllers with {STORE} of the servers",
        )
    return passed(f"servers upload to {data_dir}, as the controller does")


@rule(Aim.PAUSELESS)
def server_uploads(facts: Facts) -> CheckResult:
    """Pinot forces it on where there is a peer scheme (docs/design/realtime.md#s2)."""
    if facts.target.peer_scheme is not None or facts.target.server_uploads:
        return passed("servers upload their segments themselves")
    return warn(
        "committed segments pass through the controller: every upload needs it",
        'write realtime.segment.serverUploadToDeepStore: "true" in the stream',
    )


@rule(Aim.BYPASS, Aim.PAUSELESS, needs=("upload_timeout_ms",))
def hanging_store(facts: Facts) -> CheckResult:
    """A commit passes a store that refuses at once, but waits for one that hangs."""
    waits = facts.cluster.upload_timeout_ms
    if release(facts.cluster.version) < _V1:
        return passed(f"a server gives an upload up after {_FIXED_UPLOAD_MS // 1000} s")
    if facts.pauseless:
        build_ms = int(1000 * (facts.commit_times.seconds or 0)) if facts.commit_times else 0
        limit, then = (
            _COMMIT_LIMIT_MS - build_ms,
            "the segment stays COMMITTING until the daily pass or `pinot-assets realtime repair`",
        )
    else:
        limit, then = (
            facts.target.commit_timeout_s * 1000 + _NOTIFY_MS,
            "the election ends before the upload is given up, and consumption stops",
        )
    if waits < limit:
        return passed(f"a server waits at most {waits // 1000} s for a deep store that does not answer")
    return warn(
        f"a server waits {waits // 1000} s for a deep store that does not answer, and after "
        f"{limit // 1000} s {then}",
        f"set {UPLOAD_TIMEOUT}=60000 on every server",
    )


@rule(Aim.BYPASS, Aim.PAUSELESS, needs=("deep_store_upload_retry",))
def back_fill(facts: Facts) -> CheckResult:
    """Missing copies should be uploaded later (docs/design/realtime.md#s6-backfill)."""
    if facts.pauseless:
        return passed("the daily pass of Pinot's validation uploads what is missing in the deep store")
    if facts.cluster.deep_store_upload_retry:
        return passed("the controller has the missing copies uploaded")
    return warn(
        "after an outage Pinot does not upload the segments that bypassed the deep store "
        "(controller.realtime.segment.deepStoreUploadRetryEnabled is false)",
        "set it to true on every controller, or run `pinot-assets realtime repair` after an outage",
    )


@rule(Aim.PAUSELESS, needs=("segment_level_period_s",))
def stuck_commits(facts: Facts) -> CheckResult:
    """Only the daily part of the validation finishes stuck commits (docs/design/realtime.md#v3)."""
    period = facts.cluster.segment_level_period_s
    if period <= _HOUR_S:
        return passed(f"Pinot finishes a stuck commit within {period // 60} min")
    return warn(
        f"Pinot itself finishes a commit whose server died only every {period / _HOUR_S:.0f} h",
        "let the sensor do it (dagster: repairLimit), or set "
        "controller.segment.level.validation.intervalPeriod=1h",
    )


@rule(Aim.PAUSELESS)
def second_look(facts: Facts) -> CheckResult:
    """In `RealtimeTableDataManager.downloadSegment` of 1.4 and newer, no look follows the last sleep."""
    waits = facts.target.download_timeout_s
    if waits > _LOOK_S:
        return passed(f"a server looks every {_LOOK_S} s for a segment that is still being committed")
    return warn(
        f"a server waits {waits} s for a segment that is still being committed, and sleeps so long without "
        "looking again: what was built meanwhile is not seen, and the replica ends in ERROR",
        f'write {DOWNLOAD_WAIT}: "60" in the stream: {_TWO_LOOKS_S} or more, and less than half of '
        f"pinot.server.startup.timeoutMs, which is {facts.cluster.startup_timeout_s} s",
    )


@rule(Aim.PAUSELESS, needs=("startup_timeout_s",))
def servers_come_back(facts: Facts) -> CheckResult:
    """Seen on 1.5.1: both replicas were killed at COMMITTING and restarted with default settings."""
    waits, startup = facts.target.download_timeout_s, facts.cluster.startup_timeout_s
    if waits < startup // 2:
        return passed(f"a restarted server waits at most {waits} s for a segment that no server has")
    return warn(
        f"a server that restarts waits {waits} s for a segment that no server has, STARTING and "
        f"without serving any table; after {startup} s it stops starting",
        f'write {DOWNLOAD_WAIT}: "60" in the stream, never less than {_TWO_LOOKS_S}',
    )


@rule(Aim.BYPASS, Aim.PAUSELESS, needs=("new_segment_expiration_s",))
def silent_answers(facts: Facts) -> CheckResult:
    """Seen on 1.5.1: brokers count segments made while a server is dead as new, and leave them out."""
    version, seconds = release(facts.cluster.version), facts.cluster.new_segment_expiration_s
    if version < _V1:
        return passed("brokers of this release give new segments no grace period")
    if seconds <= 60:
        return passed(f"a broker leaves a missing new segment out for {seconds} s at most")
    watch = "watch the check `answers`"
    return warn(
        f"for {seconds} s and more after a server died, queries can miss new segments without an exception",
        f"set pinot.broker.new.segment.expiration.seconds=60 on every broker, and {watch}"
        if version >= _CONFIGURABLE_GRACE
        else f"{watch}: this release has no setting for it",
    )


@rule(Aim.BYPASS, Aim.PAUSELESS, needs=("admin_ports",))
def admin_ports(facts: Facts) -> CheckResult:
    """Peers use the admin port; this rule asks it from here only (docs/design/realtime.md#s6-download)."""
    shut = {server: why for server, why in facts.admin_ports.items() if why is not None}
    if not facts.admin_ports:
        return warn("Pinot names no server of this table", "start the servers of its tenant and look again")
    if shut:
        server, why = next(iter(sorted(shut.items())))
        return refuse(
            f"{some(sorted(shut))} did not answer on the port that peers use ({server}: {why})",
            "open the admin port between the servers (default 8097; https: adminHttpsPort of the instance)",
        )
    return passed(
        f"{len(facts.admin_ports):,} admin ports answer this machine; whether the servers can "
        "connect to each other is not known"
    )


def _place(uri: str | None) -> str:
    return (uri or "").rstrip("/").removeprefix("file://").removeprefix("file:")


RULES: Final[tuple[Rule, ...]] = (
    version,
    peer_scheme,
    replication,
    one_stream,
    completion_mode,
    read_in_order,
    way_out,
    refresh_in_place,
    segment_store,
    server_uploads,
    hanging_store,
    back_fill,
    stuck_commits,
    second_look,
    servers_come_back,
    silent_answers,
    admin_ports,
)
"""The rules, in the order in which they answer."""
