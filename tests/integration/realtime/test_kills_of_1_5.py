"""Pauseless tables on Pinot's own controller and data managers of 1.5.1: no row is lost, none is there twice.

What is read, found wrong and mended is what `pinot-assets realtime` reads, finds and mends. Every row is
counted and added up on every server, by Pinot's own query engine. Kills after which Pinot has to be waited
for (five minutes), and those that take longest, are in `tests/pauseless`.
"""

from __future__ import annotations

import pytest
from fakes.pauseless.kills import (
    GIVES_UP_SOON,
    SMALL,
    kill_both_while_they_commit,
    numbers,
    start_both,
    until_given_up,
)
from fakes.pauseless.servers import PauselessCluster
from fakes.pauseless.table import LATER_MS, rows_table

from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.model.state import Copy, SegmentStatus
from pinot_assets.realtime.repair.model import StepKind

pytestmark = pytest.mark.integration

LATER_S = LATER_MS // 1000


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


def test_both_servers_are_killed_while_they_commit(whole: PauselessCluster) -> None:
    with rows_table(whole, **SMALL, **GIVES_UP_SOON) as rows:
        lost = kill_both_while_they_commit(rows)
        start_both(rows)
        starting = rows.until(lambda state: any(one.ready is False for one in state.servers.values()))
        by_check = {one.name: one.numbers for one in examine_state(starting)}
        assert by_check["servers"]["servers_starting"] > 0
        until_given_up(rows)
        assert numbers(rows, "error_segments")["segments_in_error"] == 2
        assert {wait.subject for wait in rows.plan().waiting} >= lost

        rows.later_s = LATER_S
        assert numbers(rows, "segment_status")["stuck_committing"] == 2
        outcomes = rows.repair()
        assert [one.text for one in outcomes if not one.helped] == []
        assert {one.step.segments[0] for one in outcomes if one.step.kind is StepKind.REINGEST} == lost
        rows.until_mended()
