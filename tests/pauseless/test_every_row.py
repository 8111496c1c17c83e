"""A pauseless table on Pinot's own controller and data managers of 1.5.1: every row is there once.

The same with servers that are killed: `test_both_killed.py`.
"""

from __future__ import annotations

import pytest
from fakes.pauseless.servers import PauselessCluster
from fakes.pauseless.table import rows_table

from pinot_assets.realtime.model.state import Copy, SegmentStatus

pytestmark = pytest.mark.integration


def test_every_row_is_there_once(whole: PauselessCluster) -> None:
    rows_a_segment = 20_000
    with rows_table(whole, **{"realtime.segment.flush.threshold.rows": str(2 * rows_a_segment)}) as rows:
        rows.send(200_000)
        rows.until_all_found()
        state = rows.until(lambda state: sum(s.status is SegmentStatus.DONE for s in state.segments) == 10)

    done = [segment for segment in state.segments if segment.status is SegmentStatus.DONE]
    assert {segment.copy for segment in done} == {Copy.DEEP_STORE}
    assert {segment.total_docs for segment in done} == {rows_a_segment}
    for one, following in zip(state.segments, state.segments[1:], strict=False):
        if one.partition == following.partition:
            assert one.end_offset == following.start_offset
    assert set(state.queryable.values()) == {200_000}
    assert rows.unwell(state) == []
