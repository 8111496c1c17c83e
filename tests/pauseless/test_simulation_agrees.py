"""The simulation and Pinot's own controller and data managers of 1.5.1 tell the same story.

Three stories of one partition on two servers: nothing happens; the committer is killed while it commits; both
servers are. Compared are what a committer says and hears, the order in which the nodes are written, and what
is left in the end: statuses, offsets, replicas' states, what health finds, what the repair would do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from fakes.pauseless.servers import PauselessCluster, pauseless_cluster
from fakes.pauseless.table import Rows, committing, rows_table
from simulator.faults import Fault, Point, Strike
from simulator.protocol import MessageKind
from simulator.tables import SimulatedTable, Stream
from simulator.world import SimulatedWorld, realtime_state

from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.model.settings import RealtimeSettings
from pinot_assets.realtime.model.state import RealtimeState, SegmentStatus
from pinot_assets.realtime.repair.plan import plan
from pinot_assets.sizing.load import Flush

pytestmark = pytest.mark.integration

ROWS_A_SEGMENT, ROWS = 1_000, 1_500
WAIT_S = 45
"""Long enough for two looks of a server, 30 s apart: at the first its peer may not have the segment yet."""
LATER_MS = 301_000
SECOND = 1_000

SIMULATED = SimulatedTable(
    settings=RealtimeSettings(replication=2, peer_scheme="http", pauseless=True, download_timeout_s=WAIT_S),
    flush=Flush(rows=ROWS_A_SEGMENT),
    stream=Stream(partitions=1, rows_per_s=ROWS, flows_ms=SECOND),
)

_TOLD = re.compile(r'Controller response (\{.*"status":"(\w+)".*\}) for \S+/(segment\w+)\?(\S*)')


@dataclass(frozen=True)
class Story:
    """What can be compared.

    :ivar said: of the first segment, what its committer said and was answered, in order.
    :ivar pictures: of each segment: sequence, status, offsets, URL, states of its replicas.
    :ivar unwell: checks that find something wrong, five minutes later.
    :ivar planned: what a repair would then do.
    """

    said: tuple[tuple[str, str], ...]
    pictures: tuple[tuple[object, ...], ...]
    unwell: frozenset[str]
    planned: frozenset[str]


def story(state: RealtimeState, talk: list[tuple[str, str, str]]) -> Story:
    """Put together from a state and what was said of its first segment: server, message, answer."""
    committer = next(server for server, said, _ in talk if said == MessageKind.START)
    # Whether the other one is asked before or after is chance, but it is never told to commit.
    assert {answer for server, _, answer in talk if server != committer} <= {"HOLD", "KEEP"}
    later = replace(state, read_ms=state.read_ms + LATER_MS)
    # What brokers answer, and how far consumers say they are, is none of the simulation's business.
    compared = {one.name for one in examine_state(later) if not one.passed and one.known}
    return Story(
        tuple((said, answer) for server, said, answer in talk if server == committer),
        tuple(picture(state)),
        frozenset(compared - {"answers", "consumption_lag", "consumption"}),
        frozenset(str(step.kind) for step in plan(later).steps),
    )


def picture(state: RealtimeState) -> Iterator[tuple[object, ...]]:
    for one in sorted(state.segments, key=lambda segment: segment.sequence):
        states = tuple(sorted(str(replica.external) for replica in one.replicas))
        yield one.sequence, one.status, one.start_offset, one.end_offset, one.copy, states


# --- the real one --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PauselessCluster]:
    with pauseless_cluster(tmp_path_factory.mktemp("pauseless")) as cluster:
        yield cluster


@pytest.fixture
def rows(cluster: PauselessCluster) -> Iterator[Rows]:
    stream = {
        "realtime.segment.flush.threshold.rows": str(ROWS_A_SEGMENT),
        "realtime.segment.pauseless.download.timeoutSeconds": str(WAIT_S),
    }
    with rows_table(cluster, partitions=1, **stream) as rows:
        yield rows


def real_story(rows: Rows, state: RealtimeState) -> Story:
    """From the servers' logs, and the state."""
    first = min(segment.name for segment in state.segments)
    lines = [
        (line[:23], server.name, *match.groups()[1:])
        for server in rows.cluster.servers
        for line in server.log.read_text().splitlines()
        if first in line and (match := _TOLD.search(line))
    ]
    return story(state, [(server, said, answer) for _, server, answer, said, _ in sorted(lines)])


def settled(state: RealtimeState) -> bool:
    """Nothing is on its way."""
    return not any(
        replica.pending or replica.external in (None, "OFFLINE")
        for segment in state.segments
        for replica in segment.replicas
    ) and all(server.ready for server in state.servers.values())


# --- the simulated one ---------------------------------------------------------------------------------


def simulated_story(world: SimulatedWorld) -> Story:
    state = realtime_state(world)
    first = min(segment.name for segment in state.segments)
    talk = [
        (m.server, str(m.kind), str(reply.answer))
        for _, m, reply in world.network.carried
        if m.segment == first
    ]
    return story(state, talk)


def simulated(*troubles: Fault) -> SimulatedWorld:
    world = SimulatedWorld(SIMULATED, troubles)
    world.run(120 * SECOND)
    return world


# --- the stories ---------------------------------------------------------------------------------------


def test_nothing_happens(rows: Rows) -> None:
    for server in rows.cluster.servers:
        server.hold_commits()
    rows.send(ROWS)
    held = rows.until_committing(1)
    for server in rows.cluster.servers:
        server.open_gate()
    rows.until_all_found()
    state = rows.until(
        lambda state: settled(state) and sum(s.status is SegmentStatus.DONE for s in state.segments) == 1
    )
    assert real_story(rows, state) == simulated_story(simulated())
    # The nodes are written in this order: COMMITTING, the next segment, DONE.
    (first,) = committing(held)
    following = next(s for s in held.segments if s.sequence == 1)
    done = next(s for s in state.segments if s.sequence == 0)
    assert first.modified_ms <= following.created_ms <= done.modified_ms
    written = [(name.sequence, status) for _, name, status in simulated().zookeeper.history][:4]
    assert written == [
        (0, SegmentStatus.IN_PROGRESS),
        (0, SegmentStatus.COMMITTING),
        (1, SegmentStatus.IN_PROGRESS),
        (0, SegmentStatus.DONE),
    ]


def test_the_committer_is_killed(rows: Rows) -> None:
    for server in rows.cluster.servers:
        server.hold_commits()
    rows.send(ROWS)
    rows.until_committing(1)
    victim = next(server for server in rows.cluster.servers if server.committing)
    victim.kill()
    for server in rows.cluster.servers:
        server.open_gate()
    rows.until_all_found()
    rows.until(lambda state: not state.servers[victim.name].alive)
    rows.cluster.start(victim)
    state = rows.until(settled)
    assert real_story(rows, state) == simulated_story(simulated(Strike(Point.DURING_BUILD)))


def test_both_are_killed(rows: Rows) -> None:
    for server in rows.cluster.servers:
        server.hold_builds()
    rows.send(ROWS)
    rows.until_committing(1)
    for server in rows.cluster.servers:
        server.kill()
        server.open_gate()
    for server in rows.cluster.servers:
        rows.cluster.start(server)
    state = rows.until(settled)

    world = SimulatedWorld(SIMULATED)
    while not any(node.status is SegmentStatus.COMMITTING for node in world.zookeeper.nodes.values()):
        world.run(10)
    for simulated_server in world.servers.values():
        simulated_server.kill()
        world.start_later(simulated_server, 10 * SECOND)
    world.run(120 * SECOND)
    assert real_story(rows, state) == simulated_story(world)
