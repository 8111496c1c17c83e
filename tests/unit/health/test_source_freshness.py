"""Snapshot and waiting changes against the promise."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from fakes.looked import looked

from pinot_assets.core.check_result import HOUR_MS, CheckResult
from pinot_assets.health import source

NOW = 100 * HOUR_MS


def ago(hours: float) -> int:
    return int(NOW - hours * HOUR_MS)


def freshness(published_ms: int | None, waiting: Mapping[str, int], limit_hours: float | None) -> CheckResult:
    snapshot = None if published_ms is None else SimpleNamespace(published_ms=published_ms)
    return source.freshness(
        looked(NOW, freshness_hours=limit_hours, snapshot=snapshot, waiting_since_ms=waiting)
    )


def test_fresh() -> None:
    answer = freshness(ago(2), {"s/a": ago(1)}, 6)
    assert (answer.passed, answer.expected, answer.found) == (True, 6, 2)
    assert answer.numbers == {"snapshot_age_hours": 2, "oldest_change_hours": 1, "changes_waiting": 1}


def test_a_snapshot_that_is_too_old_points_at_the_source() -> None:
    answer = freshness(ago(7), {}, 6)
    assert (answer.passed, answer.found) == (False, 7)
    assert "published 7.0 h ago, 6 h promised" in answer.message
    assert "who delivers the files" in answer.next_step


def test_a_change_that_waits_too_long_points_at_the_table() -> None:
    answer = freshness(ago(9), {"s/new": ago(8), "s/newer": ago(1)}, 6)
    assert not answer.passed
    assert "new has waited 8.0 h" in answer.message
    assert "run t" in answer.next_step
    assert answer.numbers["oldest_change_hours"] == 8


def test_a_copy_that_keeps_its_old_date_is_no_older_than_the_snapshot_that_lacks_it() -> None:
    answer = freshness(ago(2), {"s/a": ago(99)}, 6)
    assert (answer.passed, answer.numbers["oldest_change_hours"]) == (True, 2)


def test_before_the_first_snapshot_the_files_alone_count() -> None:
    answer = freshness(None, {"s/a": ago(8)}, 6)
    assert not answer.passed
    assert freshness(None, {}, 6).passed


def test_without_a_promise_it_only_tells() -> None:
    answer = freshness(ago(90), {"s/a": ago(80)}, None)
    assert answer.passed
    assert "no limit is set" in answer.message
    assert answer.found == 90


def test_a_clock_that_is_behind_makes_nothing_negative() -> None:
    assert freshness(ago(-1), {"s/a": ago(-2)}, 6).numbers["oldest_change_hours"] == 0
