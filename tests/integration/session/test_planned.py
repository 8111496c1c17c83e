"""A plan on a real Pinot and a real ZooKeeper: it leaves no trace, and says what the next run does."""

from __future__ import annotations

from typing import Any

import pytest
from kazoo.exceptions import NoNodeError

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PlanOutdated
from pinot_assets.session.decide.run_decision import PlannedAction
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.zookeeper import close_client

pytestmark = pytest.mark.integration


def everything(world: Any) -> JsonObject:
    """Every node of the table in Pinot's ZooKeeper with its version, and every staged object."""
    client = world.client()
    nodes: JsonObject = {}

    def walk(path: str, inside: bool) -> None:
        inside = inside or world.table in path
        if inside:
            data, stat = client.get(path)
            nodes[path] = data, stat.version
        try:
            children = client.get_children(path)
        except NoNodeError:
            if inside:
                raise
            return  # a table of another test, dropped meanwhile
        for child in children:
            walk(f"{path}/{child}", inside)

    for root in ("PROPERTYSTORE", "IDEALSTATES"):
        walk(f"/pinot/{root}", False)
    close_client(client)
    staging = world.folder / "staging"
    return nodes | {str(path): path.stat().st_mtime_ns for path in staging.rglob("*")}


def planned(world: Any) -> PlanReport:
    before = everything(world)
    with world.driver() as driver:
        plan: PlanReport = driver.plan()
    assert everything(world) == before
    return plan


def run_planned(world: Any, plan_hash: str) -> TriggerResult:
    with world.driver() as driver:
        try:
            result: TriggerResult = driver.trigger_planned(plan_hash).result
            driver.audit()
            driver.publish()
        finally:
            driver.release()
    return result


def ideal_state_bytes(world: Any) -> int:
    client = world.client()
    data, _ = client.get(f"/pinot/IDEALSTATES/{world.table}_OFFLINE")
    close_client(client)
    return len(data)


def lineage_bytes(world: Any) -> int:
    client = world.client()
    data, _ = client.get(f"/pinot/PROPERTYSTORE/SEGMENT_LINEAGE/{world.table}_OFFLINE")
    close_client(client)
    return len(data)


def test_a_plan_leaves_no_trace_and_comes_true(real_world: Any) -> None:
    world = real_world
    first = planned(world)
    assert (first.decision.step, first.listed) == (PlannedAction.NOTHING, 0)
    world.write("P1", F1="F1a F1b")
    assert planned(world).decision.step is PlannedAction.BEGIN
    world.run()

    world.write("F2", F1="F1.1")
    world.remove("P1")
    plan = planned(world)
    assert [len(plan.of_kind(kind)) for kind in ("new", "rewritten", "deleted")] == [1, 1, 1]
    assert plan.switching is not None
    assert plan.switching.room.present is not None
    assert plan.switching.rows.now == 3
    before = world.pinot.visible_segments(world.table)

    world.write("F3")
    with pytest.raises(PlanOutdated, match="the files in the source"):
        run_planned(world, plan.planned.plan_basis.hash)
    assert world.pinot.visible_segments(world.table) == before
    assert world.read_session() is None
    world.remove("F3")

    assert run_planned(world, plan.planned.plan_basis.hash[:8]) is TriggerResult.STAGED
    after = world.pinot.visible_segments(world.table)
    assert before - after == set(plan.planned.segments_from)
    assert len(after - before) == len(plan.switching.added)
    # What Pinot has stored is what was forecast; its settings of a table are a little different.
    assert ideal_state_bytes(world) == pytest.approx(plan.switching.ideal_state.text_bytes, rel=0.25)
    assert lineage_bytes(world) == pytest.approx(plan.switching.lineage_bytes, rel=0.1)
    assert planned(world).decision.step is PlannedAction.NOTHING
