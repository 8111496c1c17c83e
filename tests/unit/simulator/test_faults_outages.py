"""The deep store refuses, or hangs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.realtime.simulated_repair import SimulatedRepair
from fakes.realtime.simulated_truth import all_well, always, lag_rows
from simulator.faults import (
    StoreOutage,
)
from simulator.tables import BYPASS, CLASSIC, HOUR, MINUTE, PAUSELESS, SPLIT, SimulatedTable, first, statuses
from simulator.world import SimulatedWorld

from pinot_assets.realtime.model.settings import ClusterSettings
from pinot_assets.sizing.load import Outage


def downtime(how: Outage = Outage.REFUSES, lasts_ms: int = 2 * HOUR) -> StoreOutage:
    return StoreOutage(90_000, lasts_ms, how)


def longest_lag(world: SimulatedWorld, for_ms: int) -> int:
    """Rows, looked at every ten seconds."""
    lag = 0
    for _ in range(for_ms // 10_000):
        world.run(10_000)
        lag = max(lag, lag_rows(world))
    return lag


class TestRefuses:
    @pytest.mark.parametrize("table", [BYPASS, PAUSELESS], ids=["blocking", "pauseless"])
    def test_consumption_does_not_wait_under_bypass(self, table: SimulatedTable) -> None:
        world = SimulatedWorld(table, [downtime()])
        lag = longest_lag(world, HOUR)
        assert lag < 10_000, "ten seconds of the stream"
        assert {node.url for node in world.zookeeper.nodes.values() if node.status.completed} == {
            "",
            first(world),
        }
        always(world)

    @pytest.mark.parametrize("table", [CLASSIC, SPLIT], ids=["classic", "split"])
    def test_consumption_stops_without_a_peer_scheme(self, table: SimulatedTable) -> None:
        world = SimulatedWorld(table, [downtime()])
        world.run(HOUR)
        assert statuses(world).count("DONE") == 1
        assert lag_rows(world) > 3_000_000
        world.run(2 * HOUR)
        assert lag_rows(world) < 10_000, "it catches up when the store is back"
        always(world)

    def test_the_back_fill_is_ours_unless_the_controller_is_set_to_it(self) -> None:
        world = SimulatedWorld(BYPASS, [downtime()])
        world.run(30 * HOUR)
        peers_only = [n for n in world.zookeeper.nodes.values() if n.url == ""]
        assert len(peers_only) > 100, "Pinot's default leaves them for ever"
        retry = replace(BYPASS, cluster=ClusterSettings(version="1.5.1", deep_store_upload_retry=True))
        world = SimulatedWorld(retry, [downtime()])
        world.run(30 * HOUR)
        assert not [n for n in world.zookeeper.nodes.values() if n.url == ""]

    def test_repair_back_fills(self) -> None:
        world = SimulatedWorld(BYPASS, [downtime(lasts_ms=HOUR)])
        world.run(2 * HOUR)
        SimulatedRepair(world).run(6 * HOUR)
        assert all_well(world) == []
        always(world)

    def test_only_classic_uploads_pass_the_controller(self) -> None:
        through = {}
        for name, table in {"classic": CLASSIC, "split": SPLIT, "bypass": BYPASS}.items():
            world = SimulatedWorld(table)
            world.run(10 * MINUTE + 1_500)
            through[name] = world.controller_bytes
        assert through == {"classic": 10 * 60_000 * 100, "split": 0, "bypass": 0}


class TestHangs:
    """The server gives an upload 300 s; the election gives a commit 126.6 s."""

    def test_blocking_bypass_stops_at_the_defaults(self) -> None:
        world = SimulatedWorld(BYPASS, [downtime(Outage.HANGS)])
        world.run(HOUR)
        assert statuses(world).count("DONE") == 1

    def test_a_shorter_upload_time_out_lets_it_go_on(self) -> None:
        table = replace(BYPASS, cluster=ClusterSettings(version="1.5.1", upload_timeout_ms=60_000))
        world = SimulatedWorld(table, [downtime(Outage.HANGS)])
        world.run(HOUR)
        assert statuses(world).count("DONE") > 20
        always(world)

    def test_pauseless_goes_on_and_stays_committing(self) -> None:
        world = SimulatedWorld(PAUSELESS, [downtime(Outage.HANGS)])
        assert longest_lag(world, HOUR) < 10_000
        assert statuses(world).count("COMMITTING") > 40
        world.run(2 * HOUR)
        SimulatedRepair(world).run(12 * HOUR)
        assert all_well(world) == []
        always(world)

    def test_a_late_upload_is_an_orphan_in_the_store(self) -> None:
        table = replace(BYPASS, cluster=ClusterSettings(version="1.5.1", upload_timeout_ms=60_000))
        world = SimulatedWorld(table, [downtime(Outage.HANGS, 10 * MINUTE)])
        world.run(20 * MINUTE)
        assert [name for name in world.store.files if ".tmp." in name]
        world.run(HOUR)
        repair = SimulatedRepair(world)
        repair.run(4 * HOUR)
        assert "sweep" in {str(step.kind) for step in repair.done}
        assert not [name for name in world.store.files if ".tmp." in name]
        assert all_well(world) == []
