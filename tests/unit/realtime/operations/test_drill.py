"""The outage drill: what is measured, when a phase is over, and that the store is always mended."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest
from fakes.realtime.hurt_pinot import Clock, HurtPinot
from fakes.realtime.hurt_tables import NOW, consuming, replicas, segment, table
from fakes.zookeeper.memory import FakeZooKeeper

from pinot_assets.errors import PinotError
from pinot_assets.realtime.lease import OperationsStore
from pinot_assets.realtime.model.state import Consumption, RealtimeState, SegmentStatus, StreamPartition
from pinot_assets.realtime.operations.drill import (
    Drill,
    DrillObservation,
    DrillSample,
    Lengths,
    Phase,
    downloaded,
    drill_values,
    evidence,
    is_over,
    p95,
    rate,
    sample_of,
)
from pinot_assets.realtime.repair.apply import Repair
from pinot_assets.session.values.state import Owner

BOTH = replicas(a="ONLINE", b="ONLINE")
LENGTHS = Lengths(before=10, outage=10, downloads=4, longest=2_000)


def sample(
    at_s: float, consumed: int, commits: int = 0, only_servers: int = 0, **differs: object
) -> DrillSample:
    made = DrillSample(int(at_s * 1000), consumed, 50, {0: commits, 1: commits}, only_servers)
    return replace(made, **differs)  # type: ignore[arg-type]


def passed(found: tuple[DrillObservation, ...]) -> dict[str, bool | None]:
    return {finding.name: finding.passed for finding in found}


def test_what_a_look_comes_to() -> None:
    state = table(
        segment(SegmentStatus.DONE, BOTH, "s3://x", sequence=0),
        segment(SegmentStatus.DONE, BOTH, "", sequence=1),
        segment(SegmentStatus.COMMITTING, BOTH, sequence=2),
        consuming(sequence=3),
        consuming(partition=1, sequence=0),
        consumption=(
            Consumption(consuming(sequence=3).name, "a", "CONSUMING", 320),
            Consumption(consuming(sequence=3).name, "b", "CONSUMING", 310),
            Consumption("t__9__9__gone", "b", "CONSUMING", 310),
            Consumption(consuming(1, 0).name, "b", "NOT_CONSUMING", None),
        ),
        stream={0: StreamPartition(0, 0, 400), 1: StreamPartition(1, 0, 7)},
    )
    seen = sample_of(state, [0.5], 3)
    assert seen == DrillSample(NOW, 320, 87, {0: 3, 1: 0}, 1, (0.5,), 3)
    assert sample_of(replace(state, stream={})).backlog is None


def test_when_a_phase_is_over() -> None:
    start = sample(0, 0)
    assert not is_over(Phase.BEFORE, [start], LENGTHS)
    assert not is_over(Phase.BEFORE, [start, sample(9, 5)], LENGTHS)
    assert is_over(Phase.BEFORE, [start, sample(10, 5)], LENGTHS)
    assert not is_over(Phase.OUTAGE, [start, sample(20, 5, 1)], LENGTHS)
    assert is_over(Phase.OUTAGE, [start, sample(20, 5, 2)], LENGTHS)
    one_behind = replace(sample(20, 5), commits={0: 5, 1: 1})
    assert not is_over(Phase.OUTAGE, [start, one_behind], LENGTHS)
    assert is_over(Phase.OUTAGE, [start, replace(one_behind, at_ms=2_000_000)], LENGTHS)
    assert is_over(Phase.DOWNLOADS, [start, sample(4, 5)], LENGTHS)
    counted = [replace(start, peer_downloads=7), sample(4, 5, peer_downloads=7)]
    assert not is_over(Phase.DOWNLOADS, counted, LENGTHS)
    assert is_over(Phase.DOWNLOADS, [*counted, sample(6, 5, peer_downloads=8)], LENGTHS)
    # A server that is restarted counts anew, and does not answer meanwhile.
    restarted = [*counted, sample(5, 5), sample(6, 5, peer_downloads=2), sample(7, 5, peer_downloads=5)]
    assert downloaded(restarted) == 3
    assert not is_over(Phase.DOWNLOADS, restarted[:-1], LENGTHS)
    assert not is_over(Phase.BACKFILL, [start, sample(4, 5, 2, 1)], LENGTHS)
    assert is_over(Phase.BACKFILL, [start, sample(4, 5, 2, 0)], LENGTHS)


def test_numbers() -> None:
    assert rate([sample(0, 0), sample(10, 500)]) == 50
    assert rate([sample(0, 0)]) is None
    times = [sample(0, 0, query_s=(n / 100,)) for n in range(1, 101)]
    assert p95(times) == 0.95
    assert p95([]) is None


def test_what_a_drill_that_went_well_shows() -> None:
    seen = {
        Phase.BEFORE: [sample(0, 0, query_s=(0.01,)), sample(10, 1000)],
        Phase.OUTAGE: [sample(11, 1100), sample(31, 3050, 2, 4, query_s=(0.02,))],
        Phase.DOWNLOADS: [sample(32, 3100, 2, 4, peer_downloads=1), sample(36, 3500, 2, 4, peer_downloads=5)],
        Phase.BACKFILL: [sample(40, 4000, 2, 4), sample(400, 9000, 2, 0)],
    }
    found = evidence(seen, LENGTHS)
    assert passed(found) == {
        "ingestion": True,
        "commits": True,
        "bypass": True,
        "peer downloads": True,
        "queries": None,
        "back-fill": True,
    }
    texts = {finding.name: finding.text for finding in found}
    assert "ratio 0.97" in texts["ingestion"]
    assert "outage 20 ms" in texts["queries"]
    assert "4 segments in 360 s" in texts["back-fill"]
    assert drill_values(found)["commits"] == {"passed": True, "text": texts["commits"], "value": 2}


def test_what_a_drill_that_went_badly_shows() -> None:
    slow = {
        Phase.BEFORE: [sample(0, 0), sample(10, 1000)],
        Phase.OUTAGE: [sample(11, 1100), sample(31, 1200, 1)],
        Phase.BACKFILL: [sample(40, 4000, 2, 4), sample(400, 9000, 2, 1)],
    }
    assert passed(evidence(slow, LENGTHS)) == {
        "ingestion": False,
        "commits": False,
        "bypass": False,
        "peer downloads": None,
        "queries": None,
        "back-fill": False,
    }
    assert passed(evidence({}, LENGTHS))["ingestion"] is False


def test_without_a_backlog_the_rate_proves_nothing() -> None:
    seen = {
        Phase.BEFORE: [sample(0, 0), sample(10, 1000, backlog=0)],
        Phase.OUTAGE: [sample(11, 1100), sample(31, 3050, 2)],
    }
    assert passed(evidence(seen, LENGTHS))["ingestion"] is None


# --- on a table that goes on by itself --------------------------------------------------------------------


class Drilled:
    """A table of one partition that commits every six seconds, wherever it can."""

    def __init__(self) -> None:
        self.clock = Clock(NOW)
        self.pinot = HurtPinot(table(consuming(sequence=0)), self.clock)
        self.store_up = True
        self.began = NOW
        self.queries = 0
        self.calls: list[str] = []
        self.told: list[str] = []

    def read(self) -> RealtimeState:
        self.pinot.read()
        while self.clock.now_ms() - self.began > 6_000:
            self.began += 6_000
            newest = self.pinot.state.latest()[0]
            url = "s3://d/t/x" if self.store_up else ""
            end = str(newest.sequence * 100 + 100)
            self.pinot.change(
                newest.name,
                status=SegmentStatus.DONE,
                url=url,
                end_offset=end,
                replicas=BOTH,
                modified_ms=self.began,
            )
            following = replace(consuming(sequence=newest.sequence + 1), modified_ms=self.began)
            self.pinot.state = replace(self.pinot.state, segments=(*self.pinot.state.segments, following))
        return self.pinot.state

    def break_store(self) -> None:
        self.calls.append("break")
        self.store_up = False

    def mend_store(self) -> None:
        self.calls.append("mend")
        self.store_up = True

    def query(self) -> None:
        self.queries += 1
        if self.queries == 3:
            raise PinotError("a broker was away")
        self.clock.sleep(0.01)

    def drill(self, **differs: object) -> Drill:
        zookeeper = FakeZooKeeper()
        zookeeper.client().ensure_path("/pinot/PROPERTYSTORE")
        store = OperationsStore(zookeeper.client(), "pinot", "t_REALTIME")  # type: ignore[arg-type]
        lease = store.take(Owner("test", "host", 1, NOW))
        repair = Repair(self.pinot, self.read, lease, clock_ms=self.clock.now_ms, sleep=self.clock.sleep)
        made = Drill(
            self.read,
            self.break_store,
            self.mend_store,
            self.query,
            repair,
            lengths=LENGTHS,
            tell=self.told.append,
            clock=lambda: self.clock.now_ms() / 1000,
            sleep=self.clock.sleep,
        )
        return replace(made, **differs)  # type: ignore[arg-type]


def test_all_phases() -> None:
    world = Drilled()
    loaded: list[int] = []
    drill = world.drill(
        load_from_peers=lambda: loaded.append(1), peer_downloads=lambda: len(loaded) * world.queries
    )
    found = drill.run()
    assert passed(found) == {
        "ingestion": True,
        "commits": True,
        "bypass": True,
        "peer downloads": True,
        "queries": None,
        "back-fill": True,
    }
    assert world.calls == ["break", "mend"]
    assert loaded == [1]
    assert any("a broker was away" in line for line in world.told)
    assert not [s for s in world.pinot.state.segments if s.url == ""]


@pytest.mark.parametrize("fails", ["break_store", "read"])
def test_the_store_is_mended_whatever_happens(fails: str) -> None:
    world = Drilled()

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    def breaks() -> None:
        world.break_store()
        if fails == "break_store":
            dies()
        world.pinot.read = dies  # type: ignore[method-assign, assignment]

    with pytest.raises(KeyboardInterrupt):
        world.drill(break_store=breaks).run()
    assert world.calls == ["break", "mend"]


def test_ctrl_c_waits_until_the_store_is_mended() -> None:
    world = Drilled()

    def mends() -> None:
        signal.raise_signal(signal.SIGINT)
        world.calls.append("mend")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            replace(world.drill(), mend_store=mends).run()
    finally:
        signal.signal(signal.SIGINT, before)
    assert world.calls == ["break", "mend"]


def test_a_controller_that_is_away_for_a_moment_is_waited_for() -> None:
    world = Drilled()
    drill = world.drill()
    sleep = world.clock.sleep

    def stumbles(seconds: float) -> None:
        sleep(seconds)
        world.pinot.unreadable = int(world.clock.now_ms() < NOW + 5_000)

    found = replace(drill, sleep=stumbles).run()
    assert any("could not be read" in line for line in world.told)
    assert passed(found)["back-fill"] is True
