"""The simulation and a real Pinot 0.11.0 with Kafka tell the same story.

Three stories of two partitions on two servers: the store is away, and in that a server dies and comes back;
a committer is killed; the store is away from a table without a peer scheme. Compared are who commits, what
it says and hears, in which order nodes, ideal state and external view come to say so, where it gets stuck and
for how long, who loads what from its peer, and what the repair would do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from fakes.realtime.commit_story import (
    Number,
    Order,
    Said,
    number,
    real_order,
    real_talk,
    simulated_talk,
    simulated_until,
    without_repeats,
)
from fakes.realtime.kafka_table import Clicks
from simulator.faults import Point, Strike
from simulator.tables import Hardware, SimulatedTable, Stream
from simulator.world import SimulatedWorld, realtime_state

from demos.stack import kill, kill_committer
from pinot_assets.local.stack import Stack
from pinot_assets.realtime.model.settings import RealtimeSettings
from pinot_assets.realtime.model.state import Copy, RealtimeState, SegmentStatus
from pinot_assets.realtime.repair.plan import plan
from pinot_assets.sizing.load import HOLD_MS, Flush, Outage

pytestmark = pytest.mark.integration

ROWS_A_SEGMENT = 500
LATER_MS = 400_000
"""Past the time in which Pinot's own commit may still be going on."""
COMMIT_S = 10
"""`realtime.segment.commit.timeoutSeconds` of the table."""

SIMULATED = SimulatedTable(
    settings=RealtimeSettings(replication=2, peer_scheme="http", commit_timeout_s=COMMIT_S),
    flush=Flush(rows=2 * ROWS_A_SEGMENT),
    stream=Stream(partitions=2, rows_per_s=50, flows_ms=30_000),
    # A killed server is forgotten at once, here as there; so few rows take no time.
    hardware=Hardware(session_ms=500, refusal_ms=50),
)
"""Each partition fills three segments, one every ten seconds."""

_GIVEN = re.compile(r"Received a request to download segment (\S+) for table")


# --- what is compared ----------------------------------------------------------------------------------


def pictures(state: RealtimeState) -> set[tuple[object, ...]]:
    """Of each segment: number, status, offsets, where its copies are, states of its replicas."""
    return {
        (
            number(one.name), one.status, one.start_offset, one.end_offset, one.copy,
            tuple(sorted(str(replica.external) for replica in one.replicas)),
        )
        for one in state.segments
    }  # fmt: skip


def planned(state: RealtimeState) -> set[tuple[str, Number]]:
    """What the repair would do, once Pinot's own time is over."""
    steps = plan(replace(state, read_ms=state.read_ms + LATER_MS)).steps
    return {(str(step.kind), number(name)) for step in steps for name in step.segments}


def of_status(state: RealtimeState, status: SegmentStatus) -> set[str]:
    return {segment.name for segment in state.segments if segment.status is status}


def done(state: RealtimeState) -> set[str]:
    return of_status(state, SegmentStatus.DONE)


def settled(state: RealtimeState) -> bool:
    return all(replica.ideal == replica.external for one in state.segments for replica in one.replicas)


def rested(state: RealtimeState, commits: int) -> bool:
    """So many segments are committed, both partitions are consumed, and nothing is on its way."""
    expected = Counter(
        tuple(sorted({str(replica.ideal) for replica in one.replicas})) for one in state.segments
    )
    return settled(state) and expected == Counter({("ONLINE",): commits, ("CONSUMING",): 2})


def committers(talks: Mapping[Number, list[Said]]) -> dict[Number, list[str]]:
    """Whose commit was taken, of each segment."""
    return {
        of: [said.server for said in talk if said.answer == "COMMIT_SUCCESS"] for of, talk in talks.items()
    }


class Logs:
    """What a real stack's servers wrote."""

    def __init__(self, home: Path) -> None:
        self.files = {part.name: part.log for part in Stack(home).status() if part.name.startswith("server")}

    def talks(self, names: Iterable[str]) -> dict[Number, list[Said]]:
        """What was said of segments."""
        return {number(name): real_talk(self.files, name) for name in names}

    def given(self, server: str, names: Collection[str]) -> set[Number]:
        """Segments that a server gave to its peer."""
        text = self.files[server].read_text(encoding="utf-8", errors="replace")
        return {number(name) for name in _GIVEN.findall(text) if name in names}


# --- the stories ---------------------------------------------------------------------------------------


def test_a_server_dies_in_an_outage_and_comes_back(clicks: Clicks, kafka_home: Path) -> None:
    stack, each = Stack(kafka_home), 2 * ROWS_A_SEGMENT

    def until(commits: int, rows: int) -> RealtimeState:
        return clicks.until(
            lambda s: len(done(s)) == commits and set(s.queryable.values()) == {rows}, seconds=120
        )

    with real_order(clicks.stack, clicks.table) as order:
        clicks.send(each)
        clicks.until(lambda s: rested(s, 2))
        with clicks.store_away():
            clicks.send(each)
            both = clicks.until(lambda s: rested(s, 4))
            kill(stack, clicks.stack, "server-2")
            clicks.send(each)
            alone = done(until(6, 3 * each)) - done(both)
            stack.up()
            real = clicks.until(lambda s: rested(s, 6), 120)
    logs = Logs(kafka_home)
    real_committers = committers(logs.talks(done(real)))

    world, story = SimulatedWorld(SIMULATED), Order()

    def now_done() -> set[str]:
        return done(realtime_state(world))

    simulated_until(world, story, lambda: rested(realtime_state(world), 2))
    world.store.fail(Outage.REFUSES)
    simulated_until(world, story, lambda: rested(realtime_state(world), 4))
    former = now_done()
    world.servers["server-1"].kill()
    simulated_until(world, story, lambda: len(now_done()) == 6)
    simulated_alone = now_done() - former
    simulated_until(world, story, lambda: "server-1" not in world.helix.current[min(former)])
    world.restart("server-1")
    simulated_until(world, story, lambda: rested(realtime_state(world), 6))
    simulated = realtime_state(world)
    simulated_committers = committers({number(n): simulated_talk(world, n) for n in done(simulated)})

    assert order.reached == story.reached
    assert pictures(real) == pictures(simulated)
    assert planned(clicks.look()) == planned(simulated)
    # Who of two wins is chance; where only one lives it is that one, and never are there two.
    assert {len(who) for who in real_committers.values()} == {1}
    assert {len(who) for who in simulated_committers.values()} == {1}
    assert {number(name) for name in alone} == {number(name) for name in simulated_alone}
    for name in alone:
        assert real_committers[number(name)] == ["server-1"]
        assert simulated_committers[number(name)] == ["server-0"]
    assert logs.given("server-1", done(real)) == given_in(world, "server-0")


def given_in(world: SimulatedWorld, server: str) -> set[Number]:
    """Segments that a simulated server gave to its peer."""
    matches = (re.fullmatch(rf"(\S+) fetched from {server}", what) for _, _, what in world.story)
    return {number(one[1]) for one in matches if one is not None}


def test_a_committer_is_killed(clicks: Clicks, kafka_home: Path) -> None:
    stack = Stack(kafka_home)
    with real_order(clicks.stack, clicks.table) as order:
        clicks.until(lambda s: rested(s, 0))
        with clicks.flowing():
            victim, name = kill_committer(stack, clicks.pinot, clicks.table, 60)
            clicks.until(lambda s: name in done(s), 120)
        stack.up()
        real = clicks.until(lambda s: settled(s) and set(s.queryable.values()) == {clicks.sent}, 120)
    talk = real_talk(Logs(kafka_home).files, name)
    survivor = "server-1" if victim == "server-2" else "server-2"

    # It was killed with its tar built: whether it had said so already is chance.
    said_so = ("segmentCommitStart", "COMMIT_CONTINUE") in [s.words for s in talk if s.server == victim]
    world = SimulatedWorld(
        SIMULATED, [Strike(Point.DURING_UPLOAD if said_so else Point.BEFORE_START, back_after_ms=None)]
    )
    story = Order()
    simulated_until(world, story, lambda: not all(server.alive for server in world.servers.values()))
    dead = next(server.name for server in world.servers.values() if not server.alive)
    lives = next(server.name for server in world.servers.values() if server.alive)
    first = next(m.segment for _, m, r in world.network.carried if m.server == dead and r.answer == "COMMIT")
    simulated_until(world, story, lambda: first in done(realtime_state(world)))
    world.restart(dead)
    simulated_until(world, story, lambda: settled(realtime_state(world)))
    simulated = simulated_talk(world, first)

    assert without_repeats(talk, victim) == without_repeats(simulated, dead)
    assert without_repeats(talk, survivor) == without_repeats(simulated, lives)
    assert order.reached[number(name)] == story.reached[number(first)]
    # It is stuck until the dead one's time is over, and then for as long as the other one happens to wait.
    stuck_s, simulated_s = stuck(talk, victim, survivor), stuck(simulated, dead, lives)
    assert simulated_s > COMMIT_S
    assert stuck_s == pytest.approx(simulated_s, abs=HOLD_MS / 1000 + 2)
    (segment,) = (one for one in real.segments if one.name == name)
    assert (segment.copy, len(real.live_copies(segment))) == (Copy.DEEP_STORE, 2)


def stuck(talk: list[Said], victim: str, survivor: str) -> float:
    """Seconds from the one's COMMIT to the other's."""
    committed_s = {said.server: said.at_s for said in talk if said.answer == "COMMIT"}
    return committed_s[survivor] - committed_s[victim]


def test_an_outage_stops_a_table_without_a_peer_scheme(clicks: Clicks, kafka_home: Path) -> None:
    config = clicks.pinot.table_config(clicks.table)
    assert config is not None
    del config["segmentsConfig"]["peerSegmentDownloadScheme"]
    clicks.pinot.update_realtime_config(config)
    logs, each = Logs(kafka_home), 2 * ROWS_A_SEGMENT
    with real_order(clicks.stack, clicks.table) as order:
        clicks.send(each)  # these segments were begun with the scheme, and the store is there
        clicks.until(lambda s: rested(s, 2))
        with clicks.store_away():
            clicks.send(each)
            full = clicks.until(lambda s: set(s.queryable.values()) == {2 * each})
            names = of_status(full, SegmentStatus.IN_PROGRESS)
            clicks.until(lambda _: all(in_vain(talk) > 1 for talk in logs.talks(names).values()), 60)
            stopped, talks = clicks.look(), logs.talks(names)
        real = clicks.until(lambda s: rested(s, 4))

    classic = replace(SIMULATED, settings=RealtimeSettings(replication=2, commit_timeout_s=COMMIT_S))
    classic = replace(classic, stream=replace(SIMULATED.stream, flows_ms=20_000))
    world, story = SimulatedWorld(classic), Order()
    simulated_until(world, story, lambda: rested(realtime_state(world), 2))
    world.store.fail(Outage.REFUSES)
    world.run(600_000)
    simulated_stopped = realtime_state(world)
    there = {
        number(name): simulated_talk(world, name)
        for name in of_status(simulated_stopped, SegmentStatus.IN_PROGRESS)
    }
    world.store.restore()
    simulated_until(world, story, lambda: rested(realtime_state(world), 4))
    simulated = realtime_state(world)

    assert pictures(stopped) == pictures(simulated_stopped)
    assert planned(stopped) == planned(simulated_stopped) == set()
    assert order.reached == story.reached
    assert pictures(real) == pictures(simulated)
    assert talks.keys() == there.keys()
    for of, talk in talks.items():
        # Ten minutes of it have every turn that a few seconds can take.
        assert turns(talk) <= turns(there[of])
    ends = (
        committers(logs.talks(names)),
        committers({number(n): simulated_talk(world, n) for n in done(simulated)}),
    )
    assert {len(taken) for end in ends for of, taken in end.items() if of in talks} == {1}


def in_vain(talk: list[Said]) -> int:
    """How often an upload through the controller has failed."""
    return sum(said.words == ("segmentUpload", "FAILED") for said in talk)


def turns(talk: list[Said]) -> set[tuple[tuple[str, str], tuple[str, str]]]:
    """What follows upon what, on each server."""
    words = {
        server: [said.words for said in talk if said.server == server] for server in {s.server for s in talk}
    }
    return {pair for said in words.values() for pair in pairwise(said)}
