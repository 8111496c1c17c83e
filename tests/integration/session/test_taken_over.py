"""A table that another tool filled, taken over as docs/migrate tells it, and given back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.waiting import until

from pinot_assets.errors import PinotError, RollbackRefused
from pinot_assets.session.values.report import TriggerResult

pytestmark = pytest.mark.integration

SYNC = {"consistentPushEnabled": True, "ingestionMode": "sync"}
SWAP = {**SYNC, "consistentPushSwapEnabled": True}
FORMER = ("events_OFFLINE_2026-01-01_0", "events_OFFLINE_2026-01-02_1")


@pytest.fixture
def world(make_real_world: Callable[[str], Any], tmp_path: Path) -> Iterator[Any]:
    """Files P1 and P2, and a table that holds their rows in segments with another tool's names."""
    donor = make_real_world("sync")
    donor.write("P1", "P2")
    donor.run()
    (tmp_path / "taken").mkdir()
    world = type(donor)(f"taken_{donor.table}", tmp_path / "taken", donor.zookeeper, SYNC, donor.pinot)
    world.waits = donor.waits
    world.write("P1", "P2")
    until(lambda: len(world.brokers) == 2)
    staging = donor.staging
    copies = [
        staging.put_renamed(output, name)
        for output, name in zip(donor.read_snapshot().segments.values(), FORMER, strict=True)
    ]
    world.pinot.push(world.table, copies, staged=staging)
    until(lambda: all(world.pinot.online_replicas(world.table, FORMER).values()), 60)
    until(
        lambda: all(world.pinot.broker_visible_segments(b, world.table) == {*FORMER} for b in world.brokers)
    )
    yield world
    world.watch_no_more()
    world.pinot.delete_table(world.table)
    world.pinot.delete_schema(world.table)


def shown(world: Any) -> list[list[str]]:
    return [world.shown_by(broker) for broker in world.brokers]


def is_given_back(world: Any) -> bool:
    try:
        return shown(world) == [["P1", "P2"]] * 2
    except PinotError:  # Pinot deletes what was reverted, and a broker may not know of the revert yet
        return False


def test_one_swap_takes_the_former_segments_away_and_sync_goes_on_from_there(world: Any) -> None:
    world.watch_anew()
    world.options = SWAP
    world.run()
    assert shown(world) == [["P1", "P2"]] * 2
    assert world.shown == [("P1", "P2")]
    assert not world.pinot.visible_segments(world.table) & {*FORMER}

    world.options = SYNC
    assert world.run().result is TriggerResult.NOTHING
    world.write("P3", P1="P1.1")
    world.run()
    assert shown(world) == [["P1.1", "P2", "P3"]] * 2


def test_sync_alone_would_show_everything_twice(world: Any) -> None:
    world.run()
    assert shown(world) == [["P1", "P1", "P2", "P2"]] * 2


def test_the_table_is_given_back_by_a_revert_in_pinot(world: Any) -> None:
    world.options = SWAP
    world.run()
    with pytest.raises(RollbackRefused):
        world.rollback()
    world.pinot.force_revert_replace_segments(world.table, world.read_snapshot().lineage_entry_id)
    until(lambda: is_given_back(world), 60)
    assert world.pinot.visible_segments(world.table) == {*FORMER}
