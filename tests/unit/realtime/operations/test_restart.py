"""Deleting a lost segment with all later ones and reading them again: only by name, only where that helps."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from fakes.realtime.hurt_pinot import Clock
from fakes.realtime.hurt_tables import BYPASS, NOW, OLD, PAUSELESS, consuming, replicas, segment, table
from fakes.zookeeper.memory import FakeZooKeeper

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import PinotError, PinotUnreachable, SessionError, SwitchStateUnknown
from pinot_assets.realtime.lease import OperationsStore
from pinot_assets.realtime.model.settings import ClusterSettings
from pinot_assets.realtime.model.state import (
    NOT_PAUSED,
    LlcSegment,
    Pause,
    PauseReason,
    RealtimeState,
    SegmentStatus,
    StreamPartition,
)
from pinot_assets.realtime.operations.restart import Mark, Restart, RestartMemory, plan_restart
from pinot_assets.session.values.state import Owner

BOTH = replicas(a="ONLINE", b="ONLINE")
FIRST = segment(SegmentStatus.DONE, BOTH, "s3://d/t/0", sequence=0)
LOST = segment(SegmentStatus.COMMITTING, replicas(a="ONLINE>ERROR", b="ONLINE>ERROR"), sequence=1)
LATER = segment(SegmentStatus.DONE, BOTH, "s3://d/t/2", sequence=2)
OTHER = segment(SegmentStatus.DONE, BOTH, "s3://d/t/3", partition=1)
DEDUP = replace(PAUSELESS, dedup=True)


def hurt(**differs: Any) -> RealtimeState:
    options = {"settings": DEDUP, **differs}
    return table(FIRST, LOST, LATER, consuming(sequence=3), OTHER, consuming(1), **options)


def test_what_goes() -> None:
    found = plan_restart(hurt(), [LATER.name, LOST.name])
    assert found.going == (LOST, LATER, consuming(sequence=3))
    assert found.going[0] == LOST
    assert found.refusals == found.warnings == ()


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (hurt(cluster=ClusterSettings("1.3.0")), "deleteSegmentsFromSequenceNum"),
        (hurt(settings=BYPASS), "not pauseless"),
        (hurt(settings=replace(PAUSELESS, upsert="PARTIAL")), "PROTECTED"),
        (hurt(unread={"external": "no answer"}), "not be read completely"),
        (hurt(stream={0: StreamPartition(0, 201, 900)}), f"{LATER.name} is intact and could not be consumed"),
        (hurt(stream={}), "not known"),
    ],
)
def test_what_is_refused(state: RealtimeState, reason: str) -> None:
    assert any(reason in refusal for refusal in plan_restart(state, [LOST.name]).refusals)


def test_a_name_that_is_not_there() -> None:
    assert "no segment nope" in plan_restart(hurt(), ["nope"]).refusals[0]


def test_what_is_lost_all_the_same_is_told() -> None:
    found = plan_restart(hurt(stream={0: StreamPartition(0, 150, 900)}), [LOST.name])
    assert found.refusals == ()
    assert "50 messages" in found.warnings[0]


def test_memory_as_text() -> None:
    memory = RestartMemory((Mark(0, 1, NOW), Mark(1, 7, OLD)), paused=True, deleted=True)
    assert RestartMemory.from_text(memory.to_text()) == memory
    assert RestartMemory.from_text("") == RestartMemory()
    for spoilt in ("{}", "[]", '{"marks": 5}', '{"marks": [[0, 1]]}'):
        with pytest.raises(ValueError, match="not what a restart"):
            RestartMemory.from_text(spoilt)


def test_memory_keeps_what_a_later_release_added_and_its_form() -> None:
    memory = RestartMemory((Mark(0, 1, NOW),), paused=True)
    whole = json.loads(memory.to_text())
    mark = {"partition": 0, "first": 1, "newest_ms": NOW}
    assert whole == {"marks": [mark], "paused": True, "deleted": False}
    later = json.dumps({**whole, "marks": [{**mark, "why": "x"}], "new": 1})
    found = replace(RestartMemory.from_text(later), deleted=True)
    assert json.loads(found.to_text()) == {**json.loads(later), "deleted": True}


class DeletingPinot:
    """Pauses, deletes and resumes at once; each call may lose its answer, or be the last of this run."""

    def __init__(self) -> None:
        self.state = hurt()
        self.calls: list[str] = []
        self.loses: set[str] = set()
        self.dies_after = ""
        self.also_means: tuple[str, ...] = ()
        self.stays: tuple[LlcSegment, ...] = ()

    def read(self) -> RealtimeState:
        return self.state

    def pause(self, name: str, comment: str = "") -> None:
        ended = tuple(
            replace(s, status=SegmentStatus.DONE, end_offset="400", url="s3://x", replicas=BOTH)
            if s.status is SegmentStatus.IN_PROGRESS
            else s
            for s in self.state.segments
        )
        self.state = replace(self.state, segments=ended, pause=Pause(PauseReason.ADMINISTRATIVE))
        self._called("pause")

    def preview_delete_from(self, name: str, segments: Collection[str]) -> JsonMapping:
        (first,) = [s.sequence for s in self.state.segments if s.name in segments]
        names = [s.name for s in self.state.segments if s.partition == 0 and s.sequence >= first]
        return {"partitions": {"0": {"segmentsToDelete": [*names, *self.also_means]}}}

    def delete_from(self, name: str, segments: Collection[str]) -> None:
        left = tuple(s for s in self.state.segments if s.partition or s.sequence < 1 or s in self.stays)
        self.state = replace(self.state, segments=left)
        self._called("delete")

    def resume(self, name: str) -> None:
        made = tuple(
            replace(consuming(partition, last.sequence + 1), created_ms=NOW)
            for partition, last in self.state.latest().items()
        )
        self.state = replace(self.state, segments=(*self.state.segments, *made), pause=NOT_PAUSED)
        self._called("resume")

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name == self.dies_after:
            self.dies_after = ""
            raise KeyboardInterrupt
        if name in self.loses:
            raise SwitchStateUnknown(f"{name}: no answer came")


class LosingTable:
    def __init__(self) -> None:
        self.pinot = DeletingPinot()
        self.zookeeper = FakeZooKeeper()
        self.zookeeper.client().ensure_path("/pinot/PROPERTYSTORE")
        self.clock = Clock(NOW)

    def run(self, *named: str) -> tuple[str, ...]:
        store = OperationsStore(self.zookeeper.client(), "pinot", "t_REALTIME")  # type: ignore[arg-type]
        with store.take(Owner("test", "host", 1, NOW)) as lease:
            made = Restart(
                self.pinot,
                self.pinot.read,
                lease,
                clock=self.clock,
            )
            return made.run(named)

    @property
    def remembered(self) -> str:
        store = OperationsStore(self.zookeeper.client(), "pinot", "t_REALTIME")  # type: ignore[arg-type]
        return store.recall("restart")


def test_the_way() -> None:
    losing = LosingTable()
    assert losing.run(LOST.name) == (LOST.name, LATER.name, consuming(sequence=3).name)
    assert losing.pinot.calls == ["pause", "delete", "resume"]
    assert losing.remembered == ""
    assert FIRST in losing.pinot.state.segments


@pytest.mark.parametrize("call", ["pause", "delete", "resume"])
def test_a_lost_answer_is_looked_up(call: str) -> None:
    losing = LosingTable()
    losing.pinot.loses.add(call)
    losing.run(LOST.name)
    assert losing.pinot.calls == ["pause", "delete", "resume"]


@pytest.mark.parametrize("call", ["pause", "delete", "resume"])
def test_an_interrupted_one_goes_on_and_deletes_nothing_new(call: str) -> None:
    losing = LosingTable()
    losing.pinot.dies_after = call
    with pytest.raises(KeyboardInterrupt):
        losing.run(LOST.name)
    losing.run(LOST.name if call == "pause" else "whatever")
    assert losing.pinot.calls == ["pause", "delete", "resume"]
    assert not losing.pinot.state.pause.whole
    assert losing.remembered == ""


def test_what_was_read_again_since_is_not_deleted_by_a_later_run() -> None:
    losing = LosingTable()
    losing.pinot.dies_after = "delete"
    with pytest.raises(KeyboardInterrupt):
        losing.run(LOST.name)
    losing.pinot.resume("t_REALTIME")  # by hand; its segments have the sequences of those that went
    again = losing.pinot.state.segments
    assert losing.run("whatever") == ()
    assert losing.pinot.calls == ["pause", "delete", "resume"]
    assert losing.pinot.state.segments == again


def test_one_that_deleted_nothing_yet_is_judged_anew() -> None:
    losing = LosingTable()
    losing.pinot.dies_after = "pause"
    with pytest.raises(KeyboardInterrupt):
        losing.run(LOST.name)
    losing.pinot.state = replace(losing.pinot.state, stream={0: StreamPartition(0, 201, 900)})
    with pytest.raises(PinotError, match="is intact and could not be consumed again") as refused:
        losing.run(LOST.name)
    assert "paused" in (refused.value.hint or "")
    assert losing.pinot.calls == ["pause"]


BLIND = replace(hurt(), segments=(), pause=NOT_PAUSED, unread={"segments": "no answer"})


@pytest.mark.parametrize("call", ["pause", "delete", "resume"])
def test_nothing_is_concluded_from_half_a_state_or_none(call: str) -> None:
    losing = LosingTable()
    read = losing.pinot.read
    troubles: list[RealtimeState | PinotError] = [BLIND, PinotUnreachable("no connection")]

    def seen() -> RealtimeState:
        trouble = troubles.pop() if troubles and losing.pinot.calls[-1:] == [call] else read()
        if isinstance(trouble, PinotError):
            raise trouble
        return trouble

    losing.pinot.read = seen  # type: ignore[method-assign]
    assert losing.run(LOST.name) == (LOST.name, LATER.name, consuming(sequence=3).name)
    assert losing.pinot.calls == ["pause", "delete", "resume"]


def test_consumption_does_not_go_on_while_nobody_knows_what_is_left() -> None:
    losing = LosingTable()
    losing.pinot.stays = (LATER,)
    read, sleep = losing.pinot.read, losing.clock.sleep

    def seen() -> RealtimeState:
        return BLIND if losing.pinot.stays and "delete" in losing.pinot.calls else read()

    def goes(seconds: float) -> None:
        sleep(seconds)
        if losing.clock.now_ms() > NOW + 30_000:
            losing.pinot.stays = ()
            left = tuple(s for s in losing.pinot.state.segments if s != LATER)
            losing.pinot.state = replace(losing.pinot.state, segments=left)

    losing.pinot.read, losing.clock.sleep = seen, goes  # type: ignore[method-assign]
    losing.run(LOST.name)
    assert losing.clock.now_ms() > NOW + 30_000
    assert losing.pinot.calls == ["pause", "delete", "resume"]


def test_a_table_that_cannot_be_read_is_told() -> None:
    losing = LosingTable()
    losing.pinot.state = BLIND
    with pytest.raises(PinotError, match="not be read completely"):
        losing.run(LOST.name)
    assert losing.pinot.calls == []


def test_what_a_deletion_left_is_deleted_by_the_next_run() -> None:
    losing = LosingTable()
    losing.pinot.stays = (LATER,)
    with pytest.raises(PinotError, match="still there"):
        losing.run(LOST.name)
    losing.pinot.stays = ()
    assert losing.run(LOST.name) == (LATER.name,)
    assert losing.pinot.calls == ["pause", "delete", "delete", "resume"]


def test_a_table_that_was_paused_before_stays_so() -> None:
    losing = LosingTable()
    losing.pinot.pause("t_REALTIME")
    losing.run(LOST.name)
    assert losing.pinot.calls == ["pause", "delete"]


def test_nothing_is_deleted_that_pinot_means_otherwise() -> None:
    losing = LosingTable()
    losing.pinot.also_means = ("t__0__0__x",)
    with pytest.raises(PinotError, match="other segments: t__0__0__x"):
        losing.run(LOST.name)
    assert losing.pinot.calls == ["pause"]


def test_a_refused_one_changes_nothing() -> None:
    losing = LosingTable()
    with pytest.raises(PinotError, match="no segment nope"):
        losing.run("nope")
    assert (losing.pinot.calls, losing.remembered) == ([], "")


def test_what_comes_to_no_end_is_told() -> None:
    losing = LosingTable()
    losing.pinot.resume = lambda name: None  # type: ignore[method-assign]
    with pytest.raises(PinotError, match="not consumed yet after 600 s"):
        losing.run(LOST.name)


def test_a_spoilt_memory_is_told() -> None:
    losing = LosingTable()
    store = OperationsStore(losing.zookeeper.client(), "pinot", "t_REALTIME")  # type: ignore[arg-type]
    with store.take(Owner("test", "host", 1, NOW)) as lease:
        lease.remember("restart", "{}")
    with pytest.raises(SessionError, match="cannot be read"):
        losing.run(LOST.name)
