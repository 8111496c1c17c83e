"""Real processes that stand still past their lease, lose a reply of ZooKeeper, or meet another one."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from crash.gate import Fate, Point
from crash.scenarios import Lane, start
from crash.table import open_table
from fakes.waiting import until

from pinot_assets.core.connections import Waits
from pinot_assets.core.json_object import JsonObject
from pinot_assets.settings.local_stack import StackState

pytestmark = pytest.mark.integration

WAITS = Waits(lease=8.0, pinot_write=6.0)


@pytest.fixture(scope="module")
def lane(stack_with_s3: StackState, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    with open_table(stack_with_s3, "sync", tmp_path_factory.mktemp("frozen"), WAITS) as table:
        lane = Lane(table)
        start(lane)
        yield lane


def everything(lane: Lane) -> JsonObject:
    """All that a run can change."""
    table = lane.table
    return {
        "pointer": table.store.pointer(),
        "sessions": table.store.sessions(),
        "lineage": table.pinot.lineage(table.name),
        "segments": table.pinot.all_segments(table.name),
        "shown": [table.shown_by(broker) for broker in table.stack.broker_urls],
    }


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("effect", "number"),
    [
        ("store PUT receipt", 1),
        ("pinot startReplaceSegments", 1),
        ("pinot upload", 1),
        ("zk set session", 5),  # endIssued: what comes next is the end itself
    ],
)
def test_r02_a_run_frozen_past_its_lease_changes_nothing_when_it_wakes(
    lane: Lane, effect: str, number: int
) -> None:
    table = lane.table
    lane.change()
    frozen = table.start(point=Point(effect, number, Fate.FROZEN))
    until(lambda: table.gate.struck_after)
    phase = table.watch.start((lane.shown, lane.expected_rows()))
    until(lambda: table.store.holder() is None)
    assert table.until_quiet()[-1].quiet
    lane.published()
    assert [*table.troubles(lane.shown)] == []
    done = everything(lane)
    table.gate.begin(None, lambda: None)
    frozen.wake()
    answer = frozen.wait()
    # What it says depends on what it looks at first: its lease, its call's deadline, or its session's end.
    assert answer.said in ("LeaseLost", "SwitchStateUnknown", "SnapshotIncomplete"), answer
    assert [e for e in table.gate.effects if e.startswith("pinot")] == []
    assert everything(lane) == done
    table.reads.again.clear()  # what it was building it goes on with, unseen
    assert phase.mixed == []


@pytest.mark.parametrize(
    ("effect", "number"),
    [
        ("zk create lease, set pointer", 1),
        ("zk set pointer, create session", 1),
        ("zk set session", 2),
        ("zk set pointer, set session", 1),
    ],
)
def test_r24_a_transaction_whose_reply_got_lost_is_looked_up(lane: Lane, effect: str, number: int) -> None:
    table = lane.table
    before = table.store.pointer()
    lane.change()
    lane.must("PUBLISHED", table.run(point=Point(effect, number, Fate.LOST)))
    lane.published()
    after = table.store.pointer()
    assert (after.epoch, after.next_seq) == (before.epoch + 1, before.next_seq + 1)
    assert [*table.troubles(lane.shown)] == []


def test_e10_of_two_runs_one_proceeds_and_the_other_says_who_holds_the_table_and_since_when(
    lane: Lane,
) -> None:
    table = lane.table
    lane.change()
    began = time.time()
    first = table.start(point=Point("store PUT receipt", 1, Fate.FROZEN))
    until(lambda: table.gate.struck_after)
    holder = table.store.holder()
    assert holder is not None
    second = table.run()
    first.wake()
    assert second.said == "SessionHeld"
    assert f"held by {holder}" in second.text
    assert re.search(r"since \d{4}-\d\d-\d\d", second.text)
    assert abs(holder.since_ms / 1000 - began) < 30
    lane.must("PUBLISHED", first.wait())
    lane.published()
    assert [*table.troubles(lane.shown)] == []


def test_e10_of_runs_that_start_at_once_one_proceeds(lane: Lane) -> None:
    table = lane.table
    lane.change()
    runs = [table.start() for _ in range(3)]
    said = sorted(run.wait().said for run in runs)
    assert said.count("PUBLISHED") == 1, said
    assert set(said) <= {"PUBLISHED", "SessionHeld", "NOTHING"}
    lane.published()
    assert [*table.troubles(lane.shown)] == []
