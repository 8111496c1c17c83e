"""Pauseless tables on servers that know no deep store, and what kills do to them there.

Nothing can be finished then: who mends must first be told where to put it. A server that is started anew with
a store takes the part of the operator who follows the advice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from fakes.pauseless import PauselessCluster, pauseless_cluster
from fakes.pauseless_table import Rows, committing, rows_table

from pinot_assets.realtime.repair.model import Kind
from pinot_assets.realtime.repair.plan import plan
from pinot_assets.realtime.state import Copy, RealtimeState, Status

pytestmark = pytest.mark.integration

SMALL = {"realtime.segment.flush.threshold.rows": "2000"}
GIVES_UP_SOON = {"realtime.segment.pauseless.download.timeoutSeconds": "15"}
LATER_S = 301


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PauselessCluster]:
    with pauseless_cluster(tmp_path_factory.mktemp("pauseless"), stored=False) as cluster:
        yield cluster


def in_error(state: RealtimeState) -> list[int]:
    return [len(segment.in_state("ERROR")) for segment in committing(state)]


def give_a_store(rows: Rows) -> None:
    """One server after the other, so that what only servers have is always somewhere."""
    rows.cluster.stored = True
    for server in rows.cluster.servers:
        server.kill()
        rows.until(lambda state, name=server.name: not state.servers[name].alive)
        rows.cluster.start(server)
        rows.cluster.until_ready()


@pytest.mark.timeout(1500)  # five minutes of it are Pinot's own
def test_what_was_lost_is_told_and_mended_once_there_is_a_store(cluster: PauselessCluster) -> None:
    with rows_table(cluster, **SMALL, **GIVES_UP_SOON) as rows:
        rows.send(3_000)
        rows.until_all_found()
        state = rows.until(lambda state: sum(s.status is Status.DONE for s in state.segments) == 2)
        assert {s.copy for s in state.segments if s.status is Status.DONE} == {Copy.PEERS_ONLY}

        for server in cluster.servers:
            server.hold_builds()
        rows.send(2_000)
        rows.until_committing(2)
        for server in cluster.servers:
            server.kill()
            server.open_gate()
        for server in cluster.servers:
            cluster.start(server)
        failed = rows.until(lambda state: in_error(state) == [2, 2])
        lost = {segment.name for segment in committing(failed)}

        later = replace(failed, read_ms=failed.read_ms + LATER_S * 1000)
        closed = {s.name for s in failed.segments if s.status is not Status.IN_PROGRESS}
        refused = {refusal.subject: refusal for refusal in plan(later).refusals}
        assert refused.keys() == closed
        assert all("segment.store.uri" in refusal.remedy for refusal in refused.values())
        assert plan(later).steps == ()

        give_a_store(rows)
        # Pinot uploads nothing younger than five minutes of a pauseless table, whoever asks.
        rows.until(lambda state: {s for one in plan(state).steps for s in one.segments} == closed, 500)
        outcomes = rows.repair()
        assert [one.text for one in outcomes if not one.helped] == []
        kinds = {name: one.step.kind for one in outcomes for name in one.step.segments if name in lost}
        assert kinds == dict.fromkeys(lost, Kind.REINGEST)
        rows.until_all_found()
        rows.until_well()
