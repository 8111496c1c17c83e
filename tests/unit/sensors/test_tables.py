"""The sensor of all tables: looks become history of the checks, a slow table keeps no other one waiting, and
what was published without Dagster is shown once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import dagster as dg
import pytest
from fakes.realtime.specs import write_realtime_table
from fakes.tables import SYNC, write_table

from pinot_assets.assets.health import evaluations
from pinot_assets.assets.keys import TABLE_TAG, keys_of
from pinot_assets.assets.looks import OfflineView
from pinot_assets.assets.overview import KEY
from pinot_assets.assets.snapshot import Publication
from pinot_assets.core.check_result import unknown
from pinot_assets.errors import SessionError
from pinot_assets.health import CHECKS, CheckResult, Severity, source
from pinot_assets.realtime.health.all_checks import CHECKS as REALTIME_CHECKS
from pinot_assets.resources import PinotResource
from pinot_assets.sensors import tables as module
from pinot_assets.session.detect.table_status import StatusReport, TableCondition
from pinot_assets.session.values.state import Owner, Pointer
from pinot_assets.snapshot.manifest import SnapshotRef
from pinot_assets.table_spec import TableSpec

HALF_SET = PinotResource(controller_url="http://127.0.0.1:1")  # refused before anything is asked
FINE = StatusReport("t", TableCondition.UP_TO_DATE, "t is published as the source has it", "queries see all")
REF = SnapshotRef("snapshots/1", "0")


def view(failing: str = "", shown: Publication | None = None) -> OfflineView:
    answers = tuple(
        CheckResult(c.name, c.name != failing, 0, 7, "m", "do this", Severity.ERROR, {"n": 1}) for c in CHECKS
    )
    return OfflineView(answers, FINE, None, shown)


class Sensor:
    """The sensor with two tables, `t` and `u`, in memory; what a look finds is what `views` says."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch) -> None:
        self.instance = instance
        self.specs = {name: write_table(folder, name, SYNC) for name in ("t", "u")}
        self.views: dict[str, Callable[[], OfflineView]] = dict.fromkeys(self.specs, view)
        self.pointers: dict[str, Pointer] = {name: Pointer() for name in self.specs}
        self.holder: Owner | None = None
        self.looked: list[str] = []
        self.cursor: str | None = None
        self.now_s = 1000.0
        patch.setattr(module, "look_and_compare", self.look)
        patch.setattr(
            module,
            "open_session_stores",
            lambda specs, settings: nullcontext({s.name: self.store(s) for s in specs}),
        )
        patch.setattr(module, "open_session_store", lambda spec, settings: nullcontext(self.store(spec)))
        patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        self.definition = module.tables_sensor(list(self.specs.values()))

    def store(self, spec: TableSpec) -> SimpleNamespace:
        return SimpleNamespace(pointer=lambda: self.pointers[spec.name], holder=lambda: self.holder)

    def look(self, spec: TableSpec, settings: object, known: str | None) -> OfflineView:
        self.looked.append(spec.name)
        return self.views[spec.name]()

    def tick(self) -> dg.SensorResult:
        pinot = PinotResource(controller_url="http://127.0.0.1:1", zookeeper="127.0.0.1:1")
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"pinot": pinot}
        )
        result = self.definition(context)
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor
        for event in result.asset_events:  # as the sensor daemon does
            self.instance.report_runless_asset_event(event)
        return result

    def names(self) -> list[str]:
        """The tables that one tick looks at."""
        self.looked.clear()
        self.tick()
        return list(self.looked)


@pytest.fixture
def sensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sensor]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Sensor(tmp_path, instance, monkeypatch)


def message(result: dg.SensorResult) -> str:
    assert isinstance(result.skip_reason, dg.SkipReason)
    return result.skip_reason.skip_message or ""


def test_it_is_on_from_the_start_and_starts_nothing(sensor: Sensor) -> None:
    assert sensor.definition.name == "pinot_tables"
    assert sensor.definition.default_status is dg.DefaultSensorStatus.RUNNING
    assert not sensor.definition.targets


def test_every_table_is_looked_at_once_and_then_when_its_time_has_come(sensor: Sensor) -> None:
    assert sensor.names() == ["t", "u"]
    assert sensor.names() == []
    sensor.now_s += sensor.specs["t"].dagster.health_interval_sec
    assert sensor.names() == ["t", "u"]


def test_a_table_that_changed_is_looked_at_within_a_tick(sensor: Sensor) -> None:
    """Whoever changed it: a run, a person at the command line, another instance of Dagster."""
    sensor.names()
    sensor.pointers["u"] = Pointer(epoch=1, active_session="cp1")
    assert sensor.names() == ["u"]
    assert sensor.names() == []
    sensor.pointers["u"] = Pointer(epoch=1, current_snapshot=REF)
    assert sensor.names() == ["u"]
    sensor.holder = Owner("run", "host", 7, 0)
    assert sensor.names() == ["t", "u"]


def test_without_a_zookeeper_the_looks_go_on(sensor: Sensor, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> NoReturn:
        raise SessionError("ZooKeeper does not answer")

    monkeypatch.setattr(module, "open_session_stores", away)
    assert sensor.names() == ["t", "u"]
    assert sensor.names() == []


def test_a_tick_looks_at_so_many_tables_and_the_next_one_goes_on(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_LOOKS", 1)
    assert sensor.names() == ["t"]
    assert sensor.names() == ["u"]
    assert sensor.names() == []


def test_after_a_restart_it_goes_on_behind_the_last_table(sensor: Sensor) -> None:
    sensor.cursor = "t"
    assert sensor.names() == ["u", "t"]


def test_every_look_becomes_history_of_the_checks_without_a_run(sensor: Sensor) -> None:
    table = keys_of(sensor.specs["t"]).table
    sensor.instance.report_runless_asset_event(dg.AssetMaterialization(table))
    for failing in ("", "orphans"):
        sensor.views["t"] = lambda: view(failing)  # noqa: B023
        said = message(sensor.tick())
        sensor.now_s += 3600
    assert "looked at 2 tables, 1 not well" in said
    assert f"{len(CHECKS)} checks, 1 failed: orphans" in said
    history = sensor.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(table, "orphans"), limit=10
    )
    assert [record.status.value for record in history] == ["FAILED", "SUCCEEDED"]
    evaluation = history[0].evaluation
    assert evaluation is not None
    assert evaluation.severity is dg.AssetCheckSeverity.ERROR
    assert evaluation.description == "m\n→ do this"
    assert evaluation.metadata["found"] == dg.IntMetadataValue(7)
    assert evaluation.target_materialization_data is not None
    status = sensor.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(table, "status"), limit=10
    )
    assert [record.status.value for record in status] == ["SUCCEEDED", "SUCCEEDED"]
    assert sensor.instance.get_runs_count() == 0


def test_a_slow_table_keeps_no_other_one_waiting_and_is_recorded_when_it_ends(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUICK_S", 0.1)
    end = threading.Event()

    def slow() -> OfflineView:
        end.wait(60)
        return view("orphans")

    sensor.views["t"] = slow
    first = sensor.tick()
    assert sensor.looked == ["t", "u"]
    assert {event.asset_key for event in first.asset_events} == {keys_of(sensor.specs["u"]).table, KEY}
    end.set()
    deadline = time.monotonic() + 60
    while "t: " not in (said := message(sensor.tick())):
        assert time.monotonic() < deadline, said
    assert "orphans" in said


def test_a_look_that_does_not_end_is_told_once(sensor: Sensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUICK_S", 0.0)
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    end = threading.Event()

    def endless() -> OfflineView:
        end.wait(60)
        return view()

    sensor.views = dict.fromkeys(sensor.specs, endless)
    events = sensor.tick().asset_events
    end.set()
    evaluated = [event for event in events if isinstance(event, dg.AssetCheckEvaluation)]
    assert len(evaluated) == 2 * (1 + len(CHECKS)) + 1
    for event in evaluated:
        assert not event.passed
        assert event.asset_key == KEY or "does not end" in (event.description or "")


def test_a_fault_of_a_look_is_told_and_stops_no_other_one(sensor: Sensor) -> None:
    def broken() -> OfflineView:
        raise KeyError("hunter")

    sensor.views["t"] = broken
    events = sensor.tick().asset_events
    assert sensor.looked == ["t", "u"]
    evaluated = [event for event in events if isinstance(event, dg.AssetCheckEvaluation)]
    (status,) = [event for event in evaluated if event.check_name == "status" and not event.passed]
    assert "please report it" in (status.description or "")


class Shown:
    """A publication without files; something happens while its partitions are told."""

    def __init__(self, sensor: Sensor, meanwhile: Callable[[], None]) -> None:
        self.spec = sensor.specs["t"]
        self.keys, self.ref, self.meanwhile = keys_of(self.spec), REF, meanwhile
        self.snapshot = SimpleNamespace(audit={}, files=(), session="cp1")

    def events(self, history: object) -> Shown:
        return self

    def publications(self, history: object) -> Iterator[dg.AssetMaterialization]:
        yield dg.AssetMaterialization(self.keys.segments, partition="F1.csv")
        self.meanwhile()

    def event(self, key: dg.AssetKey) -> dg.AssetMaterialization:
        return dg.AssetMaterialization(key)


@pytest.mark.parametrize(
    ("meanwhile", "is_told"), [("nothing", True), ("a run comes up", False), ("it is published anew", False)]
)
def test_an_older_snapshot_is_not_told_after_a_newer_one(
    sensor: Sensor, meanwhile: str, is_told: bool
) -> None:
    def happens() -> None:
        if meanwhile == "a run comes up":
            started = dg.DagsterRunStatus.STARTED
            sensor.instance.add_run(dg.DagsterRun("t_ingest", "r", tags={TABLE_TAG: "t"}, status=started))
        if meanwhile == "it is published anew":
            sensor.pointers["t"] = Pointer(current_snapshot=SnapshotRef("newer", "1"))

    sensor.pointers["t"] = Pointer(current_snapshot=REF)
    shown = Shown(sensor, happens)
    sensor.views["t"] = lambda: view(shown=shown)
    sensor.tick()
    for key, expected in (
        (shown.keys.segments, True),
        (shown.keys.snapshot, is_told),
        (shown.keys.table, is_told),
    ):
        assert bool(sensor.instance.get_latest_materialization_event(key)) is expected


def test_what_does_not_fit_into_a_tick_is_gone_on_with_at_the_next_one(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor.pointers["t"] = Pointer(current_snapshot=REF)
    shown = Shown(sensor, lambda: None)
    vars(shown)["publications"] = lambda history: (
        dg.AssetMaterialization(shown.keys.segments, partition=f"F{number}.csv") for number in range(2)
    )
    sensor.views["t"] = lambda: view(shown=shown)
    monkeypatch.setattr(module, "TICK_S", 0.0)
    assert sensor.names() == ["t", "u"]
    assert not sensor.instance.get_latest_materialization_event(shown.keys.table)
    monkeypatch.setattr(module, "TICK_S", 60.0)
    assert sensor.names() == ["t"]
    assert sensor.instance.get_latest_materialization_event(shown.keys.table)


def test_without_a_pinot_it_tells_and_does_not_raise(tmp_path: Path) -> None:
    specs = [write_table(tmp_path, "t"), write_realtime_table(tmp_path)]
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance=instance, resources={"pinot": HALF_SET})
        result = module.tables_sensor(specs)(context)
    assert isinstance(result, dg.SensorResult)
    evaluated = [event for event in result.asset_events if isinstance(event, dg.AssetCheckEvaluation)]
    assert len(evaluated) == 1 + len(CHECKS) + len(REALTIME_CHECKS) + 1
    assert "snapshot_equals_source (not known)" in message(result)
    assert not result.run_requests


def test_a_look_that_fails_does_not_turn_an_error_that_lasts_into_a_warning(
    sensor: Sensor,
) -> None:
    """Its next look would do so every ten minutes, and the table would be red half of the time."""
    name, now_ms, spec = source.NAME, time.time_ns() // 1_000_000, sensor.specs["t"]
    key = dg.AssetCheckKey(keys_of(spec).table, name)
    answers = tuple(unknown(check.name, "away", "wait") for check in CHECKS)
    sensor.views["t"] = lambda: OfflineView(answers, FINE)

    def look() -> tuple[str, str]:
        sensor.tick()
        sensor.now_s += 3600
        (record,) = sensor.instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
        assert record.evaluation is not None
        return record.evaluation.severity.value, record.evaluation.description or ""

    assert look()[0] == "WARN"
    lasting = source.lasts(unknown(name, "no listing", ""), now_ms - 72 * 60_000, now_ms)
    (event,) = evaluations(sensor.instance, spec, (lasting,))
    sensor.instance.report_runless_asset_event(event)
    severity, description = look()
    assert severity == "ERROR"
    assert "; for 1.2 h, since " in description
    (event,) = evaluations(sensor.instance, spec, (source.seen_again(now_ms - 72 * 60_000, now_ms, "seen"),))
    sensor.instance.report_runless_asset_event(event)
    assert look()[0] == "WARN"
