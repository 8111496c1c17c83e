"""Checks of servers (dead, disabled, or stuck in STARTING) and of queries: whether they see every row. Pure.

From 1.0 on, a broker silently leaves out a segment that it counts as new and routes to a dead server, without
an exception and without `partialResult`: usually for 300 s, sometimes until the server is back (measured on
1.5.1; 0.11.0 answers in full).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.version import Version

from pinot_assets.core.check_result import (
    CheckProblem,
    CheckResult,
    Severity,
    megabytes,
    problem_if,
    result_of,
    some,
    unknown,
)
from pinot_assets.core.text import counted, plural, plural_are
from pinot_assets.pinot.versions import release
from pinot_assets.realtime.health.check import check, repair_plan
from pinot_assets.realtime.health.recovery import ERROR, offset
from pinot_assets.realtime.model.state import (
    ROUTED_MS,
    SETTLED_MS,
    LlcSegment,
    RealtimeState,
    Replica,
    SegmentStatus,
    Server,
    TmpUpload,
    files_named,
    upload_of,
)

_LEAVES_OUT = Version("1.0")


@check("Every broker finds every row that was committed or consumed.", "segments")
def answers(state: RealtimeState) -> CheckResult:
    """Every broker finds every row that was committed, and those that were consumed."""
    silent = state.unread.get("answered")
    if not state.answered:
        return unknown("", silent or "the table has no broker", "are its brokers up?", Severity.WARN)
    expected = dict(_expected(state))
    total = sum(expected.values())
    problems: list[CheckProblem] = []
    worst = 0
    for broker, rows in sorted(state.answered.items()):
        short = {
            name: count - rows.get(name, 0) for name, count in expected.items() if count > rows.get(name, 0)
        }
        missing = sum(short.values())
        worst = max(worst, missing)
        problems += problem_if(
            short,
            f"{broker} leaves out {plural(missing, 'row')} ({100 * missing / max(1, total):.1f} %) of "
            f"{some(sorted(short))}, without an error",
            _next_step(state),
            Severity.ERROR,
        )
    problems += problem_if(silent, f"the answers are not known: {silent}", "is that broker up? Read its log")
    least = min(state.queryable.values())
    return result_of(
        problems,
        expected=total,
        found=total - worst,
        good=f"{counted(len(state.answered), 'broker finds', 'brokers find')} {plural(least, 'row')}; "
        f"the table has at least {total:,}",
        numbers={"rows_expected": total, "rows_left_out": worst, "brokers_asked": len(state.answered)},
    )


def _next_step(state: RealtimeState) -> str:
    dead = sorted(name for name, server in state.servers.items() if not server.alive)
    wait = f"wait {state.cluster.new_segment_expiration_s} s (pinot.broker.new.segment.expiration.seconds)"
    return f"start {some(dead)} again, or {wait}" if dead else f"{wait}; then rebuild that broker's routing"


def _expected(state: RealtimeState) -> Iterator[tuple[str, int]]:
    """Yield, by segment, the rows that a query must find: never more than exist."""
    whole = dense(state)
    consumed = _least_consumed(state)
    for segment in state.segments:
        if not segment.in_ideal_state or segment.status is None or not state.is_older(segment, ROUTED_MS):
            continue
        start = offset(segment.start_offset)
        is_committing = segment.status is SegmentStatus.COMMITTING
        end = offset(segment.end_offset) if is_committing else consumed.get(segment.name)
        rows = 0 if start is None or end is None else end - start
        if segment.completed:
            rows = segment.total_docs or 0
        if rows <= 0:
            continue
        # Not every offset is a row (transactions, compaction, filters), but some offset must be one.
        if segment.completed:
            yield segment.name, rows
        elif not state.settings.drops_rows:
            yield segment.name, rows if segment.partition in whole else 1
        elif any(rows_found.get(segment.name) for rows_found in state.answered.values()):
            # The table itself may have dropped all of them. But what one broker finds, all must find.
            yield segment.name, 1


def _least_consumed(state: RealtimeState) -> Mapping[str, int]:
    """Return the next offset of the replica that is furthest behind, as a broker may ask that one."""
    least: dict[str, int] = {}
    for one in state.consumption:
        if one.offset is not None:
            least[one.segment] = min(one.offset, least.get(one.segment, one.offset))
    return least


def dense(state: RealtimeState) -> frozenset[int]:
    """Return the partitions in which every committed offset became a row."""
    by_partition: dict[int, bool] = {}
    for segment in state.segments:
        start, end = offset(segment.start_offset), offset(segment.end_offset)
        if segment.status is SegmentStatus.DONE and start is not None and end is not None:
            whole = segment.total_docs == end - start
            by_partition[segment.partition] = by_partition.get(segment.partition, True) and whole
    return frozenset(partition for partition, whole in by_partition.items() if whole)


@check("No segment that brokers treat as new is assigned to a dead server.", "segments", "servers")
def new_segments_on_dead_servers(state: RealtimeState) -> CheckResult:
    """No segment that brokers may count as new is assigned to a server that does not serve."""
    has_gap = release(state.cluster.version) >= _LEAVES_OUT
    at_risk = [
        (segment, replica.server)
        for segment in (state.segments if has_gap else ())
        for replica in segment.replicas
        if _may_be_left_out(state, segment, replica)
    ]
    servers = sorted({server for _, server in at_risk})
    names = sorted({segment.name for segment, _ in at_risk})
    return result_of(
        problem_if(
            at_risk,
            f"{counted(len(names), 'segment was', 'segments were')} made while {some(servers)} "
            f"died, or just before: queries may leave them out without an error ({some(names)})",
            _next_step(state),
            Severity.ERROR,
        ),
        expected=0,
        found=len(names),
        good="no new segment is assigned to a dead server" if has_gap else "this Pinot leaves out none",
        numbers={"new_segments_on_dead_servers": len(names)},
    )


def _may_be_left_out(state: RealtimeState, segment: LlcSegment, replica: Replica) -> bool:
    """Return whether brokers may leave the replica out (`BaseInstanceSelector`): a segment is new until each
    replica was served once, one is in ERROR, or its time is over when the table's states next change."""
    server = state.servers.get(replica.server)
    if (
        server is None
        or server.serves
        or replica.ideal is None
        or replica.external in ("ONLINE", "CONSUMING")
        or segment.in_state(ERROR)
    ):
        return False
    if not server.alive and server.since_ms is not None:
        return segment.created_ms >= server.since_ms - SETTLED_MS
    return state.read_ms - segment.created_ms < state.cluster.new_segment_expiration_s * 1000


TMP_KEPT_MS = 3_600_000
"""The age at which Pinot removes them, where it does (`tmpFileRetentionInSeconds`)."""


@check("Every server lives, is enabled and serves.", "servers")
def servers(state: RealtimeState) -> CheckResult:
    """Every server lives, is enabled and serves."""
    every = sorted(state.servers.values(), key=lambda server: server.name)
    dead = [server for server in every if not server.alive]
    starting = [server for server in every if server.alive and server.ready is False]
    disabled = [server.name for server in every if server.alive and not server.enabled]
    limit, unread = state.cluster.startup_timeout_s, state.unread.get("ready")
    long = [s for s in starting if s.since_ms is not None and state.read_ms - s.since_ms > limit * 1000]
    serving = len(every) - len({*(s.name for s in (*dead, *starting)), *disabled})
    return result_of(
        [
            *problem_if(
                dead,
                f"{plural_are(len(dead), 'server')} dead: {_since(state, dead)}",
                "start them again",
                Severity.ERROR,
            ),
            *problem_if(
                starting,
                f"{plural_are(len(starting), 'server')} STARTING, serving no table: {_since(state, starting)}"
                + _waiting(state),
                f"they give up waiting after {limit} s (pinot.server.startup.timeoutMs); "
                "lower realtime.segment.pauseless.download.timeoutSeconds of the table, and restart one",
                Severity.ERROR if long or len(starting) + len(dead) == len(every) else Severity.WARN,
            ),
            *problem_if(
                disabled,
                f"{plural_are(len(disabled), 'server')} disabled: {some(disabled)}",
                "POST /instances/<name>/state with ENABLE, if that is not intended",
            ),
            *problem_if(unread, f"it is not known whether they serve: {unread}", "is the admin port open?"),
        ],
        expected=len(every),
        found=serving,
        good=counted(serving, "server serves", "servers serve"),
        numbers={
            "servers": len(every),
            "servers_dead": len(dead),
            "servers_starting": len(starting),
            "servers_disabled": len(disabled),
        },
    )


def _since(state: RealtimeState, servers: list[Server]) -> str:
    return some(
        [
            server.name
            if server.since_ms is None
            else f"{server.name} (for {max(0, state.read_ms - server.since_ms) / 1000:,.0f} s)"
            for server in servers
        ]
    )


def _waiting(state: RealtimeState) -> str:
    """Return what a starting server may wait for; empty for nothing."""
    committing = any(segment.status is SegmentStatus.COMMITTING for segment in state.segments)
    if not state.settings.pauseless or not committing:
        return ""
    return (
        "; they may wait for a COMMITTING segment that no server has, "
        f"{state.settings.download_timeout_s} s for each"
    )


@check("No upload in the deep store was left behind before it was moved to its place.", "tmp_uploads")
def tmp_uploads(state: RealtimeState) -> CheckResult:
    """The deep store has no old upload that was never moved into place and that no segment names."""
    named = files_named(segment.url for segment in state.segments)
    orphans = [one for one in state.tmp_uploads if one.name not in named]
    old = [one for one in orphans if state.read_ms - one.modified_ms > TMP_KEPT_MS]
    size = sum(one.size_bytes for one in old)
    return result_of(
        problem_if(
            old,
            f"{counted(len(old), 'upload was', 'uploads were')} never moved into place, "
            f"{megabytes(size)} ({some(sorted(one.name for one in old))})",
            f"{_who_deletes(state, old)}, or set controller.realtime.segment.tmpFileAsyncDeletionEnabled",
        ),
        expected=0,
        found=len(old),
        good="no upload was left behind"
        + (f"; {counted(len(orphans), 'upload has', 'uploads have')} not ended" if orphans else ""),
        numbers={"tmp_uploads": len(old), "tmp_uploads_bytes": size},
    )


def _who_deletes(state: RealtimeState, left: list[TmpUpload]) -> str:
    """Return who deletes the uploads. A repair keeps one whose segment is gone: it may be the only copy."""
    if any(upload_of(one.name) in state.by_name for one in left):
        return repair_plan(state)
    return "their segments are deleted: delete the uploads by hand"
