"""A published table whose source cannot be listed: ticks of the real sensors, time moved.

Files, ZooKeeper and Dagster's event log are real; Pinot is in memory, and the health checks that ask it are
not known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
import pytest

from pinot_assets.assets.keys import keys_of
from pinot_assets.resources import PinotResource
from pinot_assets.sensors.files import files_sensor
from pinot_assets.sensors.tables import tables_sensor

pytestmark = pytest.mark.integration


class Dagster:
    """An instance in which both sensors of a table are on."""

    def __init__(self, world: Any, instance: dg.DagsterInstance) -> None:
        self.now = time.time()
        self._instance, self._world = instance, world
        self._files = files_sensor(world.read_spec())
        self._cursor: str | None = None

    def tick(self) -> str:
        """Of the files sensor: what it says."""
        result = self._evaluate(self._files, self._cursor)
        self._cursor = result.cursor
        if result.run_requests:
            return str(result.run_requests[0].tags["pinot/tick"])
        assert isinstance(result.skip_reason, dg.SkipReason)
        return str(result.skip_reason.skip_message)

    def look(self) -> None:
        """A tick of the health sensor."""
        self._evaluate(tables_sensor([self._world.read_spec()]), None)  # a new one: each table is due

    def hours(self, hours: int) -> Iterator[None]:
        """For so long a tick of the files sensor every five minutes, every second time one of the other."""
        for number in range(12 * hours):
            self.tick()
            if number % 2:
                self.look()
            yield
            self.now += 300

    def shown(self) -> tuple[bool, str, str]:
        """What the page of the check says: passed, severity, description."""
        (record,) = self._instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(keys_of(self._world.read_spec()).table, "snapshot_equals_source"), limit=1
        )
        assert record.evaluation is not None
        evaluation = record.evaluation
        return evaluation.passed, evaluation.severity.value, evaluation.description or ""

    def _evaluate(self, sensor: dg.SensorDefinition, cursor: str | None) -> dg.SensorResult:
        with dg.build_sensor_context(
            self._instance, cursor=cursor, resources={"pinot": PinotResource()}
        ) as context:
            result = sensor(context)
        assert isinstance(result, dg.SensorResult)
        for event in result.asset_events:
            self._instance.report_runless_asset_event(event)
        return result


@pytest.fixture
def world(make_addressed_world: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    world = make_addressed_world("sync")
    monkeypatch.setenv("PINOT_ZOOKEEPER", world.zookeeper)
    monkeypatch.setenv("PINOT_CLUSTER", "pinot")
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://127.0.0.1:9")
    world.write("F1", "F2")
    world.run()
    return world


@pytest.fixture
def dagster(world: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dagster]:
    with dg.DagsterInstance.ephemeral() as instance:
        dagster = Dagster(world, instance)
        monkeypatch.setattr(time, "time", lambda: dagster.now)
        monkeypatch.setattr(time, "time_ns", lambda: int(dagster.now * 1e9))
        yield dagster


def test_it_is_red_after_an_hour_and_until_it_can_be_listed(world: Any, dagster: Dagster) -> None:
    assert dagster.tick() == "0 new, 0 rewritten, 0 deleted of 2 files listed"
    dagster.look()
    assert dagster.shown()[0]
    away = world.source.rename(world.folder / "elsewhere")

    shown = [dagster.shown() for _ in dagster.hours(3)]
    assert {severity for _, severity, _ in shown[:12]} == {"WARN"}
    assert {(passed, severity) for passed, severity, _ in shown[12:]} == {(False, "ERROR")}
    assert "/source does not exist; for 2.9 h, since " in shown[-1][2]
    assert "; for 3.0 h, since " in dagster.tick()

    away.rename(world.source)
    world.write("F3")
    assert dagster.tick() == "1 new, 0 rewritten, 0 deleted; launched"
    passed, _, description = dagster.shown()
    assert passed
    assert "could be read again at " in description
    assert "after 3.0 h: 1 new" in description
    dagster.look()
    assert dagster.shown()[:2] == (False, "WARN")
    assert "1 missing (F3)" in dagster.shown()[2]


def test_zookeeper_that_is_away_counts_as_well(
    world: Any, dagster: Dagster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PINOT_ZOOKEEPER", "127.0.0.1:9")
        assert "ZooKeeper at 127.0.0.1:9 does not answer" in dagster.tick()
        dagster.now += 3600
        assert "; for 1.0 h, since " in dagster.tick()
        assert dagster.shown()[:2] == (False, "ERROR")
    assert dagster.tick() == "0 new, 0 rewritten, 0 deleted of 2 files listed"
    assert dagster.shown()[0]
