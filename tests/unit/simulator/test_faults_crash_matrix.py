"""Every row of the crash matrix, and deaths at other points of the loop.

Source: docs/design/realtime.md#s11 and #the-loop-and-where-it-breaks.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.realtime.simulated_repair import SimulatedRepair
from fakes.realtime.simulated_truth import all_well, always
from simulator.faults import Point, StoreOutage, Strike
from simulator.protocol import CompletionStatus, MessageKind
from simulator.tables import (
    BYPASS,
    CLASSIC,
    HOUR,
    MINUTE,
    PAUSELESS,
    SPLIT,
    SimulatedTable,
    first,
    talk,
    with_settings,
)
from simulator.world import SimulatedWorld

from pinot_assets.realtime.model.state import SegmentStatus

IN_BOTH = [
    Point.BEFORE_START,
    Point.DURING_BUILD,
    Point.DURING_UPLOAD,
    Point.BEFORE_END,
    Point.AFTER_END,
    Point.AFTER_START,
    Point.AFTER_STEP_1,
    Point.AFTER_STEP_2,
    Point.AFTER_STEP_3,
    Point.AFTER_MOVE,
]


@pytest.mark.parametrize("point", IN_BOTH, ids=lambda p: p.name.lower())
@pytest.mark.parametrize(
    "table", [CLASSIC, SPLIT, BYPASS, PAUSELESS], ids=["classic", "split", "bypass", "pauseless"]
)
def test_a_death_at_any_point_loses_nothing_and_is_mended(table: SimulatedTable, point: Point) -> None:
    world = SimulatedWorld(table, [Strike(point)])
    for _ in range(30):
        world.run(MINUTE)
        always(world)
    repair = SimulatedRepair(world)
    repair.run(3 * HOUR)
    always(world)
    assert not repair.says.refusals
    assert all_well(world) == []


def test_blocking_another_replica_wins_when_the_builder_dies() -> None:
    world = SimulatedWorld(BYPASS, [Strike(Point.DURING_BUILD, back_after_ms=None)])
    world.run(10 * MINUTE)
    ends = [(m.server, r.answer) for _, m, r in talk(world, first(world)) if m.kind is MessageKind.END]
    assert ends == [("server-1", CompletionStatus.COMMIT_SUCCESS)]


def test_blocking_fail_over_after_commit_start_fails_the_end_and_elects_again() -> None:
    """The new controller's election is HOLDING, so the end that it hears is refused."""
    table = BYPASS
    world = SimulatedWorld(table, [Strike(Point.AFTER_START, back_after_ms=None)])
    world.run(10 * MINUTE)
    said = talk(world, first(world))
    assert [r.answer for _, m, r in said if m.kind is MessageKind.END][-1] is CompletionStatus.COMMIT_SUCCESS
    # Nobody led for the session's time; then the election began anew.
    committed = world.zookeeper.nodes[first(world)].modified_ms
    assert committed - world.zookeeper.nodes[first(world)].name.created_ms > 90_000


def test_pauseless_fail_over_after_commit_start_leaves_committing_until_the_upload() -> None:
    table = with_settings(PAUSELESS)
    world = SimulatedWorld(table, [Strike(Point.AFTER_STEP_3, back_after_ms=None)])
    world.run(4 * MINUTE)
    name = first(world)
    assert world.zookeeper.nodes[name].status is SegmentStatus.COMMITTING
    assert len(world.zookeeper.nodes) > 2, "consumption goes on meanwhile"
    assert set(world.helix.external[name].values()) == {"ONLINE"}, (
        "replicas have built it from their own rows"
    )
    repair = SimulatedRepair(world)
    repair.run(HOUR)
    assert world.zookeeper.nodes[name].status is SegmentStatus.DONE
    assert str(repair.done[0].kind) == "finish"


def test_a_new_leads_first_validation_has_the_segment_level_part() -> None:
    """Its clock is memory: a fail-over makes the daily pass come at once."""
    table = replace(PAUSELESS, first_validation_ms=7 * MINUTE)
    world = SimulatedWorld(table, [Strike(Point.AFTER_STEP_3, back_after_ms=None)])
    world.run(10 * MINUTE)
    assert world.zookeeper.nodes[first(world)].status is SegmentStatus.DONE


def test_without_a_fail_over_committing_waits_for_the_daily_pass() -> None:
    table = replace(PAUSELESS, stream=replace(PAUSELESS.stream, flows_ms=5 * MINUTE))
    world = SimulatedWorld(table, [Strike(Point.BEFORE_END, back_after_ms=None)])
    world.run(23 * HOUR)
    assert world.zookeeper.nodes[first(world)].status is SegmentStatus.COMMITTING
    world.run(2 * HOUR)
    assert world.zookeeper.nodes[first(world)].status is SegmentStatus.DONE


@pytest.mark.parametrize(("point", "in_ideal"), [(Point.AFTER_STEP_1, True), (Point.AFTER_STEP_2, False)])
@pytest.mark.parametrize("table", [BYPASS, PAUSELESS], ids=["blocking", "pauseless"])
def test_validation_completes_the_three_steps_after_five_minutes(
    table: SimulatedTable, point: Point, in_ideal: bool
) -> None:
    world = SimulatedWorld(table, [Strike(point, back_after_ms=None)])
    world.run(4 * MINUTE)
    latest = world.zookeeper.latest()[0]
    assert (str(latest.name) in world.zookeeper.ideal) is in_ideal
    world.run(2 * HOUR)
    latest = world.zookeeper.latest()[0]
    assert "CONSUMING" in world.zookeeper.ideal[str(latest.name)].values()
    always(world)


def test_both_die_at_committing_and_the_segment_is_read_again() -> None:
    """Nobody has built it: after the wait of 600 s every replica is in ERROR, then it is re-ingested."""
    table = PAUSELESS
    world = SimulatedWorld(table, [Strike(Point.AFTER_STEP_3, back_after_ms=None)])
    world.run(60_150)
    for name in ("server-0", "server-1"):
        world.servers[name].kill()
        world.start_later(world.servers[name], 20_000)
    name = first(world)
    world.run(5 * MINUTE)
    assert world.zookeeper.nodes[name].status is SegmentStatus.COMMITTING
    assert not any(server.ready for server in world.servers.values()), "they serve no table while they wait"
    world.run(7 * MINUTE)
    assert set(world.helix.external[name].values()) == {"ERROR"}
    repair = SimulatedRepair(world)
    repair.run(2 * HOUR)
    assert "re-ingest" in {str(step.kind) for step in repair.done}
    assert all_well(world) == []
    always(world)


def test_dedup_is_not_read_again_and_the_refusal_says_why() -> None:
    world = SimulatedWorld(
        with_settings(PAUSELESS, dedup=True), [Strike(Point.AFTER_STEP_3, back_after_ms=None)]
    )
    world.run(60_150)
    for name in ("server-0", "server-1"):
        world.servers[name].kill()
        world.start_later(world.servers[name], 20_000)
    world.run(20 * MINUTE)
    repair = SimulatedRepair(world)
    repair.run(HOUR)
    refused = [refusal.why for refusal in repair.says.refusals if refusal.subject == first(world)]
    assert len(refused) == 1
    assert "dedup" in refused[0]
    assert world.zookeeper.nodes[first(world)].status is SegmentStatus.COMMITTING
    # The runbook that it names: the partition is read again in order, from the lost segment on.
    world.pause()
    world.run(5 * MINUTE)
    world.delete_from(0, 0)
    world.run(MINUTE)
    world.resume()
    repair.run(3 * HOUR)
    assert all_well(world) == []
    assert min(node.start for node in world.zookeeper.nodes.values()) == 0


class TestSeed003:
    """The table of failures of the bypass design."""

    DOWN = StoreOutage(0, 2 * HOUR)

    def test_upload_fails_and_replicas_have_it_from_the_committer_or_their_own_rows(self) -> None:
        world = SimulatedWorld(BYPASS, [self.DOWN])
        world.run(5 * MINUTE)
        assert world.zookeeper.nodes[first(world)].url == ""
        assert set(world.helix.external[first(world)].values()) == {"ONLINE"}

    def test_upload_fails_and_the_committer_dies_default_mode_builds(self) -> None:
        world = SimulatedWorld(BYPASS, [self.DOWN, Strike(Point.AFTER_END, back_after_ms=None)])
        world.run(5 * MINUTE)
        assert world.servers["server-1"].loaded[first(world)].docs == 60_000

    def test_upload_fails_and_the_committer_dies_download_mode_is_in_error_until_it_is_back(self) -> None:
        table = with_settings(BYPASS, completion_mode="DOWNLOAD")
        world = SimulatedWorld(table, [self.DOWN, Strike(Point.AFTER_END, back_after_ms=10 * MINUTE)])
        world.run(5 * MINUTE)
        assert world.helix.external[first(world)]["server-1"] == "ERROR"
        world.run(10 * MINUTE)
        SimulatedRepair(world).run(4 * HOUR)
        assert all_well(world) == []

    def test_upload_succeeds_and_the_committer_dies_others_load_from_the_store(self) -> None:
        table = with_settings(BYPASS, completion_mode="DOWNLOAD")
        world = SimulatedWorld(table, [Strike(Point.AFTER_END, back_after_ms=None)])
        world.run(3 * MINUTE)
        assert world.helix.external[first(world)]["server-1"] == "ONLINE"
        assert world.peer_bytes == 0

    def test_upload_succeeds_and_the_controller_dies_the_file_is_overwritten(self) -> None:
        world = SimulatedWorld(BYPASS, [Strike(Point.AFTER_MOVE, back_after_ms=None)])
        world.run(5 * MINUTE)
        assert world.zookeeper.nodes[first(world)].url == first(world)
        always(world)

    def test_a_download_waits_for_the_external_view(self) -> None:
        """A replica told to download before the committer is ONLINE in the view looks again, and again."""
        table = with_settings(BYPASS, completion_mode="DOWNLOAD")
        world = SimulatedWorld(table, [self.DOWN])
        world.run(3 * MINUTE)
        assert world.helix.external[first(world)]["server-1"] == "ONLINE"
        assert world.peer_bytes > 0
