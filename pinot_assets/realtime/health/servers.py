"""The servers of a table: dead, disabled, or stuck in STARTING. Pure."""

from __future__ import annotations

from pinot_assets.core.check_result import (
    CheckProblem,
    CheckResult,
    Severity,
    check_result_of,
    megabytes,
    some,
)
from pinot_assets.core.text import counted, plural, plural_are
from pinot_assets.realtime.health.advice import repair_plan
from pinot_assets.realtime.model.names import files_named, upload_of
from pinot_assets.realtime.model.state import RealtimeState, SegmentStatus, Server, TmpUpload

SERVERS = "servers"
TMP_UPLOADS = "tmp_uploads"

TMP_KEPT_MS = 3_600_000
"""Pinot's own age for removing them, where it does (`tmpFileRetentionInSeconds`)."""


def servers(state: RealtimeState) -> CheckResult:
    """Every server lives, is enabled and serves."""
    every = sorted(state.servers.values(), key=lambda server: server.name)
    dead = [server for server in every if not server.alive]
    starting = [server for server in every if server.alive and server.ready is False]
    disabled = [server.name for server in every if server.alive and not server.enabled]
    problems = []
    if dead:
        told = some([f"{server.name}{_since(state, server)}" for server in dead])
        problems.append(
            CheckProblem(
                f"{plural_are(len(dead), 'server')} dead: {told}", "start them again", Severity.ERROR
            )
        )
    if starting:
        told = some([f"{server.name}{_since(state, server)}" for server in starting])
        limit = state.cluster.startup_timeout_s
        long = [s for s in starting if s.since_ms is not None and state.read_ms - s.since_ms > limit * 1000]
        text = f"{plural_are(len(starting), 'server')} STARTING, serving no table: {told}"
        if state.settings.pauseless and any(s.status is SegmentStatus.COMMITTING for s in state.segments):
            text += (
                "; they may wait for a COMMITTING segment that nobody has, "
                f"{state.settings.download_timeout_s} s for each"
            )
        problems.append(
            CheckProblem(
                text,
                f"they give up waiting after {limit} s (pinot.server.startup.timeoutMs); "
                "lower realtime.segment.pauseless.download.timeoutSeconds of the table, and restart one",
                Severity.ERROR if long or len(starting) + len(dead) == len(every) else Severity.WARN,
            )
        )
    if disabled:
        problems.append(
            CheckProblem(
                f"{plural_are(len(disabled), 'server')} disabled: {some(disabled)}",
                "POST /instances/<name>/state with ENABLE, if that is not meant",
            )
        )
    if "ready" in state.unread:
        problems.append(
            CheckProblem(f"not known whether they serve: {state.unread['ready']}", "is the admin port open?")
        )
    serving = len(every) - len({*(s.name for s in (*dead, *starting)), *disabled})
    return check_result_of(
        SERVERS,
        problems,
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


def _since(state: RealtimeState, server: Server) -> str:
    if server.since_ms is None:
        return ""
    return f" (for {max(0, state.read_ms - server.since_ms) / 1000:,.0f} s)"


def tmp_uploads(state: RealtimeState) -> CheckResult:
    """No upload lies in the deep store that was never moved to its place, and that no segment names."""
    named = files_named(segment.url for segment in state.segments)
    orphans = [one for one in state.tmp_uploads if one.name not in named]
    old = [one for one in orphans if state.read_ms - one.modified_ms > TMP_KEPT_MS]
    size = sum(one.size_bytes for one in old)
    problem = CheckProblem(
        f"{plural(len(old), 'upload')} never moved into place, {megabytes(size)} "
        f"({some(sorted(one.name for one in old))})",
        f"{_who_deletes(state, old)}, or set controller.realtime.segment.tmpFileAsyncDeletionEnabled",
    )
    return check_result_of(
        TMP_UPLOADS,
        [problem] if old else [],
        expected=0,
        found=len(old),
        good="no upload was left behind" + (f"; {len(orphans)} are under way" if orphans else ""),
        numbers={"tmp_uploads": len(old), "tmp_uploads_bytes": size},
    )


def _who_deletes(state: RealtimeState, left: list[TmpUpload]) -> str:
    """A repair deletes none of a segment that is gone: it may be all that there is of it."""
    there = {segment.name for segment in state.segments}
    if any(upload_of(one.name) in there for one in left):
        return repair_plan(state)
    return "their segments are gone: delete them by hand"
