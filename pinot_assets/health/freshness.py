"""How old what queries see is, against what the table's owner promised (`dagster.freshnessHours`)."""

from __future__ import annotations

from collections.abc import Mapping

from pinot_assets.core.check_result import CheckProblem, CheckResult, base_name, check_result_of, hours

NAME = "freshness"


def freshness(
    table: str, published_ms: int | None, waiting: Mapping[str, int], limit_hours: float | None, now_ms: int
) -> CheckResult:
    """Neither the published snapshot nor an unpublished change is older than promised.

    A change is as old as its file, but no older than the snapshot that lacks it: a copy may keep an old date.

    :param published_ms: when the snapshot was published, None where there is none.
    :param waiting: when each new or rewritten file was last modified, epoch milliseconds by URI.
    :param limit_hours: None promises nothing; the check then only tells the numbers.
    """
    snapshot_h = hours(now_ms - published_ms) if published_ms is not None else 0.0
    oldest = min(waiting, key=lambda uri: waiting[uri], default=None)
    change_h = hours(now_ms - max(waiting[oldest], published_ms or 0)) if oldest is not None else 0.0
    problems: list[CheckProblem] = []
    if limit_hours is not None:
        if oldest is not None and change_h > limit_hours:
            what = f"{base_name(oldest)} has waited {change_h} h to be published, {limit_hours:g} h promised"
            then = f"run {table}; if it runs and fails, `pinot-assets status {table}` says why"
            problems.append(CheckProblem(what, then))
        if snapshot_h > limit_hours:
            what = f"what queries see was published {snapshot_h} h ago, {limit_hours:g} h promised"
            then = "has the source had no new file? Ask who delivers it, or raise dagster.freshnessHours"
            problems.append(CheckProblem(what, then))
    age = f"published {snapshot_h} h ago" if published_ms is not None else "nothing is published yet"
    change = f"oldest of {len(waiting)} waiting changes {change_h} h" if waiting else "no change waits"
    return check_result_of(
        NAME,
        problems,
        expected=limit_hours or 0,
        found=max(change_h, snapshot_h),
        good=f"{age}, {change}" + ("" if limit_hours is not None else "; no limit is set"),
        numbers={
            "snapshot_age_hours": snapshot_h,
            "oldest_change_hours": change_h,
            "changes_waiting": len(waiting),
        },
    )
