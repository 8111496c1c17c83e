"""A pauseless table on Pinot's own controller and data managers of 1.5.1 whose two servers are killed.

What is read, found wrong and mended is what `pinot-assets realtime` reads, finds and mends. Every row is
counted and added up on every server, by Pinot's own query engine.
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
from pinot_assets.realtime.repair.model import StepKind

pytestmark = pytest.mark.integration

LATER_S = LATER_MS // 1000


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
