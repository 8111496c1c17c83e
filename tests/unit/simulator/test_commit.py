"""What a commit refuses: a segment that is gone, or ended by another, and two of one number."""

from __future__ import annotations

import pytest
from fakes.realtime.simulated_truth import always
from simulator.faults import BadNetwork, Fate, Point, SlowZooKeeper, Strike
from simulator.protocol import CompletionStatus, MessageKind
from simulator.tables import BYPASS, MINUTE, PAUSELESS, first, statuses, talk
from simulator.world import SimulatedWorld

from pinot_assets.realtime.model.state import SegmentStatus


def ends(world: SimulatedWorld, segment: str) -> list[CompletionStatus]:
    """Answers to commitEnd."""
    return [reply.answer for _, message, reply in talk(world, segment) if message.kind is MessageKind.END]


def written(world: SimulatedWorld, sequence: int) -> list[SegmentStatus]:
    """Statuses that were written to the segment of that number, one by one."""
    return [status for _, name, status in world.zookeeper.history if name.sequence == sequence]


ONCE = [SegmentStatus.IN_PROGRESS, SegmentStatus.COMMITTING, SegmentStatus.DONE]


@pytest.mark.parametrize(
    ("asked_ms", "write_ms"), [(80_000, 10), (88_000, 5_000)], ids=["before it", "while it writes"]
)
def test_an_end_writes_nothing_once_an_upload_has_ended_the_commit(asked_ms: int, write_ms: int) -> None:
    """It comes half a minute late, at 91 s; the upload's write takes as long as its own."""
    late = BadNetwork(0, 90_000, Fate(late_ms=30_000), frozenset({MessageKind.END}), every=1)
    world = SimulatedWorld(PAUSELESS, [late])
    world.run(asked_ms)
    name = first(world)
    assert statuses(world)[0] == "COMMITTING"
    world.zookeeper.write_ms = write_ms
    world.force_upload([name])
    world.run(MINUTE)
    assert ends(world, name) == [CompletionStatus.FAILED]
    assert written(world, 0) == ONCE
    always(world)


def test_a_reingestion_that_comes_when_an_upload_has_ended_the_commit_writes_nothing() -> None:
    world = SimulatedWorld(PAUSELESS, [Strike(Point.BEFORE_END, back_after_ms=None)])
    world.run(80_000)
    name = first(world)
    assert world.reingest(name, "server-1")
    world.force_upload([name])
    world.run(MINUTE)
    assert not world.servers["server-1"].reingesting
    assert written(world, 0) == ONCE
    assert world.helix.external[name]["server-1"] == "ONLINE"


@pytest.mark.parametrize("after_ms", [62_000, 67_500], ids=["node gone", "nobody consumes it"])
def test_a_segment_that_is_deleted_while_it_is_committed_has_no_successor(after_ms: int) -> None:
    """A deletion takes its place in the ideal state first, then its node; the commit may come between."""
    world = SimulatedWorld(BYPASS, [SlowZooKeeper(59_000, 2 * MINUTE, 5_000)])
    world.run(after_ms)
    name = first(world)
    world.delete_from(0, 0)
    world.run(MINUTE)
    assert ends(world, name) == [CompletionStatus.FAILED]
    assert world.zookeeper.nodes == {}
    assert world.zookeeper.ideal == {}


def test_two_validations_at_once_begin_one_next_segment() -> None:
    """Both find the partition without one; the names that they choose differ in their time."""
    world = SimulatedWorld(BYPASS)
    world.run(30_000)
    world.pause()
    world.run(2 * MINUTE)
    assert statuses(world) == ["DONE"]
    world.zookeeper.write_ms = 70_000
    world.resume()
    world.run(61_000)
    world.validate()
    world.run(4 * MINUTE)
    following = [name for name in world.zookeeper.ideal if "__0__1__" in name]
    assert len(following) == 1
