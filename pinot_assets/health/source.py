"""Checks how the source differs from what is published, for how long, and which files fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pinot_assets.core.check_result import (
    CheckProblem,
    CheckResult,
    Severity,
    base_name,
    hours,
    problem_if,
    result_of,
    some,
)
from pinot_assets.core.text import duration, plural
from pinot_assets.health.check import check
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.session.values.state import utc_text
from pinot_assets.session.values.trouble import has_lasted, so_long

OFTEN = 2
"""Number of attempts after which a file that still fails will not succeed by itself."""


@check("Every listed file is published as it is listed, and no other file is.")
def snapshot_equals_source(probe: TableProbe) -> CheckResult:
    """Every listed file is published in the version that is listed, and no other.

    A table in mode append keeps what is no longer listed.
    """
    table, difference = probe.spec.name, probe.difference()
    run = (
        f"run {table} (`pinot-assets run {table}`); if it has just run, `pinot-assets status {table}` "
        "shows why"
    )
    extra = difference.extra if probe.spec.mode != "append" else ()
    parts = (("missing", difference.missing), ("stale", difference.stale), ("extra", extra))
    same = difference.listed - len(difference.waiting)
    return result_of(
        [
            *(
                CheckProblem(f"{len(uris):,} {what} ({some([base_name(u) for u in uris])})", run)
                for what, uris in parts
                if uris
            ),
            *problem_if(
                difference.held,
                f"{difference.held:,} held back by a rollback",
                f"`pinot-assets resume {table}` ends the hold",
            ),
        ],
        expected=difference.listed,
        found=same,
        good=f"{same:,} of {difference.listed:,} listed files are published as they are",
        numbers={
            "files_missing": len(difference.missing),
            "files_stale": len(difference.stale),
            "files_extra": len(difference.extra),
            "files_held": difference.held,
            "files_unready": difference.unready,
        },
    )


@check("The snapshot and the waiting changes are younger than dagster.freshnessHours.")
def freshness(probe: TableProbe) -> CheckResult:
    """Neither the published snapshot nor an unpublished change is older than the table's owner promised.

    A change is as old as its file, but no older than the snapshot that lacks it: a copy may keep an old date.
    Without a promise (`dagster.freshnessHours`), the check passes and only gives the numbers.
    """
    table, limit_hours = probe.spec.name, probe.spec.dagster.freshness_hours
    snapshot = probe.snapshot()
    published_ms = snapshot.published_ms if snapshot else None
    waiting = probe.waiting_since_ms()
    snapshot_h = hours(probe.now_ms - published_ms) if published_ms is not None else 0.0
    oldest = min(waiting, key=lambda uri: waiting[uri], default=None)
    change_h = hours(probe.now_ms - max(waiting[oldest], published_ms or 0)) if oldest is not None else 0.0
    age = f"published {snapshot_h} h ago" if published_ms is not None else "nothing is published yet"
    change = (
        f"the oldest of {len(waiting):,} waiting changes has waited {change_h} h"
        if waiting
        else "no change waits"
    )
    promised = f"{limit_hours or 0:g} h promised"
    return result_of(
        [
            *problem_if(
                limit_hours is not None and change_h > limit_hours,
                f"{base_name(oldest or '')} has waited {change_h} h to be published, {promised}",
                f"run {table}; if the run fails, `pinot-assets status {table}` shows why",
            ),
            *problem_if(
                limit_hours is not None and snapshot_h > limit_hours,
                f"what queries see was published {snapshot_h} h ago, {promised}",
                "has the source had no new file? Ask who delivers the files, or raise dagster.freshnessHours",
            ),
        ],
        expected=limit_hours or 0,
        found=max(change_h, snapshot_h),
        good=f"{age}, {change}" + ("" if limit_hours is not None else "; no limit is set"),
        numbers={
            "snapshot_age_hours": snapshot_h,
            "oldest_change_hours": change_h,
            "changes_waiting": len(waiting),
        },
    )


@check("No file fails again and again.")
def failing_files(probe: TableProbe) -> CheckResult:
    """No file that fails now has failed in several attempts of the kept sessions.

    Failures that may pass by themselves are judged by how long they last (`session_progress`).
    """
    session = probe.session()
    passing = session is not None and session.trouble_since_ms > 0
    attempts = probe.attempts().values()
    reason = {f.uri: f"{f.code}: {f.reason}" for f in (() if passing else probe.failing_now())}
    times = Counter(uri for failures in attempts for uri in {f.uri for f in failures})
    keep = sorted((uri for uri in reason if times[uri] >= OFTEN), key=lambda uri: (-times[uri], uri))
    described = [f"{base_name(uri)} in {times[uri]} attempts ({reason[uri]})" for uri in keep]
    once = len(reason) - len(keep)
    return result_of(
        problem_if(
            keep,
            f"{plural(len(keep), 'file')} failed again and again: {some(described)}",
            f"correct {base_name(keep[0]) if keep else ''} or delete it, then run {probe.spec.name}; "
            "skipFileIfFailToInitReader leaves unreadable files out",
        ),
        expected=0,
        found=len(keep),
        good="no file fails again and again" + (f"; {once} failed once" if once else ""),
        numbers={
            "files_failing": len(reason),
            "most_attempts": max((times[uri] for uri in reason), default=0),
            "attempts_with_failures": sum(bool(failures) for failures in attempts),
        },
    )


NAME = snapshot_equals_source.name


@dataclass(frozen=True, slots=True)
class Lasting(CheckResult):
    """A result that has not been known for so long that it is an error.

    :ivar since_ms: since when, epoch milliseconds.
    """

    since_ms: int = 0


def lasts(answer: CheckResult, since_ms: int, now_ms: int) -> CheckResult:
    """Return an unknown result as an error once every look has failed for an hour; any other unchanged.

    :param since_ms: when the first of these looks failed, epoch milliseconds.
    """
    if answer.known or not has_lasted(since_ms, now_ms):
        return answer
    return Lasting(
        answer.name,
        False,
        answer.expected,
        answer.found,
        f"{answer.message}; {so_long(since_ms, now_ms)}",
        f"remove the cause ({answer.next_step}); sensors and `watch` then look again",
        Severity.ERROR,
        known=False,
        since_ms=since_ms,
    )


def seen_again(since_ms: int, now_ms: int, summary: str) -> CheckResult:
    """Return the result that ends the error of `lasts`. It passes even if files wait: the next look counts.

    :param summary: what this look found of the files.
    """
    after = duration((now_ms - since_ms) / 1000)
    message = f"the table could be read again at {utc_text(now_ms)}, after {after}: {summary}"
    return CheckResult(NAME, True, 0, 0, message, known=False)
