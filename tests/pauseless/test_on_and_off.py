"""Pauseless consumption turned on and off on Pinot's own controller and data managers of 1.5.1."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakes.pauseless.kills import SMALL
from fakes.pauseless.servers import PauselessCluster, pauseless_cluster
from fakes.pauseless.table import committing, rows_table

from pinot_assets.realtime.model.state import Copy, SegmentStatus
from pinot_assets.realtime.operations.pauseless import Do, Goal

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PauselessCluster]:
    with pauseless_cluster(tmp_path_factory.mktemp("pauseless")) as cluster:
        yield cluster


def test_on_while_the_table_consumes(cluster: PauselessCluster) -> None:
    with rows_table(cluster, pauseless=False, **SMALL) as rows:
        rows.send(3_000)
        rows.until_all_found()
        heard: list[str] = []
        last = rows.turn(Goal.ON, heard.append)
        assert (last.do, last.why) == (Do.DONE, "every partition has committed in the new way"), heard
        rows.send(5_000)
        rows.until_all_found()
        state = rows.look()
        assert state.settings.pauseless
        assert not state.pause.whole
        rows.until_well()


def test_off_while_segments_are_committing(cluster: PauselessCluster) -> None:
    with rows_table(cluster, **SMALL) as rows:
        for server in cluster.servers:
            server.hold_commits()
        rows.send(3_000)
        rows.until_committing(2)
        heard: list[str] = []
        flipped_while: list[int] = []

        def hear(line: str) -> None:
            heard.append(line)
            if line.startswith(Do.REPAIR):
                for server in cluster.servers:
                    server.open_gate()
            if line.startswith(Do.FLIP):
                flipped_while.append(len(committing(rows.look())))

        last = rows.turn(Goal.OFF, hear)
        assert (last.do, last.why) == (Do.DONE, "every partition has committed in the new way"), heard
        assert flipped_while == [0]
        rows.send(5_000)
        rows.until_all_found()
        state = rows.look()
        assert not state.settings.pauseless
        assert {s.copy for s in state.segments if s.status is SegmentStatus.DONE} == {Copy.DEEP_STORE}
        rows.until_well()
