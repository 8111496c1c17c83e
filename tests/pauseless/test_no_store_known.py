"""Both servers of a pauseless table are killed while they commit, and know no deep store when they come back.

The repair refuses with what to set; once it is set, every row is there.
"""

from __future__ import annotations

import pytest
from fakes.pauseless.kills import (
    GIVES_UP_SOON,
    SMALL,
    kill_both,
    kill_both_while_they_commit,
    numbers,
    start_both,
    until_given_up,
)
from fakes.pauseless.servers import PauselessCluster
from fakes.pauseless.table import LATER_MS, rows_table

from pinot_assets.realtime.repair.model import StepKind

pytestmark = pytest.mark.integration


def test_both_servers_are_killed_and_know_no_store_then(whole: PauselessCluster) -> None:
    with rows_table(whole, **SMALL, **GIVES_UP_SOON) as rows:
        lost = kill_both_while_they_commit(rows)
        whole.stored = False
        start_both(rows)
        until_given_up(rows)
        rows.later_s = LATER_MS // 1000
        assert numbers(rows, "segment_status")["stuck_committing"] == 2
        refused = rows.plan()
        assert {refusal.subject for refusal in refused.refusals} == lost
        assert all("segment.store.uri" in refusal.remedy for refusal in refused.refusals)
        assert refused.steps == ()

        kill_both(rows)
        whole.stored = True
        start_both(rows)
        until_given_up(rows)
        outcomes = rows.repair()
        assert [one.text for one in outcomes if not one.helped] == []
        assert {one.step.segments[0] for one in outcomes if one.step.kind is StepKind.REINGEST} == lost
        rows.until_mended()
