"""Rows put aside: from the build to the switch, and until they go."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from pinot_assets.gc.bad_rows import KeptBadRows
from pinot_assets.gc.collect import Collected, collect
from pinot_assets.session.values.report import TriggerResult

if TYPE_CHECKING:
    from integration.session.conftest import SessionWorld

Make = Callable[..., Any]


def with_bad_row(world: Any) -> None:
    world.write("F1", "F2")
    with (world.source / "F2").open("a") as file:
        file.write("too,many\n")


def aside(world: Any) -> list[str]:
    return sorted(str(p) for p in (world.folder / "staging").glob("**/bad-rows/*.parquet"))


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_rows_put_aside_are_told_at_every_step_and_the_others_published(make_world: Make, mode: str) -> None:
    world = make_world(mode, onBadRow="quarantine", maxBadRows="1")
    with_bad_row(world)
    report = world.trigger()
    assert report.result is TriggerResult.STAGED
    assert report.bad_rows == 1
    assert "1 bad row put aside" in report.summary
    [path] = aside(world)
    assert any(
        f"1 bad row of 1 file put aside: 1 of {world.source.as_uri()}/F2 in" in n for n in report.notes
    )
    assert pq.read_table(path)["record"].to_pylist() == ["too,many"]
    _, findings = world.audit()
    [finding] = [f for f in findings if not f.passed]
    assert (finding.name, finding.blocks, finding.expected, finding.found) == ("rows_kept", False, 3, 2)
    assert path in finding.message
    snapshot = world.publish()
    assert world.visible == ["F1", "F2"]
    assert sorted(file.bad_rows for file in snapshot.files) == [0, 1]


def test_one_too_many_keeps_the_whole_session_back(make_world: Make) -> None:
    world = make_world("sync", onBadRow="quarantine", maxBadRows="0")
    with_bad_row(world)
    report = world.trigger()
    assert report.result is TriggerResult.FAILED
    assert [failure.code for failure in report.failed] == ["TOO_MANY_BAD_ROWS"]
    assert world.visible == []


def test_what_was_put_aside_goes_with_a_session_that_is_given_up(make_world: Make) -> None:
    world = make_world("sync", onBadRow="quarantine", maxBadRows="1")
    with_bad_row(world)
    world.trigger()
    assert len(aside(world)) == 1
    world.clear()
    assert aside(world) == []


def test_a_plain_push_tells_it_too(make_world: Make) -> None:
    world = make_world("append", onBadRow="quarantine", maxBadRows="1", consistentPushEnabled=False)
    with_bad_row(world)
    world.trigger()
    _, findings = world.audit()
    assert [f.name for f in findings if not f.passed] == ["rows_kept"]
    world.publish()
    assert world.visible == ["F1", "F2"]


def gc(world: SessionWorld) -> Collected:
    with world.driver() as driver:
        return collect(driver, 24 * 3_600_000, lambda done, of: None)


def older(path: str, days: int) -> None:
    """As if the object had been written so many days before."""
    at = os.stat(path).st_mtime - days * 24 * 3600
    os.utime(path, (at, at))


def test_what_was_put_aside_goes_when_its_days_are_over_and_the_table_works(make_world: Make) -> None:
    world = make_world("sync", onBadRow="quarantine", maxBadRows="1", badRowDaysToKeep=7)
    with_bad_row(world)
    world.run()
    [path] = aside(world)
    older(path, 6)
    kept = gc(world)
    assert aside(world) == [path]
    assert kept.garbage.bad_rows == KeptBadRows(7, 1, os.stat(path).st_size, kept.garbage.bad_rows.oldest_ms)
    assert kept.garbage.bad_rows.oldest_ms // (24 * 3_600_000) == 6
    older(path, 1)
    assert [o.name.rpartition("/")[2] for o in gc(world).removed] == [os.path.basename(path)]
    assert aside(world) == []
    assert world.run().result is TriggerResult.NOTHING
    world.write(F1="F1.1")
    world.run()
    assert world.visible == ["F1.1", "F2"]
    world.rollback()
    assert world.visible == ["F1", "F2"]


def test_what_was_put_aside_stays_while_its_session_is_open(make_world: Make) -> None:
    world = make_world("sync", onBadRow="quarantine", maxBadRows="1", badRowDaysToKeep=0)
    with_bad_row(world)
    assert world.trigger().result is TriggerResult.STAGED
    [path] = aside(world)
    older(path, 99)
    gc(world)
    assert aside(world) == [path]
    world.run()
    gc(world)
    assert aside(world) == []


@pytest.mark.parametrize(("mode", "is_left"), [("append", True), ("sync", False), ("swap", False)])
def test_what_was_put_aside_goes_with_its_file(make_world: Make, mode: str, is_left: bool) -> None:
    world = make_world(mode, onBadRow="quarantine", maxBadRows="1")
    with_bad_row(world)
    world.run()
    older(*aside(world), 2)
    world.remove("F2")
    world.write("F3")
    world.run()
    gc(world)
    assert [*map(bool, aside(world))] == [True] * is_left
