"""A table is forgotten on a real ZooKeeper and a real Pinot, and answers as before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.pinot.queries import Queries

from pinot_assets.gc.forget import forget, forget_plan
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.zookeeper import close_client

if TYPE_CHECKING:
    from integration.session.conftest import RealWorld

pytestmark = pytest.mark.integration


def nodes_left(world: RealWorld) -> list[str]:
    """What is left of the table in Pinot's record of tasks."""
    client = world.client()
    try:
        tables: list[str] = client.get_children("/pinot/PROPERTYSTORE/MINION_TASK_METADATA")
        return [name for name in tables if name.startswith(world.table)]
    finally:
        close_client(client)


def objects_left(world: RealWorld) -> list[Path]:
    return [path for path in (world.folder / "staging").rglob("*") if path.is_file()]


def test_queries_answer_as_before_and_nothing_of_ours_is_left(real_world: RealWorld) -> None:
    world = real_world
    world.write("P1", F1="F1a F1b")
    assert world.run().result is TriggerResult.STAGED
    world.write("F2", F1="F1.1")
    assert world.run().result is TriggerResult.STAGED
    rows = ["F1.1", "F2", "P1"]
    segments, lineage = world.pinot.all_segments(world.table), world.pinot.lineage(world.table)
    assert len(nodes_left(world)) == 1
    with Queries(world.brokers, world.shown_by) as queries:
        with world.driver() as driver:
            plan = forget_plan(driver)
            assert (plan.segments, plan.kept) == (len(segments), ())
            forgotten = forget(driver, lambda done, of: None)
            assert forgotten.failed == {}
        assert (nodes_left(world), objects_left(world)) == ([], [])
        with world.driver() as driver:
            assert forget_plan(driver).is_empty
            observed = driver.observe()
            assert (observed.snapshot, observed.unrecorded) == (None, len(segments))
        assert queries.answers() == {broker: [rows] for broker in world.brokers}
        assert queries.failed == []
    assert world.pinot.all_segments(world.table) == segments
    assert world.pinot.lineage(world.table) == lineage

    report = world.run()  # takes the table for its own again
    assert report.result is TriggerResult.NOTHING
    assert any("deleted by `forget`" in note and "3 files" in note for note in report.notes)
    world.write("F3")
    world.run()
    for broker in world.brokers:
        assert world.shown_by(broker) == sorted([*rows, "F3"])
    world.assert_settled()
