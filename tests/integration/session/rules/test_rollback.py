"""The way back, by a revert or by publishing kept tars again: rules R21 to R23."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import pytest

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import (
    PinotUnreachable,
    RollbackRefused,
    SessionError,
    SessionHeld,
    SnapshotIncomplete,
    SwitchConflict,
)
from pinot_assets.session.decide.run_decision import PlannedAction
from pinot_assets.session.detect.observe import compare_listing, list_source
from pinot_assets.session.lineage import switch
from pinot_assets.session.rollback.rollback_plan import RollbackWay
from pinot_assets.session.stores.session_store import Lease
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Mode, Outcome
from pinot_assets.source import open_store

pytestmark = pytest.mark.integration

Make = Callable[..., Any]
MODES = ("append", "sync", "swap")
ALL, FIRST = ["F1", "F2", "P1", "P2"], ["P1", "P2"]


@pytest.fixture(params=MODES)
def world(request: pytest.FixtureRequest, make_world: Make) -> Any:
    return published(make_world(request.param))


@pytest.fixture
def synced(make_world: Make) -> Any:
    return published(make_world("sync"))


def published(world: Any) -> Any:
    """Three snapshots: P1, P2; then F1 in addition; then F2."""
    world.write("P1", "P2")
    world.run()
    world.write("F1")
    world.run()
    world.write("F2")
    world.run()
    world.watch_anew()
    return world


def roll_back(world: Any, to: str = "") -> Any:
    with world.driver() as driver:
        try:
            return driver.rollback(to)
        except Exception:
            driver.release()
            raise


def reap(world: Any) -> None:
    """What Pinot does a day after a switch: delete what was replaced, then forget the switch."""
    hidden = world.pinot.all_segments(world.table) - world.pinot.visible_segments(world.table)
    if hidden:
        world.pinot.delete_segments(world.table, hidden)
    world.pinot._tables[world.table].entries.clear()


def assert_back(world: Any, values: list[str]) -> None:
    """At one instant, nothing half way, and what was taken back stays out."""
    assert world.shown == [tuple(ALL), tuple(values)]
    world.assert_settled()
    assert world.run().result is TriggerResult.HELD
    assert world.visible == values


# --- R21: a session of its own -----------------------------------------------------------------------


@pytest.mark.parametrize("to", ["2", "1"])
def test_r21_intent_target_and_hold_are_stored_before_the_first_effect(
    synced: Any, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 goes by a revert; 1 by its tars, whose first effect is a renamed one."""
    synced.write(P1="P1.1")
    synced.run()
    synced.watch_anew()
    to = {"2": "3", "1": "1"}[to]
    synced.pinot.before("revert_replace_segments", synced.die)
    with monkeypatch.context() as patch:
        patch.setattr(Staging, "put_renamed", lambda *_: synced.die())
        with pytest.raises(BaseException, match=r"^$"):
            roll_back(synced, to)
    there = synced.pinot.all_segments(synced.table)
    assert (synced.read_session().mode, synced.read_session().outcome) == (Mode.ROLLBACK, Outcome.OPEN)
    assert synced.read_session().target.key.startswith(f"snapshots/{to}-")
    assert synced.read_pointer().hold is not None
    assert len(synced.shown) == 1
    assert synced.pinot.all_segments(synced.table) == there
    assert synced.run().result is TriggerResult.HELD
    assert synced.visible == (ALL if to == "3" else FIRST)
    synced.assert_settled()


@pytest.mark.parametrize("to", ["2", "1"])
def test_r21_refused_while_another_session_is_in_its_switch(synced: Any, to: str) -> None:
    synced.write("F3")
    synced.trigger()
    with pytest.raises(RollbackRefused, match="is in its switch"):
        roll_back(synced, to)
    assert synced.visible == ALL
    synced.run()
    assert synced.visible == sorted([*ALL, "F3"])


def test_r21_holds_the_lease(synced: Any) -> None:
    refused = []

    def another() -> None:
        with synced.driver() as driver, pytest.raises(SessionHeld) as held:
            driver.trigger()
        refused.append(str(held.value))

    synced.pinot.before("revert_replace_segments", another)
    roll_back(synced)
    assert len(refused) == 1
    assert "held by run-" in refused[0]
    assert synced.visible == ["F1", "P1", "P2"]


def test_r21_half_way_it_is_no_switch_of_another_run(synced: Any) -> None:
    """A check or a `snapshot` step that is executed again must not publish it as a session of its mode."""
    synced.pinot.before("end_replace_segments", synced.die)
    with pytest.raises(BaseException, match=r"^$"):
        roll_back(synced, "1")
    with pytest.raises(SnapshotIncomplete, match="is a rollback"):
        synced.publish()
    with pytest.raises(RollbackRefused, match=r"a rollback of .* to cp1-"):
        roll_back(synced, "2")
    roll_back(synced)
    assert_back(synced, FIRST)


class Effects:
    """Counts what leaves the process, and dies right after the n-th.

    :ivar done: their names, in order.
    """

    PINOT = (
        "start_replace_segments",
        "force_start_replace_segments",
        "push",
        "end_replace_segments",
        "revert_replace_segments",
        "force_revert_replace_segments",
        "delete_segments",
        "rebuild_routing",
    )

    def __init__(self, world: Any, patch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.last = 0
        self._world = world
        for name in self.PINOT:
            patch.setattr(world.pinot, name, self._counted(name, getattr(world.pinot, name)))
        for owner, name in (
            (Lease, "write"),
            (Lease, "prune"),
            (Staging, "_put"),
            (Staging, "put_renamed"),
        ):
            patch.setattr(owner, name, self._counted(name, getattr(owner, name)))

    def die_after(self, n: int) -> None:
        self.done, self.last = [], n

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            result = call(*args, **options)
            if self.last:
                self.done.append(name)
                if len(self.done) == self.last:
                    self._world.die()
            return result

        return counted


def test_r21_a_driver_may_die_after_every_effect_of_a_republish(
    make_world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And after every one of the next trigger's too: the first n of each die."""
    monkeypatch.setattr(switch, "MOST", 1)
    world = make_world("sync")
    world.write("P1", "P2", F1="F1a", F2="F2a")
    world.run()
    world.write("N", F1="F1b", F2="F2b")
    world.remove("P2")
    world.run()
    states = {"1": sorted(["P1", "P2", "F1a", "F2a"]), "2": sorted(["P1", "N", "F1b", "F2b"])}
    effects = Effects(world, monkeypatch)
    for n in itertools.count(1):
        world.later(21)  # too old for a revert
        before = world.visible
        to = "1" if before == states["2"] else "2"
        world.watch_anew()
        effects.die_after(n)
        died = _dies(world, lambda to=to: roll_back(world, to))
        begun = world.read_session() is not None or world.visible != before
        effects.die_after(n if n % 2 else 0)
        if died and _dies(world, world.run):
            effects.die_after(0)
            world.run()
        effects.die_after(0)
        assert world.visible == (states[to] if begun else before), (n, effects.done)
        assert world.shown == [tuple(before), tuple(states[to])][: 1 + begun], n
        world.assert_settled()
        if not died:
            break
    assert n > 20


def _dies(world: Any, act: Callable[[], Any]) -> bool:
    try:
        act()
    except Exception:
        raise
    except BaseException:
        return True
    return False


@pytest.mark.parametrize("method", ["start_replace_segments", "end_replace_segments", "push"])
def test_r21_a_lost_reply_is_looked_up(synced: Any, method: str) -> None:
    synced.write(P1="P1.1")
    synced.run()
    synced.later(21)
    synced.pinot.lose_reply(method)
    try:
        roll_back(synced)
    except Exception:
        synced.run()
    assert synced.visible == ALL
    synced.assert_settled()


def test_r21_an_entry_that_was_lost_half_way_is_opened_anew_under_new_names(synced: Any) -> None:
    """R16: the names of a reverted entry are spent."""
    synced.write(P1="P1.1")
    synced.run()
    synced.later(21)
    synced.watch_anew()
    synced.pinot.before("end_replace_segments", synced.die)
    with pytest.raises(BaseException, match=r"^$"):
        roll_back(synced)
    entry = synced.read_session().lineage_entry_id
    spent = synced.pinot.lineage(synced.table).get(entry).segments_to
    synced.pinot.force_revert_replace_segments(synced.table, entry)
    assert synced.run().result is TriggerResult.HELD
    assert synced.visible == ALL
    assert spent.isdisjoint(synced.read_snapshot().segments)
    assert synced.read_sessions()[-1].attempt == 1
    assert len(synced.shown) == 2
    synced.assert_settled()


def test_r21_a_revert_that_became_impossible_goes_on_with_the_tars(world: Any) -> None:
    world.pinot.before("revert_replace_segments", world.die)
    with pytest.raises(BaseException, match=r"^$"):
        roll_back(world)
    reap(world)
    assert world.run().result is TriggerResult.HELD
    assert_back(world, ["F1", "P1", "P2"])


def refused() -> None:
    raise SwitchConflict("not now")


def test_r21_a_revert_that_may_still_happen_is_not_given_up(synced: Any) -> None:
    synced.pinot.before("revert_replace_segments", synced.die)
    with pytest.raises(BaseException, match=r"^$"):
        roll_back(synced, "2")
    with pytest.raises(RollbackRefused, match="may still happen"):
        synced.clear()
    assert synced.run().result is TriggerResult.HELD
    assert synced.visible == ["F1", "P1", "P2"]
    synced.assert_settled()


@pytest.mark.parametrize("to", ["2", "1"])
def test_r21_clear_gives_it_up_with_what_it_alone_holds(synced: Any, to: str) -> None:
    if to == "2":
        synced.pinot.before("revert_replace_segments", refused)
        with pytest.raises(SessionError, match="not now"):
            roll_back(synced, to)
    else:
        synced.pinot.before("end_replace_segments", synced.die)
        with pytest.raises(BaseException, match=r"^$"):
            roll_back(synced, to)
    assert synced.clear().mode is Mode.ROLLBACK
    assert synced.read_pointer().hold is None
    assert synced.read_sessions()[-1].outcome is Outcome.CLEARED
    assert synced.run().result is TriggerResult.NOTHING
    assert synced.shown == [tuple(ALL)]
    synced.assert_settled()


# --- R22: which way ----------------------------------------------------------------------------------


def test_r22_the_newest_switch_is_reverted_within_twenty_hours(world: Any) -> None:
    with world.driver() as driver:
        way = driver.rollback_plan()
    assert way.way is RollbackWay.REVERT
    assert way.until_ms == world.pinot.lineage(world.table).get(way.entry_id).timestamp_ms + 20 * 3_600_000
    pushes = world.pinot.calls.count("push")
    roll_back(world)
    assert world.pinot.calls.count("push") == pushes
    assert_back(world, ["F1", "P1", "P2"])


def test_r22_to_any_kept_snapshot_without_spark(world: Any) -> None:
    builds = world.builds
    restored = roll_back(world, "1")
    assert (restored.mode, restored.rows) == (Mode.ROLLBACK, 2)
    assert set(world.read_ledger()) == {"P1", "P2"}
    assert world.builds == builds
    assert_back(world, FIRST)
    assert world.resume()
    world.run()
    assert world.visible == ALL
    world.assert_settled()


def test_r22_a_switch_that_pinot_forgot_is_undone_with_the_tars(world: Any) -> None:
    reap(world)
    with world.driver() as driver:
        way = driver.rollback_plan()
    assert way.way is RollbackWay.REPUBLISH
    assert "forgotten" in way.no_revert
    roll_back(world)
    assert_back(world, ["F1", "P1", "P2"])


def test_r22_an_old_switch_is_undone_with_the_tars(world: Any) -> None:
    world.later(20.1)
    with world.driver() as driver:
        way = driver.rollback_plan()
    assert (way.way, way.entry_id, way.until_ms) == (RollbackWay.REPUBLISH, "", None)
    assert "20 hours old" in way.no_revert
    roll_back(world)
    assert_back(world, ["F1", "P1", "P2"])


@pytest.mark.parametrize(
    ("kept", "way"),
    [("6h", RollbackWay.REVERT), ("4h", RollbackWay.REPUBLISH), ("0d", RollbackWay.REPUBLISH)],
)
def test_r22_how_long_is_what_pinot_holds_not_what_the_spec_says(
    make_world: Make, kept: str, way: RollbackWay
) -> None:
    """Five sixths of it; somebody set it in Pinot, where later releases go by it."""
    world = make_world("swap", pinot={"version": "1.6.0"})
    for name in ("P1", "P2"):
        world.write(name)
        world.run()
    world.pinot._tables[world.table].config["segmentsConfig"]["replacedSegmentsRetentionPeriod"] = kept
    world.later(4.5)
    with world.driver() as driver:
        assert driver.rollback_plan().way is way
    roll_back(world)
    assert world.visible == ["P1"]
    world.assert_settled()


def test_r22_segments_that_both_have_stay_untouched(synced: Any) -> None:
    kept = {
        o.segment for f in synced.read_snapshot().files if f.uri[-2:] in ("P1", "P2", "F2") for o in f.outputs
    }
    synced.write("F3", F1="F1.1")
    synced.run()
    synced.later(21)
    roll_back(synced)
    assert synced.visible == ALL
    assert kept < set(synced.read_snapshot().segments)
    (entry,) = [
        e for e in synced.pinot.lineage(synced.table) if e.id == synced.read_snapshot().lineage_entry_id
    ]
    assert (len(entry.segments_from), len(entry.segments_to)) == (2, 1)
    synced.assert_settled()


@pytest.mark.parametrize(("mode", "left"), [("sync", ["P1", "P2", "somebody_elses"]), ("swap", FIRST)])
def test_r22_ours_go_and_on_a_swap_table_all(make_world: Make, mode: str, left: list[str]) -> None:
    world = published(make_world(mode))
    fake = world.pinot._tables[world.table]
    fake.segments["somebody_elses"] = next(iter(fake.segments.values()))
    roll_back(world, "1")
    assert world.visible == left


def test_r22_back_and_forth_every_push_has_names_of_its_own(make_world: Make) -> None:
    world = make_world("swap")
    for values in ("a", "b", "c"):
        world.write(F1=values)
        world.run()
    used_names: set[str] = set(world.pinot.all_segments(world.table))
    for to, value in (("1", "a"), ("3", "c"), ("2", "b"), ("1", "a")):
        world.later(21)
        roll_back(world, to)
        assert world.visible == [value]
        assert used_names.isdisjoint(world.read_snapshot().segments)
        used_names |= set(world.pinot.all_segments(world.table))
        world.assert_settled()


def test_r22_a_rollback_is_taken_back_by_a_revert(synced: Any) -> None:
    """What a re-publish replaced is as near as what any switch replaced."""
    roll_back(synced, "1")
    with synced.driver() as driver:
        assert driver.rollback_plan("3").way is RollbackWay.REVERT
    roll_back(synced, "3")
    assert synced.visible == ALL
    assert synced.run().result is TriggerResult.NOTHING
    assert synced.read_pointer().hold is None
    synced.assert_settled()


def test_r22_the_one_before_is_that_of_the_restored_snapshot(synced: Any) -> None:
    synced.later(21)
    roll_back(synced)
    roll_back(synced)
    assert synced.visible == FIRST
    with pytest.raises(RollbackRefused, match="first snapshot"):
        roll_back(synced)
    synced.assert_settled()


@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_r22_refused_when_the_tars_are_gone_too(make_world: Make, mode: str) -> None:
    world = published(make_world(mode))
    world.write(F1="F1.1")
    world.run()
    reap(world)
    world.watch_anew()
    target = world.staging.snapshot(world.read_snapshot().parent)
    lost = sorted(set(target.segments) - world.pinot.visible_segments(world.table))
    world.staging.store.delete(f"segments/{lost[0]}.tar.gz")
    with pytest.raises(RollbackRefused, match=r"forgotten.*1 of its tars are missing.*first " + lost[0]):
        roll_back(world)
    assert len(world.shown) == 1
    assert (world.read_pointer().active_session, world.read_pointer().hold) == ("", None)


def test_r22_a_tar_that_is_not_what_was_staged_ends_the_rollback(synced: Any) -> None:
    """Its size is right, so that only reading it tells; the table must not hang on the intent."""
    synced.write(F1="F1.1")
    synced.run()
    synced.later(21)
    synced.watch_anew()
    target = synced.staging.snapshot(synced.read_snapshot().parent)
    (lost,) = set(target.segments) - synced.pinot.visible_segments(synced.table)
    key = f"segments/{lost}.tar.gz"
    size = len(synced.staging.store.read(key))
    synced.staging.store.delete(key)
    synced.staging.store.put_if_absent(key, bytes(size))
    with pytest.raises(RollbackRefused, match="cannot be published again"):
        roll_back(synced)
    assert (synced.read_pointer().active_session, synced.read_pointer().hold) == ("", None)
    assert synced.run().result is TriggerResult.NOTHING
    assert len(synced.shown) == 1
    synced.assert_settled()


def test_r22_a_failed_audit_leaves_the_table_as_it_is(synced: Any) -> None:
    synced.write(F1="F1.1")
    synced.run()
    synced.later(21)
    synced.watch_anew()
    before = synced.pinot.all_segments(synced.table)

    def break_what_came() -> None:
        for name in synced.pinot._tables[synced.table].segments.keys() - before:
            synced.pinot.break_replica(synced.table, name)

    synced.pinot.after("push", break_what_came)
    with pytest.raises(RollbackRefused, match="did not pass the audit"):
        roll_back(synced)
    assert synced.pinot.all_segments(synced.table) == before
    assert synced.read_pointer().hold is None
    assert synced.run().result is TriggerResult.NOTHING
    assert len(synced.shown) == 1
    synced.assert_settled()


def test_r22_an_old_pinot_takes_one_segment_along(make_world: Make) -> None:
    """0.11 refuses a replacement by nothing; the one that goes along keeps its rows."""
    world = published(make_world("sync", pinot={"version": "0.11.0"}))
    rows = world.builder.rows
    roll_back(world, "1")
    assert world.visible == FIRST
    assert set(world.read_ledger()) == {"P1", "P2"}
    assert sorted(v for name in world.read_snapshot().segments for v in rows[name]) == FIRST
    assert_back(world, FIRST)


def test_r22_somebody_elses_open_replacement_is_never_forced_away(synced: Any) -> None:
    newest = [s for s in synced.pinot.visible_segments(synced.table) if synced.builder.rows[s] == ("F2",)]
    synced.pinot.start_replace_segments(synced.table, newest, ["merged_1"])
    with pytest.raises(RollbackRefused, match=r"builds on it.*of another program"):
        roll_back(synced)
    assert (synced.read_pointer().active_session, synced.read_pointer().hold) == ("", None)
    assert len(synced.shown) == 1


def test_r22_what_was_shown_is_done_or_nothing(synced: Any) -> None:
    with synced.driver() as driver:
        shown = driver.rollback_plan()
    synced.write("F3")
    synced.run()
    with synced.driver() as driver, pytest.raises(RollbackRefused, match="changed since"):
        driver.rollback(shown=shown)
    assert "F3" in synced.visible


def test_r22_every_kept_snapshot_is_listed_with_its_way(synced: Any) -> None:
    roll_back(synced)
    with synced.driver() as driver:
        ways = driver.rollback_plans(10)
    assert [w.target.snapshot.seq for w in ways] == [4, 3, 2, 1]
    assert [w.way for w in ways] == [None, RollbackWay.REPUBLISH, RollbackWay.REPUBLISH, RollbackWay.REVERT]
    assert "current" in ways[0].no_republish
    assert ([f.uri[-2:] for f in ways[1].files_come], ways[1].files_go) == (["F2"], ())
    assert [f.uri[-2:] for f in ways[3].files_go] == ["F1"]


def test_r22_afterwards_every_broker_counts_the_rows(world: Any) -> None:
    with world.driver() as driver:
        restored = driver.rollback("1")
        counted = driver.count(restored)
        assert [(c.rows, c.matches) for c in counted] == [(2, True), (2, True)]
        world.pinot.broker_rows = lambda broker, table: 3
        assert [c.matches for c in driver.count(restored)] == [False, False]


@pytest.mark.parametrize("call", ["visible_segments", "brokers"])
def test_r22_a_controller_that_dies_before_they_are_counted_undoes_nothing(synced: Any, call: str) -> None:
    def die(_: str) -> None:
        raise PinotUnreachable("no connection", why="refused")

    with synced.driver() as driver:
        restored = driver.rollback("1")
        setattr(synced.pinot, call, die)
        (answer,) = driver.count(restored)
    assert (answer.matches, answer.expected) == (False, restored.rows)
    assert str(answer) == "the controller gave no complete answer: no connection: refused"


# --- R23: the hold -----------------------------------------------------------------------------------


@pytest.fixture(params=["revert", "re-publish"])
def taken_back(request: pytest.FixtureRequest, make_world: Make) -> Callable[[str], Any]:
    """Rewritten P1, added F1, removed P2; all taken back, by either way."""

    def make(mode: str) -> Any:
        world = make_world(mode)
        world.write("P1", "P2")
        world.run()
        world.write("F1", P1="P1.1")
        world.remove("P2")
        world.run()
        if request.param == "re-publish":
            world.later(21)
        roll_back(world)
        assert world.visible == FIRST
        assert world.read_snapshot().audit["way"] == request.param
        return world

    return make


@pytest.mark.parametrize("mode", MODES)
def test_r23_versions_and_removals_stay_out_until_resume(taken_back: Any, mode: str) -> None:
    world = taken_back(mode)
    builds = world.builds
    for _ in range(2):
        assert world.run().result is TriggerResult.HELD
    assert (world.visible, world.builds) == (FIRST, builds)
    assert world.resume() is True
    assert world.resume() is False
    world.run()
    assert world.visible == (["F1", "P1", "P1.1", "P2"] if mode == "append" else ["F1", "P1.1"])
    world.assert_settled()


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_r23_a_held_file_that_changes_is_taken(taken_back: Any, mode: str) -> None:
    world = taken_back(mode)
    world.write(F1="F1.1")
    world.run()
    assert world.visible == ["F1.1", "P1", "P2"]
    assert world.run().result is TriggerResult.HELD  # P1.1 and the removal of P2 are still out
    world.assert_settled()


def test_r23_a_swap_table_is_held_whatever_changes_until_resume(taken_back: Any) -> None:
    world = taken_back("swap")
    world.write(F1="F1.1")
    assert world.run().result is TriggerResult.HELD
    assert world.visible == FIRST
    world.resume()
    world.run()
    assert world.visible == ["F1.1", "P1.1"]


def test_r23_two_rollbacks_hold_what_both_took_back(synced: Any) -> None:
    roll_back(synced)
    synced.later(21)
    roll_back(synced)
    assert synced.visible == FIRST
    assert synced.run().result is TriggerResult.HELD
    assert synced.visible == FIRST


def test_r23_clear_and_a_cleared_session_leave_the_hold_alone(synced: Any) -> None:
    roll_back(synced)
    synced.write("F3")
    synced.trigger()
    assert synced.clear() is not None
    assert synced.read_pointer().hold is not None
    synced.run()
    assert synced.visible == ["F1", "F3", "P1", "P2"]


def test_r23_a_rollback_that_is_given_up_keeps_the_hold_of_the_one_before(synced: Any) -> None:
    roll_back(synced)
    synced.pinot.before("revert_replace_segments", refused)
    with pytest.raises(SessionError, match="not now"):
        roll_back(synced)
    synced.clear()
    assert synced.run().result is TriggerResult.HELD
    assert synced.visible == ["F1", "P1", "P2"]


def held(world: Any) -> tuple[list[str], list[str]]:
    """Base names of the files and of the removals that are held back; there is a hold."""
    hold = world.staging.hold(world.read_pointer().hold)
    return sorted(map(base_name, hold.files)), sorted(map(base_name, hold.removals))


def base_name(uri: str) -> str:
    return uri.rsplit("/", 1)[-1]


def touch(world: Any, *names: str) -> None:
    """The same bytes again, later."""
    for name in names:
        before = (world.source / name).stat().st_mtime_ns
        os.utime(world.source / name, ns=(before + 10**9, before + 10**9))


def sighted(world: Any) -> Any:
    """What a tick of the files sensor sees."""
    with world.driver() as driver:
        source = open_store(str(world.source), {}, UNLIMITED)
        return compare_listing(world.read_spec(), list_source(world.read_spec(), source), driver.observe())


def waiting(world: Any) -> bool:
    changes = sighted(world)
    return bool(changes.new or changes.rewritten)


@pytest.fixture(params=["", "A0"])
def bad(request: pytest.FixtureRequest, synced: Any) -> Any:
    """A2, which is bad, is taken back to A1. Before that (`first`) there was A0, or no A."""
    if request.param:
        synced.write(A=request.param)
        synced.run()
    synced.first, synced.values = synced.read_snapshot().session, synced.visible
    synced.write(A="A1")
    synced.run()
    synced.good = synced.read_snapshot().session
    synced.write(A="A2")
    synced.run()
    roll_back(synced)
    return synced


@pytest.mark.parametrize("between", ["nothing", "a new file", "a touched one"])
@pytest.mark.parametrize("is_given_up", [False, True])
def test_r23_a_second_rollback_never_forgets_what_the_first_took_back(
    bad: Any, between: str, is_given_up: bool
) -> None:
    if between == "a new file":
        bad.write("D")
        bad.run()
    elif between == "a touched one":
        touch(bad, "P1")
        assert bad.run().result is TriggerResult.NOOP
    assert "A1" in bad.visible
    assert held(bad) == (["A"], [])
    there = bad.visible if is_given_up else bad.values
    if is_given_up:
        given_up(bad, bad.first)
    else:
        roll_back(bad, bad.first)
    assert bad.visible == there
    bad.run()  # a touched file is looked at once more
    assert bad.run().result is TriggerResult.HELD
    assert bad.visible == there
    assert held(bad)[0] == (["A"] if between != "a new file" or is_given_up else ["A", "D"])
    bad.write(A="A1")  # as it was before: taken back as well, if by the second one alone
    bad.run()
    assert bad.visible == there
    bad.write(A="A3")
    bad.run()
    assert "A3" in bad.visible
    bad.assert_settled()


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_r23_a_held_file_that_is_only_touched_stays_out(taken_back: Any, mode: str) -> None:
    """Content decides (edge case E3), and is read once."""
    world = taken_back(mode)
    builds, looks = world.builds, []
    for names in (["F1", "P1"], ["F1"]):
        touch(world, *names)
        assert waiting(world), "by its fingerprint alone"
        with world.driver() as driver:
            plan = driver.plan()
        assert (plan.decision.step, plan.build) == (PlannedAction.HELD, ())
        assert {"F1", "P1"} <= {base_name(change.uri) for change in plan.held}
        assert world.run().result is TriggerResult.HELD
        assert not waiting(world), "under its new token"
        looks.append(world.read_pointer().hold)
        assert world.run().result is TriggerResult.HELD
        assert world.read_pointer().hold == looks[-1], "nothing new, nothing written"
    assert looks[0] != looks[1]
    assert (world.visible, world.builds) == (FIRST, builds)
    world.write(F1="F1.1")
    world.run()
    assert world.visible == ["F1.1", "P1", "P2"]


def test_r23_a_held_file_of_equal_size_and_other_content_is_taken(taken_back: Any) -> None:
    world = taken_back("sync")
    world.write(F1="G1")
    world.run()
    assert world.visible == ["G1", "P1", "P2"]


@pytest.mark.parametrize("again", ["as it was", "touched"])
def test_r23_a_removal_is_held_until_its_file_is_back(synced: Any, again: str) -> None:
    aside = synced.folder / "aside"
    (synced.source / "P1").rename(aside)
    synced.run()
    roll_back(synced)
    assert held(synced) == ([], ["P1"])
    assert synced.run().result is TriggerResult.HELD
    aside.rename(synced.source / "P1")
    if again == "touched":
        touch(synced, "P1")
    changes = sighted(synced)
    assert changes.restored or changes.rewritten, "the sensor starts a run"
    assert synced.run().result is (TriggerResult.NOOP if again == "touched" else TriggerResult.NOTHING)
    assert synced.read_pointer().hold is None
    assert not sighted(synced).restored
    synced.remove("P1")  # weeks later, on purpose
    assert sighted(synced).deleted
    synced.run()
    assert synced.visible == ["F1", "F2", "P2"]


def test_r23_a_repaired_file_is_held_no_longer(taken_back: Any) -> None:
    world = taken_back("sync")
    assert held(world) == (["F1", "P1"], ["P2"])
    world.write(F1="F1.1")
    world.run()
    assert held(world) == (["P1"], ["P2"])
    world.write(P1="P1")  # as it was before: touched
    world.run()
    assert held(world) == ([], ["P2"])
    world.write(P2="P2.1")
    world.run()
    assert world.read_pointer().hold is None
    assert world.run().result is TriggerResult.NOTHING
    world.write(F1="F1")  # the bad one again, which is a change like any other
    world.run()
    assert world.visible == ["F1", "P1", "P2.1"]


def test_r23_a_hold_that_has_shrunk_does_not_grow_again_when_the_pointer_is_lost(taken_back: Any) -> None:
    world = taken_back("sync")
    world.write("P2", F1="F1.1", P1="P1.2")
    world.run()
    assert world.read_pointer().hold is None
    with world.store() as store:
        store.zk.delete(store.path, recursive=True)
    assert world.run().result is TriggerResult.NOTHING
    assert world.read_pointer().hold is None


def test_r23_a_removal_of_a_held_file_is_undone_as_any_other(bad: Any) -> None:
    """The table had A1 while A2 was held; its file was removed, and the rollback brings A1 back."""
    bad.remove("A")
    bad.run()
    assert "A1" not in bad.visible
    roll_back(bad, bad.good)
    assert "A1" in bad.visible
    assert bad.run().result is TriggerResult.HELD
    assert "A1" in bad.visible


def test_r23_a_swap_table_stays_held_when_a_second_rollback_is_given_up(make_world: Make) -> None:
    """The table spec was bad, and no file: nothing but the whole is held."""
    world = make_world("swap")
    world.write("P1", "P2")
    for delimiter in ",;|":
        world.options["recordReader.prop.delimiter"] = delimiter
        assert world.run().result is TriggerResult.STAGED
    roll_back(world)
    assert held(world) == ([], [])
    assert world.run().result is TriggerResult.HELD
    given_up(world)
    assert world.run().result is TriggerResult.HELD
    assert world.resume()
    assert world.run().result is TriggerResult.STAGED
    given_up(world)
    assert world.read_pointer().hold is None, "it was not held before"
    assert world.run().result is TriggerResult.NOTHING


def given_up(world: Any, to: str = "1") -> None:
    """A rollback that comes to nothing."""
    with world.driver() as driver:
        way = driver.rollback_plan(to).way
    world.pinot.before(f"{'revert' if way is RollbackWay.REVERT else 'end'}_replace_segments", refused)
    with pytest.raises((SessionError, SwitchConflict), match="not now"):
        roll_back(world, to)
    assert world.clear().mode is Mode.ROLLBACK


# --- on a real Pinot ---------------------------------------------------------------------------------


def test_r21_r22_r23_on_a_real_pinot(real_world: Any) -> None:
    world = real_world
    world.write("P1", F1="F1a F1b")
    world.run()
    world.write("F2", F1="F1.1")
    world.run()
    world.write("F3")
    world.remove("P1")
    world.run()
    first, second = ["F1a", "F1b", "P1"], ["F1.1", "F2", "P1"]
    third = ["F1.1", "F2", "F3"]
    for to, values, way in (
        ("1", first, RollbackWay.REPUBLISH),
        ("3", third, RollbackWay.REVERT),
        ("", second, RollbackWay.REVERT),
    ):
        with world.driver() as driver:
            shown = driver.rollback_plan(to)
            assert shown.way is way
            restored = driver.rollback(to, shown)
            assert [c.matches for c in driver.count(restored)] == [True, True]
        for broker in world.brokers:
            assert world.shown_by(broker) == values
        assert world.run().result is (TriggerResult.NOTHING if values == third else TriggerResult.HELD)
        world.assert_settled()
    assert world.resume()
    world.run()
    for broker in world.brokers:
        assert world.shown_by(broker) == third
    world.assert_settled()
