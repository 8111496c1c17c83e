"""Pauseless tables on Pinot's own controller and data managers of 1.5.1, and what kills do to them.

What is read, found wrong and mended is what `pinot-assets realtime` reads, finds and mends. Every row is
counted and added up on every server, by Pinot's own query engine.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakes.pauseless import PauselessCluster
from fakes.pauseless_table import rows_table

from pinot_assets.realtime.health.checks import examine
from pinot_assets.realtime.state import Copy, Status

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PauselessCluster]:
    with PauselessCluster(tmp_path_factory.mktemp("pauseless")) as cluster:
        yield cluster


def test_every_row_is_there_once(cluster: PauselessCluster) -> None:
    rows_a_segment = 20_000
    with rows_table(cluster, **{"realtime.segment.flush.threshold.rows": str(2 * rows_a_segment)}) as rows:
        rows.send(200_000)
        rows.until_all_found()
        state = rows.until(lambda state: sum(s.status is Status.DONE for s in state.segments) == 10)

    done = [segment for segment in state.segments if segment.status is Status.DONE]
    assert {segment.copy for segment in done} == {Copy.DEEP_STORE}
    assert {segment.total_docs for segment in done} == {rows_a_segment}
    for one, following in zip(state.segments, state.segments[1:], strict=False):
        if one.partition == following.partition:
            assert one.end_offset == following.start_offset
    assert set(state.queryable.values()) == {200_000}
    failed = [answer.message for answer in examine(state) if answer.known and not answer.passed]
    assert failed == []
