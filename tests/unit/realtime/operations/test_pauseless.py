"""Pauseless goes on and off without a commit in two protocols, and with nothing left that nobody finishes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes.realtime.committing import CommittingPinot
from fakes.realtime.hurt_pinot import Clock
from fakes.realtime.hurt_tables import NOW, PAUSELESS, consuming, replicas, segment, table
from fakes.zookeeper.memory import FakeZooKeeper
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.errors import PinotError, PinotUnreachable, PreflightRefused, SessionError
from pinot_assets.realtime.lease import OperationsStore
from pinot_assets.realtime.model.state import Pause, PauseReason, RealtimeState, SegmentStatus
from pinot_assets.realtime.operations.pauseless import (
    LONGEST_PAUSE_MS,
    OUR_PAUSE,
    Do,
    DrainMemory,
    Goal,
    PauselessChange,
    Preflight,
    flipped,
    may_pause,
    next_action,
    unproven,
)
from pinot_assets.realtime.repair.apply import Repair
from pinot_assets.session.values.state import Owner


def config(pauseless: bool) -> dict[str, object]:
    return {
        "tableName": "t_REALTIME",
        "ingestionConfig": {"streamIngestionConfig": {"pauselessConsumptionEnabled": pauseless}},
    }


def fits(state: RealtimeState, goal: Goal) -> Sequence[str]:
    return ()


class ConsumedTable:
    """A table that consumes, and runs that change it one after the other."""

    def __init__(self, pauseless: bool, **differs: object) -> None:
        self.clock = Clock(NOW)
        self.pinot = CommittingPinot(self.clock, config(pauseless), **differs)  # type: ignore[arg-type]
        self.zookeeper = FakeZooKeeper()
        self.zookeeper.client().ensure_path("/pinot/PROPERTYSTORE")
        self.told: list[str] = []

    def run(self, goal: Goal, preflight: Preflight = fits, patience_s: float = 3600) -> Do:
        client = self.zookeeper.client()
        store = OperationsStore(client, "pinot", "t_REALTIME")  # type: ignore[arg-type]
        with store.take(Owner("test", "host", 1, NOW)) as lease:
            repair = Repair(
                self.pinot,  # type: ignore[arg-type]
                self.pinot.read,
                lease,
                clock_ms=self.clock.now_ms,
                sleep=self.clock.sleep,
            )
            made = PauselessChange(
                self.pinot,
                self.pinot.read,
                lease,
                self.told.append,
                patience_s,
                self.clock,
                repair=repair,
                preflight=preflight,
            )
            return made.run(goal).do

    @property
    def remembered(self) -> str:
        store = OperationsStore(self.zookeeper.client(), "pinot", "t_REALTIME")  # type: ignore[arg-type]
        return store.recall("drain")


@pytest.mark.parametrize("goal", Goal)
def test_the_way(goal: Goal) -> None:
    consumed = ConsumedTable(pauseless=goal is Goal.OFF)
    assert consumed.run(goal) is Do.DONE
    assert consumed.pinot.calls == ["pause", "flip", "resume", "force_commit"]
    assert consumed.pinot.pauseless is (goal is Goal.ON)
    assert consumed.pinot.mixed == []
    assert not consumed.pinot.state.pause.whole
    assert consumed.remembered == ""


@pytest.mark.parametrize("goal", Goal)
def test_what_is_so_already_is_left_alone(goal: Goal) -> None:
    consumed = ConsumedTable(pauseless=goal is Goal.ON)
    assert consumed.run(goal) is Do.DONE
    assert consumed.pinot.calls == []


def test_a_preflight_that_refuses_stops_it_before_anything_is_changed() -> None:
    consumed = ConsumedTable(pauseless=False)
    with pytest.raises(PreflightRefused, match="no peer scheme"):
        consumed.run(Goal.ON, lambda state, goal: ["no peer scheme"])
    assert consumed.pinot.calls == []
    assert consumed.run(Goal.ON) is Do.DONE


def test_a_table_that_may_not_be_paused_commits_in_its_own_time() -> None:
    consumed = ConsumedTable(pauseless=True, forced_commits=False)
    consumed.pinot.state = replace(
        consumed.pinot.state, settings=replace(consumed.pinot.state.settings, upsert="PARTIAL")
    )
    sleep, consumed.clock.sleep = consumed.clock.sleep, lambda seconds: None  # type: ignore[method-assign]

    def goes_on(seconds: float) -> None:
        sleep(60)
        consumed.pinot.commit_all()

    consumed.clock.sleep = goes_on  # type: ignore[method-assign, assignment]
    assert consumed.run(Goal.OFF) is Do.DONE
    assert consumed.pinot.calls == ["flip"]
    statuses = {s.status for s in consumed.pinot.state.segments}
    assert statuses == {SegmentStatus.DONE, SegmentStatus.IN_PROGRESS}


def test_what_was_stuck_before_is_finished_first() -> None:
    consumed = ConsumedTable(pauseless=True)
    stuck = segment(SegmentStatus.COMMITTING, replicas(a="ONLINE", b="ONLINE"), partition=0, sequence=-1)
    consumed.pinot.state = replace(consumed.pinot.state, segments=(stuck, *consumed.pinot.state.segments))
    assert consumed.run(Goal.OFF) is Do.DONE
    assert consumed.pinot.state.segments[0].status is SegmentStatus.DONE


def test_with_the_store_down_the_table_is_not_paused_at_all() -> None:
    consumed = ConsumedTable(pauseless=True, store_up=False)
    consumed.pinot.commit_all()
    consumed.clock.sleep(5)
    assert consumed.run(Goal.OFF, patience_s=2_000) is Do.REPAIR
    assert consumed.pinot.calls == []
    consumed.pinot.store_up = True
    assert consumed.run(Goal.OFF) is Do.DONE


def test_when_the_store_goes_down_during_the_pause_the_table_is_set_going_again() -> None:
    consumed = ConsumedTable(pauseless=True)
    pause = consumed.pinot.pause

    def and_the_store_goes(*args: str) -> None:
        consumed.pinot.store_up = False
        pause(*args)

    consumed.pinot.pause = and_the_store_goes  # type: ignore[method-assign, assignment]
    assert consumed.run(Goal.OFF) is Do.GAVE_UP
    assert consumed.pinot.calls == ["pause", "resume"]
    assert consumed.pinot.pauseless
    assert not consumed.pinot.state.pause.whole
    assert consumed.remembered == ""


def test_the_pause_is_not_longer_for_a_repair_that_has_no_effect() -> None:
    consumed = ConsumedTable(pauseless=True)
    slow = replace(consumed.pinot.state.cluster, upload_timeout_ms=3_000_000)
    consumed.pinot.state = replace(consumed.pinot.state, cluster=slow)
    paused_ms: list[int] = []
    pause, resume = consumed.pinot.pause, consumed.pinot.resume

    def and_the_store_goes(*args: str) -> None:
        consumed.pinot.store_up = False
        paused_ms.append(consumed.clock.now_ms())
        pause(*args)

    def notes(*args: str) -> None:
        paused_ms.append(consumed.clock.now_ms())
        resume(*args)

    consumed.pinot.pause = and_the_store_goes  # type: ignore[method-assign, assignment]
    consumed.pinot.resume = notes  # type: ignore[method-assign, assignment]
    assert consumed.run(Goal.OFF) is Do.GAVE_UP
    assert paused_ms[1] - paused_ms[0] < LONGEST_PAUSE_MS + 60_000


def test_a_table_is_not_left_paused_when_patience_is_over() -> None:
    consumed = ConsumedTable(pauseless=True, upload_s=400)
    assert consumed.run(Goal.OFF, patience_s=30) is not Do.DONE
    assert not consumed.pinot.state.pause.whole


@pytest.mark.parametrize("goal", Goal)
def test_a_config_that_pinot_refuses_leaves_the_table_as_it_was(goal: Goal) -> None:
    consumed = ConsumedTable(pauseless=goal is Goal.OFF)

    def refuses(config: object) -> None:
        raise PinotError("PUT /tables/t was refused with status 400", why="no time column")

    consumed.pinot.update_realtime_config = refuses  # type: ignore[method-assign]
    assert consumed.run(goal) is Do.GAVE_UP
    assert consumed.pinot.calls == ["pause", "resume"]
    assert any("no time column" in line for line in consumed.told)
    assert consumed.remembered == ""


def test_a_pause_of_somebody_else_stays_when_the_config_is_refused() -> None:
    consumed = ConsumedTable(pauseless=True)
    consumed.pinot.pause("t_REALTIME", "maintenance")
    consumed.clock.sleep(5)

    def refuses(config: object) -> None:
        raise PinotError("PUT /tables/t was refused with status 400")

    consumed.pinot.update_realtime_config = refuses  # type: ignore[method-assign]
    assert consumed.run(Goal.OFF) is Do.GAVE_UP
    assert consumed.pinot.calls == ["pause"]


@pytest.mark.parametrize("away", ["read", "resume"])
def test_a_controller_that_is_away_for_a_while_does_not_leave_the_table_paused(away: str) -> None:
    consumed = ConsumedTable(pauseless=True)
    there = getattr(consumed.pinot, away)
    silences = iter(range(3))

    def silent(*args: object) -> object:
        if consumed.pinot.state.pause.whole and next(silences, None) is not None:
            raise PinotUnreachable("no connection")
        return there(*args)

    setattr(consumed.pinot, away, silent)
    assert consumed.run(Goal.OFF) is Do.DONE
    assert consumed.pinot.calls == ["pause", "flip", "resume", "force_commit"]


def test_a_table_that_may_not_be_paused_is_not_changed_in_the_midst_of_a_commit() -> None:
    at = replicas(a="ONLINE", b="ONLINE")
    young = segment(SegmentStatus.COMMITTING, at, modified_ms=NOW - 10_000)
    partial = replace(PAUSELESS, upsert="PARTIAL")
    memory = DrainMemory(Goal.OFF, cleared=True)
    assert next_action(table(young, consuming(), settings=partial), memory).do is Do.WAIT
    done = segment(SegmentStatus.DONE, at, "s3://d/t/0")
    assert next_action(table(done, consuming(), settings=partial), memory).do is Do.FLIP


def test_a_forced_commit_that_reached_nobody_is_repeated_but_not_for_ever() -> None:
    consumed = ConsumedTable(pauseless=True, deaf_force=1)
    assert consumed.run(Goal.OFF) is Do.DONE
    assert consumed.pinot.calls.count("force_commit") == 2
    deaf = ConsumedTable(pauseless=True, deaf_force=100)
    assert deaf.run(Goal.OFF) is Do.WAIT
    assert deaf.pinot.calls.count("force_commit") == 3


@pytest.mark.parametrize("lost", ["pause", "flip", "resume", "force_commit"])
@pytest.mark.parametrize("goal", Goal)
def test_a_lost_answer_is_looked_up(goal: Goal, lost: str) -> None:
    consumed = ConsumedTable(pauseless=goal is Goal.OFF, loses=[lost])
    assert consumed.run(goal) is Do.DONE
    assert consumed.pinot.calls == ["pause", "flip", "resume", "force_commit"]


@pytest.mark.parametrize("goal", Goal)
def test_each_step_is_remembered_before_it_is_done(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    consumed = ConsumedTable(pauseless=goal is Goal.OFF)
    at_call: dict[str, DrainMemory] = {}

    def watched(name: str) -> None:
        call = getattr(consumed.pinot, name)

        def noting(*args: object) -> object:
            at_call.setdefault(name, DrainMemory.from_text(consumed.remembered, goal))
            return call(*args)

        monkeypatch.setattr(consumed.pinot, name, noting)

    watched("pause")
    watched("update_realtime_config")
    assert consumed.run(goal) is Do.DONE
    assert at_call["pause"].paused_ms is not None
    assert at_call["update_realtime_config"].flipped_ms is not None


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(Goal)), st.lists(st.integers(0, 12), max_size=4))
def test_interrupted_anywhere_it_is_gone_on_with(goal: Goal, deaths: list[int]) -> None:
    consumed = ConsumedTable(pauseless=goal is Goal.OFF)
    for death in deaths:
        reads = iter(range(death))
        read = consumed.pinot.read

        def dies(reads: object = reads, read: object = read) -> RealtimeState:
            if next(reads, None) is None:  # type: ignore[call-overload]
                raise KeyboardInterrupt
            return read()  # type: ignore[operator, no-any-return]

        consumed.pinot.read = dies  # type: ignore[method-assign]
        try:
            consumed.run(goal)
        except KeyboardInterrupt:
            pass
        finally:
            consumed.pinot.read = read  # type: ignore[method-assign]
    assert consumed.run(goal) is Do.DONE
    assert consumed.pinot.pauseless is (goal is Goal.ON)
    assert consumed.pinot.mixed == []
    assert not consumed.pinot.state.pause.whole


def test_the_other_way_round_before_it_was_over() -> None:
    consumed = ConsumedTable(pauseless=True)
    assert consumed.run(Goal.OFF, patience_s=-1) is Do.PREFLIGHT
    flips = consumed.pinot.update_realtime_config

    def dies(value: object) -> None:
        flips(value)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    consumed.pinot.update_realtime_config = dies  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        consumed.run(Goal.OFF)
    assert consumed.pinot.state.pause.whole
    consumed.pinot.update_realtime_config = flips  # type: ignore[method-assign]
    assert consumed.run(Goal.ON) is Do.DONE
    assert consumed.pinot.pauseless
    assert not consumed.pinot.state.pause.whole


def test_a_later_run_asks_the_preflight_again() -> None:
    consumed = ConsumedTable(pauseless=False)
    assert consumed.run(Goal.ON, patience_s=-1) is Do.PREFLIGHT
    with pytest.raises(PreflightRefused, match="no peer scheme any more"):
        consumed.run(Goal.ON, lambda state, goal: ["no peer scheme any more"])
    assert consumed.pinot.calls == []


def test_a_pause_that_came_after_ours_was_lifted_is_somebody_elses() -> None:
    maintenance = Pause(PauseReason.ADMINISTRATIVE, "new disks")
    done = segment(SegmentStatus.DONE, replicas(a="ONLINE", b="ONLINE"), "s3://d/t/0")
    long_ago = DrainMemory(Goal.OFF, cleared=True, paused_ms=NOW - 2 * LONGEST_PAUSE_MS)
    found = next_action(table(done, pause=maintenance), long_ago)
    assert (found.do, found.remember.paused_ms) == (Do.FLIP, None)
    ours = Pause(PauseReason.ADMINISTRATIVE, f"{OUR_PAUSE} off")
    assert next_action(table(done, pause=ours), long_ago).do is Do.BACK_OUT


def test_a_pause_of_somebody_else_stays() -> None:
    consumed = ConsumedTable(pauseless=True)
    consumed.pinot.pause("t_REALTIME", "maintenance")
    consumed.clock.sleep(5)
    assert consumed.run(Goal.OFF) is Do.DONE
    assert consumed.pinot.calls == ["pause", "flip"]
    assert consumed.pinot.state.pause.whole


def test_nothing_is_done_from_half_a_state() -> None:
    blind = table(consuming(), unread={"pause": "no answer"})
    assert next_action(blind, DrainMemory(Goal.OFF)).do is Do.WAIT


def test_an_idle_partition_is_set_going() -> None:
    stopped = segment(SegmentStatus.DONE, replicas(a="ONLINE", b="ONLINE"), "s3://d/t/0")
    memory = DrainMemory(Goal.ON, flipped_ms=NOW)
    assert next_action(table(stopped), memory).do is Do.REPAIR
    resting = table(stopped, pause=Pause(topics=frozenset({0})))
    assert next_action(resting, memory).do is Do.DONE


def test_which_way_a_commit_went() -> None:
    at = replicas(a="ONLINE", b="ONLINE")
    last = segment(SegmentStatus.DONE, at, "s3://d/t/1", sequence=1, modified_ms=1_000)
    # The controller's own clock, which says when a segment was created, is not ZooKeeper's.
    blocking = table(last, replace(consuming(sequence=2), created_ms=500, made_ms=1_010))
    without = table(last, replace(consuming(sequence=2), created_ms=2_000, made_ms=999))
    assert unproven(blocking, DrainMemory(Goal.OFF)) == unproven(without, DrainMemory(Goal.ON)) == []
    assert unproven(blocking, DrainMemory(Goal.ON)) == unproven(without, DrainMemory(Goal.OFF)) == [0]
    assert unproven(blocking, DrainMemory(Goal.OFF, marks=((0, 1),))) == [0]


@pytest.mark.parametrize(
    ("differs", "mode", "may"),
    [
        ({}, "RESTRICTED", True),
        ({"upsert": "FULL"}, "RESTRICTED", True),
        ({"upsert": "PARTIAL"}, "RESTRICTED", False),
        ({"upsert": "FULL", "drops_out_of_order": True}, "RESTRICTED", False),
        ({"upsert": "PARTIAL"}, "PROTECTED", True),
    ],
)
def test_which_tables_may_be_paused(differs: dict[str, object], mode: str, may: bool) -> None:
    state = table(settings=replace(PAUSELESS, **differs))
    assert may_pause(replace(state, cluster=replace(state.cluster, consistency_mode=mode))) is may


def test_memory_as_text() -> None:
    memory = DrainMemory(Goal.OFF, True, 5, 6, ((0, 1), (1, 7)), 8, 2, "why")
    assert DrainMemory.from_text(memory.to_text(), Goal.OFF) == memory
    assert DrainMemory.from_text(memory.to_text(), Goal.ON) == DrainMemory(Goal.ON, paused_ms=5)
    assert DrainMemory.from_text("", Goal.ON) == DrainMemory(Goal.ON)
    for spoilt in ("x", "[]", "{}", '{"goal": "sideways", "marks": []}'):
        with pytest.raises(ValueError, match=r"not what|Expecting|sideways"):
            DrainMemory.from_text(spoilt, Goal.ON)


def test_a_spoilt_memory_is_told() -> None:
    consumed = ConsumedTable(pauseless=True)
    store = OperationsStore(consumed.zookeeper.client(), "pinot", "t_REALTIME")  # type: ignore[arg-type]
    with store.take(Owner("test", "host", 1, NOW)) as lease:
        lease.remember("drain", "{}")
    with pytest.raises(SessionError, match="cannot be read"):
        consumed.run(Goal.OFF)


def test_only_the_flag_is_changed() -> None:
    plain = {"tableName": "t_REALTIME", "ingestionConfig": {"batch": 1}, "x": [1]}
    assert flipped(plain, Goal.ON) == {
        "tableName": "t_REALTIME",
        "ingestionConfig": {"batch": 1, "streamIngestionConfig": {"pauselessConsumptionEnabled": True}},
        "x": [1],
    }
    assert plain["ingestionConfig"] == {"batch": 1}


def test_memory_keeps_what_a_later_release_added_and_its_form() -> None:
    memory = DrainMemory(Goal.OFF, True, 5, None, ((0, 1),), 8, 2, "why")
    assert json.loads(memory.to_text()) == {
        "goal": "off",
        "cleared": True,
        "paused_ms": 5,
        "flipped_ms": None,
        "marks": [[0, 1]],
        "forced_ms": 8,
        "forcings": 2,
        "backs_out": "why",
    }
    later = json.dumps({**json.loads(memory.to_text()), "new": {"a": 1}})
    found = replace(DrainMemory.from_text(later, Goal.OFF), forcings=3)
    assert json.loads(found.to_text()) == {**json.loads(later), "forcings": 3}
