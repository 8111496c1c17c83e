"""Long builds, messages lost or late, a slow ZooKeeper, failing readers, pauses, a short retention."""

from __future__ import annotations

from dataclasses import replace

from fakes.realtime.simulated_repair import SimulatedRepair
from fakes.realtime.simulated_truth import all_well, always, lag_rows
from simulator.faults import BadNetwork, Death, Fate, Point, ReaderFails, SlowZooKeeper, StoreOutage, Strike
from simulator.protocol import CompletionStatus, MessageKind
from simulator.tables import (
    BYPASS,
    HOUR,
    MINUTE,
    PAUSELESS,
    Hardware,
    SimulatedTable,
    Stream,
    first,
    statuses,
    talk,
    with_settings,
)
from simulator.world import SimulatedWorld

from pinot_assets.realtime.model.settings import ClusterSettings
from pinot_assets.realtime.model.state import PauseReason, SegmentStatus
from pinot_assets.realtime.repair.model import StepKind as Repair


class TestCommitTakesLong:
    def slow(self, table: SimulatedTable, build_rows_per_s: int) -> SimulatedTable:
        return replace(
            table,
            hardware=Hardware(build_rows_per_s=build_rows_per_s),
            stream=Stream(partitions=1, rows_per_s=100),
        )

    def test_leases_let_a_build_of_twenty_minutes_through(self) -> None:
        world = SimulatedWorld(self.slow(BYPASS, 50))
        world.run(HOUR)
        kinds = [(m.kind, r.answer) for _, m, r in talk(world, first(world))]
        assert (MessageKind.EXTEND, CompletionStatus.PROCESSED) in kinds
        assert world.zookeeper.nodes[first(world)].status is SegmentStatus.DONE

    def test_no_build_takes_longer_than_half_an_hour(self) -> None:
        world = SimulatedWorld(self.slow(BYPASS, 30))
        world.run(3 * HOUR)
        kinds = [(m.kind, r.answer) for _, m, r in talk(world, first(world))]
        assert (MessageKind.EXTEND, CompletionStatus.FAILED) in kinds

    def test_pauseless_is_refused_after_five_minutes_in_spite_of_leases(self) -> None:
        world = SimulatedWorld(self.slow(PAUSELESS, 180))
        world.run(HOUR)
        said = [(m.kind, r.answer) for _, m, r in talk(world, first(world))]
        assert (MessageKind.EXTEND, CompletionStatus.PROCESSED) in said
        assert (MessageKind.END, CompletionStatus.FAILED) in said
        assert world.zookeeper.nodes[first(world)].status is SegmentStatus.COMMITTING
        SimulatedRepair(world).run(HOUR)
        assert world.zookeeper.nodes[first(world)].status is SegmentStatus.DONE


class TestMessages:
    def test_a_lost_answer_to_commit_end_ends_with_keep(self) -> None:
        trouble = BadNetwork(0, 5 * MINUTE, Fate(reply_lost=True), frozenset({MessageKind.END}), every=1)
        # Helix is slow, too: else its ONLINE comes before the server asks again.
        table = replace(
            BYPASS,
            cluster=ClusterSettings(version="1.5.1", upload_timeout_ms=5_000),
            hardware=Hardware(helix_ms=20_000),
        )
        world = SimulatedWorld(table, [trouble])
        world.run(10 * MINUTE)
        always(world)
        assert world.zookeeper.nodes[first(world)].status is SegmentStatus.DONE
        said = [(m.kind, r.answer) for _, m, r in talk(world, first(world))]
        assert said[-1] == (MessageKind.CONSUMED, CompletionStatus.KEEP), (
            "the controller looks the segment up: it is DONE"
        )
        assert set(world.helix.external[first(world)].values()) == {"ONLINE"}

    def test_a_late_commit_end_is_refused_when_another_has_won(self) -> None:
        late = Fate(late_ms=8 * MINUTE)
        world = SimulatedWorld(BYPASS, [BadNetwork(0, 90_000, late, frozenset({MessageKind.END}), every=1)])
        world.run(20 * MINUTE)
        always(world)
        answers = [r.answer for _, m, r in talk(world, first(world)) if m.kind is MessageKind.END]
        assert sorted(answers) == [CompletionStatus.COMMIT_SUCCESS, CompletionStatus.FAILED]

    def test_commit_start_that_outlives_its_time_out(self) -> None:
        """apache/pinot#17885: the controller's writes come through, the server hears nothing."""
        slow = SlowZooKeeper(58_000, 30_000, 6_000)
        world = SimulatedWorld(PAUSELESS, [slow])
        world.run(4 * MINUTE)
        assert world.zookeeper.nodes[first(world)].status is SegmentStatus.COMMITTING
        assert set(world.helix.external[first(world)].values()) == {"ONLINE"}, "both built it from their rows"
        SimulatedRepair(world).run(HOUR)
        assert all_well(world) == []
        always(world)

    def test_commit_start_that_loses_the_race_waits_for_a_segment_nobody_builds(self) -> None:
        table = with_settings(PAUSELESS, replication=1, peer_scheme=None)
        world = SimulatedWorld(
            replace(table, servers=1), [SlowZooKeeper(58_000, 30_000, 6_000)], race_ms=30_000
        )
        world.run(12 * MINUTE)
        assert set(world.helix.external[first(world)].values()) == {"ERROR"}
        SimulatedRepair(world).run(HOUR)
        assert all_well(world) == []
        always(world)


def test_a_dead_server_does_nothing_though_helix_takes_it_for_alive() -> None:
    """Its session outlives it by half a minute; messages of that time wait, and end with the session."""
    world = SimulatedWorld(BYPASS, [Death(50_000, "server-1", None)])
    world.run(70_000)
    name = first(world)
    assert world.helix.has_session("server-1")
    assert world.zookeeper.nodes[name].status is SegmentStatus.DONE
    assert (name, "server-1") in world.helix.pending
    assert not world.servers["server-1"].consumers
    assert "server-1" not in {message.server for at, message, _ in talk(world, name) if at > 50_000}
    world.run(20_000)
    assert not world.helix.pending


class TestReaders:
    def test_one_that_fails_is_offline_until_the_next_segment(self) -> None:
        world = SimulatedWorld(BYPASS, [ReaderFails(30_000, "server-1")])
        world.run(40_000)
        assert world.zookeeper.ideal[first(world)] == {"server-0": "CONSUMING", "server-1": "OFFLINE"}
        world.run(5 * MINUTE)
        assert all_well(world) == []
        always(world)

    def test_all_that_fail_get_a_new_segment_from_the_same_offset(self) -> None:
        world = SimulatedWorld(BYPASS, [ReaderFails(30_000, "server-0"), ReaderFails(31_000, "server-1")])
        world.run(2 * MINUTE)
        repair = SimulatedRepair(world)
        repair.run(HOUR)
        second = next(node for node in world.zookeeper.nodes.values() if node.name.sequence == 1)
        assert second.start == world.zookeeper.nodes[first(world)].start, "nobody has built those rows"
        world.run(MINUTE)
        assert lag_rows(world) < 10_000

    def test_a_segment_that_is_too_large_is_halved(self) -> None:
        world = SimulatedWorld(replace(BYPASS, buildable_rows=20_000, precheck_retry=True))
        world.run(10 * MINUTE)
        done = [n for n in world.zookeeper.nodes.values() if n.status is SegmentStatus.DONE]
        assert done
        assert all(node.docs is not None and node.docs <= 20_000 for node in done)
        always(world)


class TestRetention:
    def test_reingestion_of_forgotten_rows_is_short_without_an_error_and_ours_refuses(self) -> None:
        stream = Stream(partitions=1, rows_per_s=1_000, retention_ms=20 * MINUTE)
        table = with_settings(replace(PAUSELESS, stream=stream), download_timeout_s=15)
        world = SimulatedWorld(table, [Strike(Point.AFTER_STEP_3, back_after_ms=None)])
        world.run(60_150)
        for name in ("server-0", "server-1"):
            world.servers[name].kill()
            world.start_later(world.servers[name], 21 * MINUTE)
        world.run(30 * MINUTE)
        repair = SimulatedRepair(world)
        repair.once()
        assert any("gone" in refusal.why for refusal in repair.says.refusals)
        # What Pinot does by itself in such a case:
        assert world.reingest(first(world), "server-0")
        world.run(2 * MINUTE)
        node = world.zookeeper.nodes[first(world)]
        assert node.status is SegmentStatus.DONE
        assert (node.docs or 0) < (node.end or 0) - node.start


class TestPause:
    def test_paused_by_an_operator_commits_and_waits(self) -> None:
        world = SimulatedWorld(PAUSELESS)
        world.run(30_000)
        world.pause()
        world.run(MINUTE)
        assert statuses(world) == ["DONE"]
        world.run(HOUR)
        assert statuses(world) == ["DONE"], "validation does not resume it"
        world.resume()
        world.run(2 * MINUTE)
        assert statuses(world)[-1] == "IN_PROGRESS"
        always(world)

    def test_paused_by_a_limit_resumes_by_itself(self) -> None:
        world = SimulatedWorld(BYPASS)
        world.exceeded = PauseReason.QUOTA
        world.run(10 * MINUTE)
        assert world.zookeeper.pause.reason is PauseReason.QUOTA
        world.exceeded = None
        world.run(2 * HOUR)
        assert not world.zookeeper.pause.whole
        assert statuses(world)[-1] == "IN_PROGRESS"


def test_download_mode_under_bypass_may_leave_a_commit_to_a_restart() -> None:
    """Found by test_world_proof. The store is down, and the controller dies before it answers commitEnd: the
    committer hears KEEP, which in DOWNLOAD mode means "download it from your peers", of whom none has it.
    A reset goes that way again; a restart finds the segment on its disk.
    """
    table = with_settings(BYPASS, completion_mode="DOWNLOAD")
    world = SimulatedWorld(table, [StoreOutage(0, 20 * MINUTE), Strike(Point.AFTER_STEP_3)])
    world.run(5 * MINUTE)
    name = first(world)
    assert (world.zookeeper.nodes[name].status, world.zookeeper.nodes[name].url) == (SegmentStatus.DONE, "")
    assert set(world.helix.external[name].values()) == {"ERROR"}
    world.reset(name, "server-0")
    world.run(5 * MINUTE)
    assert set(world.helix.external[name].values()) == {"ERROR"}
    repair = SimulatedRepair(world)
    repair.run(3 * HOUR)
    assert [step.server for step in repair.done if step.kind is Repair.RESTART] == ["server-1", "server-0"]
    assert all_well(world) == []
    always(world)


def test_helix_that_forgets_after_a_reset_needs_a_restart() -> None:
    table = with_settings(PAUSELESS, download_timeout_s=15)
    world = SimulatedWorld(table, [Strike(Point.AFTER_STEP_3, back_after_ms=None)])
    world.helix.forgets = True
    world.run(60_150)
    for name in ("server-0", "server-1"):
        world.servers[name].kill()
        world.start_later(world.servers[name], 20_000)
    world.run(10 * MINUTE)
    repair = SimulatedRepair(world)
    repair.run(3 * HOUR)
    assert "restart" in {str(step.kind) for step in repair.done}
    assert all_well(world) == []
    always(world)


def test_the_same_seed_tells_the_same_story() -> None:
    table = with_settings(BYPASS, completion_mode="DOWNLOAD", replication=3)
    table = replace(table, servers=3)
    faults = [StoreOutage(90_000, 2 * HOUR), Death(5 * MINUTE, "server-0")]
    one, other = SimulatedWorld(table, faults, seed=7), SimulatedWorld(table, faults, seed=7)
    one.run(HOUR)
    other.run(HOUR)
    assert one.story == other.story
