"""Old snapshots go after a switch; whatever happens to that leaves a table that works."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from model.test_gc import Gc
from model.world.ending import settle
from model.world.lives import make_table, pointer_lost, rolled_back, run_now, write
from model.world.process import Kind, Trouble
from model.world.specs import spec_of
from model.world.table import MODES, TABLE, ModelTable, clear, run

from pinot_assets.gc.collect import collect
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import read_snapshots, snapshot_refs

DAY = 25 * 3600


def _live(mode: str, troubles: list[Trouble]) -> tuple[ModelTable, list[str]]:
    """Four switches, a day apart; the table, and what its last run did."""
    table = ModelTable(spec_of, mode, {"consistentPushMaxRetries": 3, "snapshotsToKeep": 1})
    for number in range(3):
        table.source.write("A", f"A{number}a".encode())
        table.source.write(f"B{number}", f"B{number}b".encode())
        table.start(run)
        table.later(DAY)
        table.clean_up()
    table.source.write("A", b"A3a")
    return table, table.start(run, troubles).process.effects


def _kept(table: ModelTable) -> list[int]:
    """Numbers of the kept snapshots; each can be read, and so can every tar of it."""
    staging = Staging(table.staging)
    kept = list(read_snapshots(staging, snapshot_refs(staging)))
    assert len(kept) == len(snapshot_refs(staging))
    for output in (o for one in kept for o in one.snapshot.segments.values()):
        staging.read(output.tar_uri)
        staging.read(output.metadata_uri)
    return [one.snapshot.seq for one in kept]


@pytest.mark.parametrize("mode", sorted(MODES))
def test_the_current_snapshot_and_the_one_before_are_always_kept(mode: str) -> None:
    table, effects = _live(mode, [])
    assert _kept(table) == [4, 3]
    assert any(what.startswith("delete snapshots/2-") for what in effects)
    staging = Staging(table.staging)
    kept = read_snapshots(staging, snapshot_refs(staging))
    named = {output.segment for one in kept for output in one.snapshot.segments.values()}
    tars = {info.key for info in table.staging.list("segments")}
    assert tars == {f"segments/{name}{end}" for name in named for end in (".tar.gz", ".metadata.tar.gz")}


def test_without_a_setting_all_are_kept() -> None:
    table = ModelTable(spec_of, "sync")
    for number in range(3):
        table.source.write("A", f"A{number}a".encode())
        table.start(run)
        table.later(DAY)
    assert _kept(table) == [3, 2, 1]


def test_what_reverts_may_still_reach_is_kept() -> None:
    table = ModelTable(spec_of, "sync", {"consistentPushMaxRetries": 3, "snapshotsToKeep": 1})
    for number in range(4):
        table.source.write("A", f"A{number}a".encode())
        table.start(run)
        table.later(3600)
    assert _kept(table) == [4, 3, 2, 1]


@pytest.mark.parametrize("kind", [Kind.DIES_BEFORE, Kind.DIES_AFTER, Kind.CALL_LOST, Kind.REPLY_LOST])
def test_whatever_happens_while_old_snapshots_go(kind: Kind) -> None:
    _, effects = _live("sync", [])
    places = [n for n, what in enumerate(effects, 1) if what.startswith("delete ")]
    assert len(places) > 3
    for place in places:
        table, _ = _live("sync", [Trouble(place, kind)])
        assert {3, 4} <= {*_kept(table)}, f"{kind} at {effects[place - 1]}"
        table.later(DAY)
        table.source.write("A", b"A4a")
        table.start(run)
        settle(table)
        assert not table.truth.violations, f"{kind} at {effects[place - 1]}"
        assert _kept(table)[0] >= 5


def _back_to(target: str) -> Callable[[Driver], None]:
    def rollback(driver: Driver) -> None:
        driver.rollback(target)

    return rollback


def _rewrite(table: ModelTable, content: str) -> None:
    table.source.write("A", content.encode())
    assert table.start(run).process.error is None


def _rolled_back(to: str, keep: int = 1) -> ModelTable:
    """Four switches, a day apart, and a rollback a day later, which the fifth snapshot is of."""
    table = ModelTable(spec_of, "sync")
    for number in range(4):
        _rewrite(table, f"A{number}a")
        table.later(DAY)
        table.clean_up()
    assert table.start(_back_to(to)).process.error is None
    table.start(Driver.resume)
    table.options["snapshotsToKeep"] = keep
    return table


def _collect(driver: Driver) -> None:
    collect(driver, 0, lambda done, total: None)


def test_what_a_rollback_left_stays_after_a_session_without_a_switch() -> None:
    """However long ago that was: queries still see what the rollback went back to."""
    table = _rolled_back("1")
    for number in (6, 7):
        table.later(DAY)
        _rewrite(table, "A0a")
        table.start(_collect)
        assert {number, 4} <= {*_kept(table)}
    assert 5 not in _kept(table)
    table.start(_back_to("4"))
    assert _kept(table)[0] == 8


def test_what_two_rollbacks_left_stays() -> None:
    table = _rolled_back("1")
    table.later(DAY)
    table.start(_back_to("2"))
    table.start(Driver.resume)
    table.later(DAY)
    table.start(_collect)
    assert {6, 5, 4} <= {*_kept(table)}


def test_reverting_leads_back_over_a_rollback_as_long_as_pinot_does() -> None:
    """The parent of a rollback's snapshot is its target's: what it left is not reached over that."""
    table = _rolled_back("1")
    table.later(3600)
    _rewrite(table, "A6a")
    assert _kept(table)[:3] == [6, 5, 4]
    table.later(3600)
    _rewrite(table, "A7a")
    assert _kept(table)[:4] == [7, 6, 5, 4]
    for target in ("6", "5", "4"):
        assert table.start(_back_to(target)).process.error is None, target
    table.later(DAY)
    _rewrite(table, "A8a")
    table.later(DAY)
    _rewrite(table, "A9a")
    assert 4 not in _kept(table)


def test_a_rollback_to_the_snapshot_before_works_after_old_ones_went() -> None:
    table, _ = _live("swap", [])
    table.later(DAY)
    table.clean_up()

    def rollback(driver: Driver) -> None:
        assert driver.rollback().segments

    back = table.start(rollback)
    assert back.process.error is None
    assert _kept(table) == [5, 4, 3]


def _rollback_given_up(table: ModelTable) -> None:
    """A later one, whose driver dies as it begins, and which is cleared: it has written the hold anew."""
    table.start(lambda driver: driver.rollback("4"), [Trouble("start_", Kind.DIES_AFTER)])
    table.expire()
    assert table.start(clear).process.error is None
    for number in range(2, 4):
        table.later(DAY)
        table.clean_up()
        write(B=f"B{number}b")(table)
        run_now(table)


@pytest.mark.parametrize(
    ("then", "kept"), [(lambda _: None, [6, 5, 4]), (_rollback_given_up, [9, 8, 4])], ids=["", "given up"]
)
def test_what_a_rollback_holds_back_is_held_again_when_the_pointer_is_lost(
    then: Callable[[ModelTable], None], kept: list[int]
) -> None:
    """It is found over the snapshot of that rollback: however old, that stays until `resume`."""
    table = make_table("sync")
    for number in range(3):
        write(A=f"A{number}a")(table)
        run_now(table)
        table.later(DAY)
        table.clean_up()
    rolled_back(table)  # cp4: A2a is held
    for number in range(2):
        table.later(DAY)
        table.clean_up()
        write(B=f"B{number}b")(table)
        run_now(table)
    then(table)
    table.options["snapshotsToKeep"] = 1
    table.later(DAY)
    gc = Gc()
    assert table.start(gc).process.error is None
    assert _kept(table) == kept
    visible = table.pinot.visible_segments(TABLE)
    pointer_lost(table)
    table.start(run)
    assert table.pinot.visible_segments(TABLE) == visible
