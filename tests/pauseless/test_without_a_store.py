"""Pauseless tables on servers that know no deep store, and what kills do to them there.

Nothing can be finished then: who mends must first be told where to put it. Servers that are started anew with
a store take the part of the operator who follows the advice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from fakes.pauseless.kills import (
    GIVES_UP_SOON,
    SMALL,
    kill_both_while_they_commit,
    start_both,
    until_given_up,
)
from fakes.pauseless.servers import PauselessCluster, pauseless_cluster
from fakes.pauseless.table import LATER_MS, Rows, committing, rows_table

from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.model.state import Copy, RealtimeState, SegmentStatus
from pinot_assets.realtime.repair.apply import StepOutcome
from pinot_assets.realtime.repair.model import StepKind
from pinot_assets.realtime.repair.plan import plan

pytestmark = pytest.mark.integration


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PauselessCluster]:
    with pauseless_cluster(tmp_path_factory.mktemp("pauseless"), stored=False) as cluster:
        yield cluster


def lose_the_committer(rows: Rows) -> frozenset[str]:
    """Kill it while it commits, and start it again; answers the segments that stay COMMITTING."""
    for server in rows.cluster.servers:
        server.hold_commits()
    rows.send(3_000)
    rows.until_committing(2)
    victim = next(server for server in rows.cluster.servers if server.committing)
    lost = victim.committing
    victim.kill()
    for server in rows.cluster.servers:
        server.open_gate()
    rows.until_all_found()
    rows.until(lambda state: not state.servers[victim.name].alive)
    rows.cluster.start(victim)
    rows.until_all_found()
    rows.until(lambda state: {segment.name for segment in committing(state)} == lost)
    return lost


def lose_both(rows: Rows) -> frozenset[str]:
    """Kill both servers while they commit, and start them again; answers the segments that nobody has."""
    lost = kill_both_while_they_commit(rows)
    start_both(rows)
    until_given_up(rows)
    return lost


def give_a_store(rows: Rows) -> None:
    """One server after the other, so that what only servers have is always somewhere."""
    rows.cluster.stored = True
    for server in rows.cluster.servers:
        server.kill()
        rows.until(lambda state, name=server.name: not state.servers[name].alive)
        rows.cluster.start(server)
        rows.cluster.until_ready()


def closed(state: RealtimeState) -> set[str]:
    return {segment.name for segment in state.segments if segment.status is not SegmentStatus.IN_PROGRESS}


def refused_for_want_of_a_store(rows: Rows) -> None:
    """Five minutes later, all that is closed; and nothing is tried."""
    state = rows.look()
    assert {s.copy for s in state.segments if s.status is SegmentStatus.DONE} <= {Copy.PEERS_ONLY}
    later = replace(state, read_ms=state.read_ms + LATER_MS)
    repair_plan = plan(later)
    assert {refusal.subject for refusal in repair_plan.refusals} == closed(state)
    assert all("segment.store.uri" in refusal.remedy for refusal in repair_plan.refusals)
    assert repair_plan.steps == ()
    assert "segment_status" in {one.name for one in examine_state(later) if one.known and not one.passed}


def kinds(outcomes: list[StepOutcome], names: frozenset[str]) -> set[StepKind]:
    assert [one.text for one in outcomes if not one.helped] == []
    return {one.step.kind for one in outcomes if names & set(one.step.segments)}


@pytest.mark.timeout(1500)  # five minutes of it are Pinot's own
def test_what_is_stuck_is_told_and_mended_once_there_is_a_store(cluster: PauselessCluster) -> None:
    with rows_table(cluster, **SMALL) as one, rows_table(cluster, **SMALL, **GIVES_UP_SOON) as both:
        unfinished, lost = lose_the_committer(one), lose_both(both)
        refused_for_want_of_a_store(one)
        refused_for_want_of_a_store(both)

        give_a_store(one)
        # Pinot uploads nothing younger than five minutes of a pauseless table, whoever asks.
        for rows in (one, both):
            rows.until(
                lambda state: {s for step in plan(state).steps for s in step.segments} == closed(state), 500
            )
        assert kinds(one.repair(), unfinished) == {StepKind.FINISH}
        assert kinds(both.repair(), lost) == {StepKind.REINGEST}
        for rows in (one, both):
            rows.until_mended()
