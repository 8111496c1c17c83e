"""A pauseless table on Pinot's own controller and data managers of 1.5.1 whose committer is killed.

What is read, found wrong and mended is what `pinot-assets realtime` reads, finds and mends. Every row is
counted and added up on every server, by Pinot's own query engine. Both killed:
`test_both_killed.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import pytest
from fakes.pauseless.kills import SMALL
from fakes.pauseless.servers import PauselessCluster, pauseless_cluster
from fakes.pauseless.table import committing, rows_table

from pinot_assets.core.check_result import CheckResult
from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.model.state import LlcSegment, RealtimeState, SegmentStatus
from pinot_assets.realtime.repair.model import StepKind
from pinot_assets.realtime.repair.plan import plan

pytestmark = pytest.mark.integration

LATER_S = 301


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PauselessCluster]:
    with pauseless_cluster(tmp_path_factory.mktemp("pauseless")) as cluster:
        yield cluster


def answer(state: RealtimeState, check: str) -> CheckResult:
    return next(one for one in examine_state(state) if one.name == check)


def later(state: RealtimeState) -> RealtimeState:
    """The same, looked at when Pinot's own time for a commit is over."""
    return replace(state, read_ms=state.read_ms + LATER_S * 1000)


def segments(state: RealtimeState, names: Collection[str]) -> list[LlcSegment]:
    return [segment for segment in state.segments if segment.name in names]


@pytest.mark.timeout(1200)  # five minutes of it are Pinot's own
def test_the_committer_is_killed_while_it_commits(cluster: PauselessCluster) -> None:
    with rows_table(cluster, **SMALL) as rows:
        for server in cluster.servers:
            server.hold_commits()
        rows.send(3_000)
        state = rows.until_committing(2)
        victim = next(server for server in cluster.servers if server.committing)
        survivor = next(server for server in cluster.servers if server is not victim)
        lost = victim.committing
        # Who is told to keep its rows builds them, although nobody has finished the commit yet.
        rows.until(lambda state: all(state.live_copies(s) == (survivor.name,) for s in segments(state, lost)))
        victim.kill()
        survivor.open_gate()
        rows.send(5_000)
        rows.until_all_found()

        dead = rows.until(lambda state: not state.servers[victim.name].alive)
        assert answer(dead, "servers").numbers["servers_dead"] == 1
        alone = answer(later(dead), "only_copies")
        assert not alone.passed
        assert all(name in alone.message for name in lost)

        victim.open_gate()
        cluster.start(victim)
        rows.until_all_found()
        state = rows.until(
            lambda state: all(
                len(state.live_copies(s)) == 2
                for s in state.segments
                if s.status is not SegmentStatus.IN_PROGRESS
            )
        )
        assert {segment.name for segment in committing(state)} == lost
        assert rows.plan().steps == ()

        # Pinot finishes nothing younger than five minutes, whoever asks.
        rows.until(
            lambda state: lost <= {name for step in plan(state).steps for name in step.segments}, seconds=400
        )
        assert answer(rows.look(), "segment_status").numbers["stuck_committing"] == len(lost)
        outcomes = rows.repair()
        assert [one.text for one in outcomes if not one.helped] == []
        assert {
            name for one in outcomes if one.step.kind is StepKind.FINISH for name in one.step.segments
        } == lost
        rows.until_all_found()
        rows.until_well()
