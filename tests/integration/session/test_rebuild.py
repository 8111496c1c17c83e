"""A changed table spec is carried out on a real Pinot, with queries at both brokers all the while."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from fakes.pinot.queries import Queries

from pinot_assets.session.values.outdated import RebuildRequest
from pinot_assets.session.values.report import TriggerReport, TriggerResult

if TYPE_CHECKING:
    from integration.session.conftest import RealWorld

pytestmark = pytest.mark.integration


def rebuild(world: RealWorld, files: str = "") -> TriggerReport:
    request = RebuildRequest(files)
    with world.driver() as driver:
        report = driver.trigger_planned(driver.plan(request).planned.plan_basis.hash, request)
        assert report.result is TriggerResult.STAGED
        _, findings = driver.audit()
        assert not [finding for finding in findings if finding.blocks]
        driver.publish()
        return report


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_rows_of_another_spec_come_by_a_rebuild_and_go_by_a_rollback(
    make_real_world: Callable[[str], RealWorld], mode: str
) -> None:
    world = make_real_world(mode)
    world.write(F1="a b", F2="a c")
    world.run()
    first, second = ["a", "a", "b", "c"], ["b", "c", "null", "null"]
    with Queries(world.brokers, world.shown_by) as queries:
        world.options["recordReader.prop.nullStringValue"] = "a"
        report = world.run()
        assert report.result is TriggerResult.NOTHING
        assert any(
            "2 of 2 segments were built under revision 1 (now 2): rows changed by" in n for n in report.notes
        )
        assert len(rebuild(world).rebuilt) == 2
        assert world.run().notes == ()
        world.rollback()
        world.run()
        assert queries.answers() == {broker: [first, second, first] for broker in world.brokers}
    assert all("ServerSegmentMissing" in str(error) for error in queries.failed)
    assert world.resume()
    assert len(rebuild(world, "F1").rebuilt) == 1
    for broker in world.brokers:
        assert world.shown_by(broker) == ["a", "b", "c", "null"]
    assert {f.uri.rpartition("/")[2]: f.revision for f in world.read_snapshot().files} == {"F1": 2, "F2": 1}
    world.assert_settled()
